/* lost.c: the program of the tests of lost hosts and adapters, under -enable-recovery. All ranks run
 * barriers until some ranks become unreachable. All remaining ranks must get MPIX_ERR_PROC_FAILED, report
 * the same failed ranks, and continue.
 *     lost UP GO LOST...
 *         UP: a pipe for "RANK PID HOST" of each rank after the first barrier, and "on SIZE" of the first remaining rank
 *         GO: a pipe from which that rank reads a line before the end
 *         LOST: ranks
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <mpi-ext.h>
#include <unistd.h>

#include "mpitest.h"

static const char *up, *go;

static int error_class_of(int rc)
{
    int errclass = rc;
    MPI_Error_class(rc, &errclass);
    return errclass;
}

/* Prints with one write, so that lines of several ranks do not mix. */
static void write_line(const char *line)
{
    int fd = open(up, O_WRONLY);
    EXPECT(fd >= 0 && write(fd, line, strlen(line)) == (ssize_t)strlen(line));
    close(fd);
}

static void wait_for_line(void)
{
    char line[16];
    int fd = open(go, O_RDONLY);
    EXPECT(fd >= 0 && read(fd, line, sizeof(line)) > 0);
    close(fd);
}

static void expect_failed(int argc, char **argv)
{
    MPI_Group failed, world;
    int n, from[64], ranks[64], want = 0;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    EXPECT_EQ(MPIX_Comm_get_failed(MPI_COMM_WORLD, &failed), MPI_SUCCESS);
    MPI_Group_size(failed, &n);
    EXPECT_EQ(n, argc - 3);
    for (int i = 0; i < n; i++)
        from[i] = i;
    MPI_Group_translate_ranks(failed, n, from, world, ranks);
    for (int k = 3; k < argc; k++)
        for (int i = 0; i < n; i++)
            want += ranks[i] == atoi(argv[k]);
    EXPECT_EQ(want, argc - 3);
    MPI_Group_free(&failed);
    MPI_Group_free(&world);
}

/* Returns a communicator of the remaining ranks; a second attempt excludes ranks that were lost during the
 * first one. */
static MPI_Comm shrink_twice(int size)
{
    MPI_Comm left = MPI_COMM_WORLD;
    int n;
    for (MPI_Comm_size(left, &n); n > size; MPI_Comm_size(left, &n)) {
        MPI_Comm next;
        while (error_class_of(MPI_Barrier(left)) == MPI_SUCCESS) {
        }
        EXPECT_EQ(MPIX_Comm_shrink(left, &next), MPI_SUCCESS);
        left = next;
    }
    EXPECT_EQ(n, size);
    return left;
}

int main(int argc, char **argv)
{
    char line[512], host[256] = "";
    int rank, rc;
    mpitest_begin(&argc, &argv);
    up = argv[1];
    go = argv[2];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    EXPECT_EQ(MPI_Barrier(MPI_COMM_WORLD), MPI_SUCCESS);
    snprintf(host, sizeof(host), "%s", getenv("FISHPLATE_HOST") ? getenv("FISHPLATE_HOST") : "-");
    snprintf(line, sizeof(line), "%d %d %s\n", mpitest_rank, (int)getpid(), host);
    write_line(line);
    while ((rc = MPI_Barrier(MPI_COMM_WORLD)) == MPI_SUCCESS) {
    }
    EXPECT_EQ(error_class_of(rc), MPIX_ERR_PROC_FAILED);
    MPI_Comm left = shrink_twice(mpitest_size - (argc - 3));
    expect_failed(argc, argv);
    MPI_Comm_rank(left, &rank);
    if (rank == 0) {
        snprintf(line, sizeof(line), "on %d\n", mpitest_size - (argc - 3));
        write_line(line);
        wait_for_line();
    }
    EXPECT_EQ(MPI_Barrier(left), MPI_SUCCESS);
    printf("rank %d goes on\n", mpitest_rank);
    MPI_Finalize();
    return mpitest_failures ? 1 : 0;
}
