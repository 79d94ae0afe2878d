/* crash.c: a program that crashes in the way that its argument names; tests/api/crash.sh checks the crash
 * report.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static volatile int zero;

static void on_signal(int sig)
{
    static const char said[] = "the program's own handler\n";
    (void)sig;
    _exit(write(STDOUT_FILENO, said, sizeof(said) - 1) > 0 ? 42 : 43);
}

/* Overflows the stack by a recursion that compilers do not turn into a loop. */
static int recurse(int depth)
{
    volatile char room[4096];
    room[0] = (char)depth;
    return depth < 0 ? 0 : recurse(depth + 1) + room[0];
}

static void test_crash(const char *how, int rank)
{
    char *nowhere = (char *)(size_t)0x123000;
    int value = 0;
    MPI_Request r;
    if (strcmp(how, "send") == 0 && rank == 1)
        MPI_Send(nowhere, 100, MPI_INT, 0, 77, MPI_COMM_WORLD);
    if (strcmp(how, "recv") == 0 && rank == 0)
        MPI_Send(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
    if (strcmp(how, "recv") == 0 && rank == 1)
        MPI_Recv(nowhere, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (strcmp(how, "reduce") == 0)
        MPI_Allreduce(rank == 1 ? nowhere : (char *)&zero, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (strcmp(how, "wait") == 0) {
        MPI_Irecv(rank == 1 ? nowhere : (char *)&value, 1, MPI_INT, !rank, 3, MPI_COMM_WORLD, &r);
        MPI_Send(&rank, 1, MPI_INT, !rank, 3, MPI_COMM_WORLD);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    if (rank != 1)
        return;
    if (strcmp(how, "outside") == 0)
        *(volatile char *)nowhere = 1;
    if (strcmp(how, "abort") == 0)
        abort();
    /* Raised, since an integer division by zero does not trap on every processor (not on aarch64). */
    if (strcmp(how, "divide") == 0)
        raise(SIGFPE);
    if (strcmp(how, "illegal") == 0)
        __builtin_trap();
    if (strcmp(how, "deep") == 0)
        zero = recurse(1);
    if (strcmp(how, "handler") == 0)
        *(volatile char *)nowhere = 1;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int rank;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (strcmp(how, "handler") == 0)
        signal(SIGSEGV, on_signal);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    test_crash(how, rank);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
