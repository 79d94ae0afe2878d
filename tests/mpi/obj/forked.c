/* forked.c: MPI calls in a forked child: each call ends the child with an error message, sends nothing on
 * behalf of the parent, and the parent's own messages arrive. Calls that need no initialised MPI still
 * work.
 *
 * ranks: 2 4
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mpitest.h"

enum { WRONG = 999, RIGHT = 7 };

static int word = WRONG;
static MPI_Comm copy;
static MPI_Request pending;

static void call_send(void)
{
    MPI_Send(&word, 1, MPI_INT, (mpitest_rank + 1) % mpitest_size, 5, MPI_COMM_WORLD);
}
static void call_on_duplicate_comm(void)
{
    MPI_Send(&word, 1, MPI_INT, (mpitest_rank + 1) % mpitest_size, 5, copy);
}
static void call_allreduce(void)
{
    MPI_Allreduce(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}
static void call_wait(void)
{
    MPI_Wait(&pending, MPI_STATUS_IGNORE);
}
static void call_rank(void)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &word);
}
static void call_abort(void)
{
    MPI_Abort(MPI_COMM_WORLD, 5);
}
static void call_init(void)
{
    MPI_Init(NULL, NULL);
}
static void call_session(void)
{
    MPI_Session s;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
}
static void call_finalize(void)
{
    MPI_Finalize();
}
static void call_permitted_functions(void)
{
    int flag, version, subversion;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Initialized(&flag);
    if (!flag)
        _exit(2);
    /* True in a forked child, so that the clean-up code of libraries makes no MPI call. */
    MPI_Finalized(&flag);
    if (!flag)
        _exit(3);
    MPI_Get_version(&version, &subversion);
    MPI_Error_string(MPI_ERR_RANK, text, &flag);
    _exit(version == 5 && MPI_Wtime() > 0 ? 4 : 5);
}

/* Runs one call in a forked child and reads its output. */
static void run_in_child(void (*call)(void), const char *function, int status_wanted)
{
    char said[4096];
    size_t used = 0;
    int out[2], status;
    EXPECT(pipe(out) == 0);
    fflush(NULL);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        dup2(out[1], STDERR_FILENO);
        call();
        _exit(0);
    }
    close(out[1]);
    for (ssize_t n; (n = read(out[0], said + used, sizeof(said) - 1 - used)) > 0;)
        used += (size_t)n;
    said[used] = '\0';
    close(out[0]);
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), status_wanted);
    const int sentence = strstr(said, "was called in a forked child") != NULL;
    EXPECT_EQ(sentence, function != NULL);
    if (function && !strstr(said, function))
        EXPECT(!"the sentence names the function");
    if (mpitest_failures)
        fprintf(stderr, "output of the child: %s\n", said);
}

/* Messages that the children tried to send would arrive before the message of the parent. */
static void expect_message_of_parent(MPI_Comm comm)
{
    int mine = RIGHT, theirs = 0, from = (mpitest_rank + mpitest_size - 1) % mpitest_size;
    MPI_Sendrecv(&mine, 1, MPI_INT, (mpitest_rank + 1) % mpitest_size, 5, &theirs, 1, MPI_INT, from, 5, comm,
                 MPI_STATUS_IGNORE);
    EXPECT_EQ(theirs, RIGHT);
}

int main(int argc, char **argv)
{
    int late = 0;
    mpitest_begin(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Irecv(&late, 1, MPI_INT, (mpitest_rank + mpitest_size - 1) % mpitest_size, 6, copy, &pending);
    run_in_child(call_send, "MPI_Send", 1);
    run_in_child(call_on_duplicate_comm, "MPI_Send", 1);
    expect_message_of_parent(MPI_COMM_WORLD);
    expect_message_of_parent(copy);
    run_in_child(call_allreduce, "MPI_Allreduce", 1);
    run_in_child(call_wait, "MPI_Wait", 1);
    run_in_child(call_rank, "MPI_Comm_rank", 1);
    run_in_child(call_abort, "MPI_Abort", 1);
    run_in_child(call_init, "MPI_Init", 1);
    run_in_child(call_session, "MPI_Session_init", 1);
    run_in_child(call_finalize, "MPI_Finalize", 1);
    run_in_child(call_permitted_functions, NULL, 4);
    word = RIGHT;
    MPI_Send(&word, 1, MPI_INT, (mpitest_rank + 1) % mpitest_size, 6, copy);
    MPI_Wait(&pending, MPI_STATUS_IGNORE);
    EXPECT_EQ(late, RIGHT);
    expect_message_of_parent(MPI_COMM_WORLD);
    MPI_Comm_free(&copy);
    return mpitest_end();
}
