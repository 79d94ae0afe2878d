/* zoo.c: programs that hang for different reasons, for `fishplate why`. zoo.py contains the expected diagnoses.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi-ext.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;
static char large[4 << 20];

static void recv_from(int from, int tag, MPI_Comm comm)
{
    char byte;
    MPI_Recv(&byte, 1, MPI_CHAR, from, tag, comm, MPI_STATUS_IGNORE);
}

static void send_to(int to, int tag, MPI_Comm comm)
{
    char byte = 0;
    MPI_Send(&byte, 1, MPI_CHAR, to, tag, comm);
}

static void test_ring(void) /* all ranks receive first */
{
    recv_from((rank + 1) % size, 5, MPI_COMM_WORLD);
}

static void test_sends(void) /* all ranks send first, more than the library buffers */
{
    MPI_Send(large, sizeof(large), MPI_CHAR, (rank + 1) % size, 3, MPI_COMM_WORLD);
    MPI_Recv(large, sizeof(large), MPI_CHAR, (rank + size - 1) % size, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void test_tag(void)
{
    if (rank == 0) {
        send_to(1, 7, MPI_COMM_WORLD);
        recv_from(1, 5, MPI_COMM_WORLD);
    } else if (rank == 1) {
        recv_from(0, 6, MPI_COMM_WORLD);
    }
}

static void test_communicator(void)
{
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Comm_set_name(other, "other");
    if (rank == 0) {
        send_to(1, 5, other);
        recv_from(1, 5, other);
    } else if (rank == 1) {
        recv_from(0, 5, MPI_COMM_WORLD);
    }
}

static void barrier_recv(void) /* the last rank receives from a rank that is in a barrier */
{
    if (rank == size - 1)
        recv_from(0, 9, MPI_COMM_WORLD);
    else
        MPI_Barrier(MPI_COMM_WORLD);
}

static void test_missing(void) /* the last rank computes */
{
    for (volatile unsigned long i = 0; rank == size - 1; i++)
        ;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void test_computing_rank(void)
{
    for (volatile unsigned long i = 0; rank == 1; i++)
        ;
    if (rank == 0)
        recv_from(1, 2, MPI_COMM_WORLD);
    else
        recv_from(0, 2, MPI_COMM_WORLD);
}

static void test_stopped(void)
{
    if (rank == 1)
        raise(SIGSTOP);
    recv_from(1 - rank, 2, MPI_COMM_WORLD);
}

static void test_wildcard(void) /* one rank may still send to all ranks that wait for any source */
{
    for (volatile unsigned long i = 0; rank == size - 1; i++)
        ;
    recv_from(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD);
}

static void wild_deadlock(void) /* all ranks wait for any source */
{
    recv_from(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD);
}

static void
test_waitany(void) /* rank 0 waits for rank 1, which waits for 0, or for the last rank, which computes */
{
    MPI_Request r[2];
    char bytes[2];
    int at;
    for (volatile unsigned long i = 0; rank == size - 1; i++)
        ;
    if (rank == 0) {
        MPI_Irecv(&bytes[0], 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &r[0]);
        MPI_Irecv(&bytes[1], 1, MPI_CHAR, size - 1, 1, MPI_COMM_WORLD, &r[1]);
        MPI_Waitany(2, r, &at, MPI_STATUS_IGNORE);
    }
    recv_from(0, 1, MPI_COMM_WORLD);
}

static void test_waitall(void) /* as test_waitany, but rank 0 waits for both */
{
    MPI_Request r[2];
    char bytes[2];
    for (volatile unsigned long i = 0; rank == size - 1; i++)
        ;
    if (rank == 0) {
        MPI_Irecv(&bytes[0], 1, MPI_CHAR, size - 1, 1, MPI_COMM_WORLD, &r[0]);
        MPI_Irecv(&bytes[1], 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &r[1]);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    }
    recv_from(0, 1, MPI_COMM_WORLD);
}

static void test_finalize(void) /* rank 0 finalizes without sending the message that rank 1 waits for */
{
    if (rank == 1)
        recv_from(0, 8, MPI_COMM_WORLD);
}

static void test_persistent(void) /* a persistent send is never started */
{
    char byte = 0;
    MPI_Request r;
    if (rank == 0)
        MPI_Send_init(&byte, 1, MPI_CHAR, 1, 3, MPI_COMM_WORLD, &r);
    recv_from(1 - rank, 3, MPI_COMM_WORLD);
}

static void test_deadlock_between_two(
    void) /* the last two ranks wait for each other, the others in barriers of even and odd ranks */
{
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
    MPI_Comm_set_name(half, rank % 2 ? "odd" : "even");
    if (rank == size - 1)
        recv_from(rank - 1, 1, MPI_COMM_WORLD);
    else if (rank == size - 2)
        recv_from(rank + 1, 1, MPI_COMM_WORLD);
    else
        MPI_Barrier(half);
}

static void zoo_accept(void)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm other;
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
}

static void test_connect_without_accept(void) /* rank 0 has opened a port and receives instead of accepting */
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm other;
    if (rank == 0)
        MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0)
        recv_from(1, 1, MPI_COMM_WORLD);
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
}

static void test_agree(void) /* rank 0 receives instead of agreeing */
{
    int flag = 1;
    if (rank == 0)
        recv_from(1, 1, MPI_COMM_WORLD);
    MPIX_Comm_agree(MPI_COMM_WORLD, &flag);
}

static void win_lock(void) /* rank 1 receives while it holds the lock of rank 0's window */
{
    int *memory;
    MPI_Win win;
    MPI_Win_allocate(sizeof(int), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    if (rank == 1)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        recv_from(0, 1, MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
}

static void test_probe(void)
{
    MPI_Probe(1 - rank, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void dup_barrier(void) /* one rank duplicates a communicator, the others are in a barrier */
{
    MPI_Comm other;
    if (rank == 0)
        MPI_Comm_dup(MPI_COMM_WORLD, &other);
    else
        MPI_Barrier(MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    void (*run)(void);
} zoo[] = {
    {"ring", test_ring},
    {"sends", test_sends},
    {"tag", test_tag},
    {"communicator", test_communicator},
    {"barrier_recv", barrier_recv},
    {"missing", test_missing},
    {"compute", test_computing_rank},
    {"stopped", test_stopped},
    {"wildcard", test_wildcard},
    {"wild_deadlock", wild_deadlock},
    {"waitany", test_waitany},
    {"waitall", test_waitall},
    {"finalize", test_finalize},
    {"persistent", test_persistent},
    {"split", test_deadlock_between_two},
    {"probe", test_probe},
    {"accept", zoo_accept},
    {"connect", test_connect_without_accept},
    {"agree", test_agree},
    {"win_lock", win_lock},
    {"dup_barrier", dup_barrier},
};

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; argc > 1 && i < sizeof(zoo) / sizeof(zoo[0]); i++)
        if (strcmp(zoo[i].name, argv[1]) == 0)
            zoo[i].run();
    MPI_Finalize();
    return 0;
}
