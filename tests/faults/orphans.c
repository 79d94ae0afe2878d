/* orphans.c: rank 1 of 2 parents dies after it has sent its part of the last agreement of MPI_Comm_spawn (kill point
 * assembly_contributed). If the call fails at rank 0, which runs on, the children would wait for ever for a message from
 * rank 0: they must end. If it succeeds, since rank 0 is not notified of the death yet, the message must arrive.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CHILDREN = 3, PATIENCE_S = 40 };

/* Writes the process number of a child to the file that the parent made. */
static void record_child(const char *path)
{
    const pid_t me = getpid();
    const int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0 || write(fd, &me, sizeof(me)) != sizeof(me))
        abort();
    close(fd);
}

static void run_child(const char *path)
{
    MPI_Comm parents;
    char byte;
    record_child(path);
    MPI_Init(NULL, NULL);
    MPI_Comm_get_parent(&parents);
    MPI_Comm_set_errhandler(parents, MPI_ERRORS_RETURN);
    MPI_Recv(&byte, 1, MPI_BYTE, 0, 0, parents, MPI_STATUS_IGNORE);
    MPI_Finalize();
}

static int count_living_children(int fd)
{
    pid_t pids[CHILDREN];
    const ssize_t n = pread(fd, pids, sizeof(pids), 0);
    int living = 0;
    for (int i = 0; i < n / (ssize_t)sizeof(pids[0]); i++)
        living += kill(pids[i], 0) == 0;
    return living;
}

static void wait_for_end_of_children(int fd)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    int living = CHILDREN;
    for (int i = 0; i < PATIENCE_S * 100 && (living = count_living_children(fd)) > 0; i++)
        nanosleep(&pause, NULL);
    if (living)
        printf("FAILED: %d children still run after %d s\n", living, PATIENCE_S);
    else
        printf("all children have ended\n");
}

int main(int argc, char **argv)
{
    char path[] = "/tmp/fishplate-orphans-XXXXXX";
    MPI_Comm children;
    MPI_Info info;
    int rank;
    if (argc > 1) {
        run_child(argv[1]);
        return 0;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Info_create(&info);
    MPI_Info_set(info, "env", "FISHPLATE_KILL_AT=");
    const int fd = rank == 0 ? mkstemp(path) : -1;
    const int rc = MPI_Comm_spawn(argv[0], (char *[]){path, NULL}, CHILDREN, info, 0, MPI_COMM_WORLD,
                                  &children, MPI_ERRCODES_IGNORE);
    for (int i = 0; i < CHILDREN && rc == 0; i++)
        MPI_Send(path, 1, MPI_BYTE, i, 0, children);
    wait_for_end_of_children(fd);
    unlink(path);
    MPI_Info_free(&info);
    MPI_Finalize();
    return 0;
}
