/* sessions.c: the progress thread ends with the last session and starts again with the next, and ends in
 * MPI_Finalize if the world model is its last user.
 *
 * ranks: 2 1 3 4 5 8
 * env: FISHPLATE_PROGRESS=thread
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dirent.h>
#include <sched.h>

#include "mpitest.h"

/* Returns the number of threads with the library's name. A new thread gets its name shortly after its
 * start, and a joined thread leaves the list shortly after its end. */
static int count_library_threads(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/task");
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[300], name[32] = "";
        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
        FILE *f = fopen(path, "r");
        if (f && fgets(name, sizeof(name), f))
            n += strcmp(name, "fishplate\n") == 0;
        if (f)
            fclose(f);
    }
    if (dir)
        closedir(dir);
    return n;
}

static int wait_for_threads(int wanted)
{
    for (int i = 0; i < 100000 && count_library_threads() != wanted; i++)
        sched_yield();
    return count_library_threads();
}

static void pass_around_ring(MPI_Comm comm)
{
    int rank, size, from = -1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &from, 1, MPI_INT, (rank + size - 1) % size, 0,
                 comm, MPI_STATUS_IGNORE);
    EXPECT_EQ(from, (rank + size - 1) % size);
}

static void run_session(void)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    EXPECT_EQ(wait_for_threads(0), 0);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    EXPECT_EQ(wait_for_threads(1), 1);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "progress", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    pass_around_ring(comm);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
    EXPECT_EQ(wait_for_threads(0), 0);
}

int main(int argc, char **argv)
{
    for (int i = 0; i < 3; i++)
        run_session();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &mpitest_rank);
    EXPECT_EQ(wait_for_threads(1), 1);
    pass_around_ring(MPI_COMM_WORLD);
    MPI_Finalize();
    EXPECT_EQ(wait_for_threads(0), 0);
    return mpitest_failures != 0;
}
