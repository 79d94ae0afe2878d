/* joined.c: two jobs of different mpiexec commands are joined in one communicator. A process of the second
 * job dies, and the others continue: window calls, MPI_Comm_create_group and MPIX_Comm_revoke return an
 * error at every living process, and the window can be freed, whether a job was started with
 * -enable-recovery or not. tests/launcher/joined.sh runs the program.
 *
 *     first NAME    publishes a port, prints "published" and accepts the second job
 *     second NAME   connects; its rank 1 is killed
 *     broker NAME   the first job of three; accepts the third one as well
 *     watcher NAME  the second job of three: connected with the first one, learns of the third one from it
 *     third NAME    connects to the first job; its rank 1 is killed
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi-ext.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { TAG_GROUP = 5, TAG_NEVER, TAG_INTER };

static int rank;

static int error_class_of(int rc)
{
    int class = rc;
    MPI_Error_class(rc, &class);
    return class;
}

static const char *error_class_name(int rc)
{
    const int class = error_class_of(rc);
    return class == MPI_SUCCESS            ? "success"
           : class == MPIX_ERR_PROC_FAILED ? "failed process"
           : class == MPIX_ERR_REVOKED     ? "revoked"
                                           : "another error";
}

static void report_result(const char *what, int rc)
{
    printf("rank %d: %s: %s\n", rank, what, error_class_name(rc));
}

static MPI_Comm join_jobs(const char *name, int accepts)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    if (accepts && rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Publish_name(name, MPI_INFO_NULL, port);
        printf("published\n");
        fflush(stdout);
    }
    if (!accepts && rank == 0)
        MPI_Lookup_name(name, MPI_INFO_NULL, port);
    if (accepts)
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    else
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    return inter;
}

/* Waits until this process has learned of the death. */
static void wait_for_death(MPI_Comm both, int victim)
{
    int nothing;
    report_result("receive", MPI_Recv(&nothing, 1, MPI_INT, victim, TAG_NEVER, both, MPI_STATUS_IGNORE));
}

/* Creates a communicator after the death. In the tree over the group's five processes the victim is a leaf
 * whose parent is alive and not the root. */
static void create_group(MPI_Comm both)
{
    MPI_Group all;
    MPI_Comm made;
    MPI_Comm_group(both, &all);
    report_result("group", MPI_Comm_create_group(both, all, TAG_GROUP, &made));
    MPI_Group_free(&all);
}

static void test_window(MPI_Win win, int victim)
{
    const int one = 1;
    MPI_Group partner, all;
    int rc = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, victim, 0, win);
    if (!rc) {
        MPI_Put(&one, 1, MPI_INT, victim, 0, 1, MPI_INT, win);
        rc = MPI_Win_unlock(victim, win);
    }
    report_result("lock", rc);
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, &victim, &partner);
    rc = MPI_Win_start(partner, 0, win);
    report_result("start", rc ? rc : MPI_Win_complete(win));
    MPI_Group_free(&partner);
    MPI_Group_free(&all);
    report_result("fence", MPI_Win_fence(0, win));
}

static void revoke_joined(MPI_Comm both)
{
    int nothing, place;
    MPI_Comm_rank(both, &place);
    if (place == 0)
        MPIX_Comm_revoke(both);
    else
        MPI_Recv(&nothing, 1, MPI_INT, 0, TAG_NEVER, both, MPI_STATUS_IGNORE);
    report_result("revoked", MPI_Send(&place, 1, MPI_INT, 0, TAG_NEVER, both));
}

static void join_two(const char *name, int is_first)
{
    MPI_Comm inter = join_jobs(name, is_first), both;
    MPI_Win win;
    int place, victim = -1, *memory;
    MPI_Intercomm_merge(inter, !is_first, &both);
    MPI_Comm_free(&inter);
    MPI_Comm_set_errhandler(both, MPI_ERRORS_RETURN);
    MPI_Comm_rank(both, &place);
    if (!is_first && rank == 1)
        victim = place;
    MPI_Allreduce(MPI_IN_PLACE, &victim, 1, MPI_INT, MPI_MAX, both);
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, both, &memory, &win);
    MPI_Win_free(&win); /* a window that is freed before any process has died */
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, both, &memory, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Barrier(both);
    if (place == victim)
        raise(SIGKILL);
    wait_for_death(both, victim);
    create_group(both);
    test_window(win, victim);
    report_result("free", MPI_Win_free(&win));
    revoke_joined(both);
    MPI_Comm_free(&both);
}

/* The first job joins the second one, and connects the two to the third one. */
static void join_three(const char *name, const char *role)
{
    const int is_first = strcmp(role, "broker") == 0, is_third = strcmp(role, "third") == 0;
    MPI_Comm inter, both = MPI_COMM_SELF, third = MPI_COMM_NULL, all;
    int nothing;
    if (is_third) {
        char text[64];
        snprintf(text, sizeof(text), "%s-third", name);
        third = join_jobs(text, 0);
        MPI_Intercomm_create(MPI_COMM_WORLD, 0, third, 0, TAG_INTER, &all);
        MPI_Barrier(all);
        if (rank == 1)
            raise(SIGKILL);
        MPI_Comm_free(&all);
        return;
    }
    inter = join_jobs(name, is_first);
    MPI_Intercomm_merge(inter, !is_first, &both);
    if (is_first) {
        char text[64];
        snprintf(text, sizeof(text), "%s-third", name);
        third = join_jobs(text, 1);
    }
    MPI_Intercomm_create(both, 0, third, 0, TAG_INTER, &all);
    MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
    MPI_Barrier(all);
    report_result("third", MPI_Recv(&nothing, 1, MPI_INT, 1, TAG_NEVER, all, MPI_STATUS_IGNORE));
    MPI_Comm_free(&all);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 3)
        MPI_Abort(MPI_COMM_WORLD, 9);
    if (strcmp(argv[1], "first") == 0 || strcmp(argv[1], "second") == 0)
        join_two(argv[2], strcmp(argv[1], "first") == 0);
    else
        join_three(argv[2], argv[1]);
    MPI_Finalize();
    return 0;
}
