/* aborts.c: how an error ends a job. Without an argument: checks the initial error handler. With an
 * argument: ends the job in the way that the argument names; tests/tools/aborts.sh checks the exit status
 * and the message.
 *
 * ranks: 1 2 3 4 5 8
 * also: FISHPLATE_INITIAL_ERRHANDLER=mpi_errors_return
 * also: FISHPLATE_INITIAL_ERRHANDLER=mpi_errors_abort
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

static void expect_handler(MPI_Comm c, MPI_Errhandler wanted)
{
    MPI_Errhandler got;
    MPI_Comm_get_errhandler(c, &got);
    EXPECT(got == wanted);
    MPI_Errhandler_free(&got);
}

/* Checks that communicators, and everything before MPI_Init, have the initial error handler. */
static void check_initial_handler(int *argc, char ***argv)
{
    const char *name = getenv("FISHPLATE_INITIAL_ERRHANDLER");
    MPI_Errhandler wanted = MPI_ERRORS_ARE_FATAL;
    MPI_Comm dup;
    MPI_Info env;
    char value[64] = "";
    int keys, flag, len = sizeof(value);
    name = name ? name : "mpi_errors_are_fatal";
    if (strcmp(name, "mpi_errors_return") == 0) {
        wanted = MPI_ERRORS_RETURN;
        EXPECT_EQ(MPI_Info_get_nkeys(MPI_INFO_NULL, &keys), MPI_ERR_INFO);
    } else if (strcmp(name, "mpi_errors_abort") == 0) {
        wanted = MPI_ERRORS_ABORT;
    }
    MPI_Info_create_env(*argc, *argv, &env);
    MPI_Info_get_string(env, "mpi_initial_errhandler", &len, value, &flag);
    EXPECT(flag && strcmp(value, name) == 0);
    MPI_Info_free(&env);
    mpitest_begin(argc, argv);
    expect_handler(MPI_COMM_WORLD, wanted);
    expect_handler(MPI_COMM_SELF, wanted);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    expect_handler(dup, wanted);
    MPI_Comm_free(&dup);
    len = sizeof(value);
    MPI_Info_get_string(MPI_INFO_ENV, "mpi_initial_errhandler", &len, value, &flag);
    EXPECT(flag && strcmp(value, name) == 0);
}

/* Waits until the job ends; a rank that returns exits with an unexpected status. */
static int wait_for_job_end(MPI_Comm c)
{
    int x;
    MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 1, c, MPI_STATUS_IGNORE);
    return 99;
}

static int abort_world(MPI_Comm last, int is_last)
{
    (void)last;
    if (is_last)
        MPI_Abort(MPI_COMM_WORLD, 7);
    return wait_for_job_end(MPI_COMM_WORLD);
}

static int abort_self(MPI_Comm last, int is_last)
{
    (void)last;
    if (is_last)
        MPI_Abort(MPI_COMM_SELF, 8);
    return wait_for_job_end(MPI_COMM_WORLD);
}

static int abort_part_of_world(MPI_Comm last, int is_last)
{
    if (is_last)
        MPI_Abort(last, 9);
    return wait_for_job_end(MPI_COMM_WORLD);
}

static int fail_with_errors_abort(MPI_Comm last, int is_last)
{
    int x = 0;
    if (is_last) {
        MPI_Comm_set_errhandler(last, MPI_ERRORS_ABORT);
        MPI_Send(&x, 1, MPI_INT, 99, 0, last);
    }
    return wait_for_job_end(MPI_COMM_WORLD);
}

static int fail_with_errors_are_fatal(MPI_Comm last, int is_last)
{
    int x = 0;
    if (is_last) {
        MPI_Comm_set_errhandler(last, MPI_ERRORS_ARE_FATAL);
        MPI_Send(&x, -1, MPI_INT, 0, 0, last);
    }
    return wait_for_job_end(MPI_COMM_WORLD);
}

static int call_abort(MPI_Comm last, int is_last)
{
    if (is_last) {
        MPI_Comm_set_errhandler(last, MPI_ERRORS_ABORT);
        MPI_Comm_call_errhandler(last, MPI_ERR_IO);
    }
    return wait_for_job_end(MPI_COMM_WORLD);
}

static int fail_in_session(MPI_Comm last, int is_last)
{
    MPI_Session s;
    MPI_Group g;
    (void)last;
    if (is_last) {
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
        MPI_Session_set_errhandler(s, MPI_ERRORS_ABORT);
        MPI_Group_from_session_pset(s, "mpi://NOWHERE", &g);
    }
    return wait_for_job_end(MPI_COMM_WORLD);
}

static int end_job(const char *way)
{
    static const struct {
        const char *name;
        int (*run)(MPI_Comm last, int is_last);
    } endings[] = {{"world", abort_world},
                   {"self", abort_self},
                   {"part", abort_part_of_world},
                   {"errors", fail_with_errors_abort},
                   {"fatal", fail_with_errors_are_fatal},
                   {"called", call_abort},
                   {"session", fail_in_session}};
    MPI_Comm last;
    int is_last = mpitest_rank == mpitest_size - 1;
    MPI_Comm_split(MPI_COMM_WORLD, is_last, 0, &last);
    MPI_Comm_set_name(last, is_last ? "the last" : "the others");
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
        if (strcmp(endings[i].name, way) == 0)
            return endings[i].run(last, is_last);
    return 98;
}

/* Uses sessions only, without MPI_Init. */
static int fail_in_session_only(void)
{
    MPI_Session s;
    MPI_Group g;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ABORT, &s);
    MPI_Group_from_session_pset(s, "mpi://NOWHERE", &g);
    return 99;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "alone") == 0)
        return fail_in_session_only();
    if (argc > 1) {
        mpitest_begin(&argc, &argv);
        return end_job(argv[1]);
    }
    check_initial_handler(&argc, &argv);
    return mpitest_end();
}
