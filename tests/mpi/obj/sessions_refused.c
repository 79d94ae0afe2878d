/* sessions_refused.c: MPI_Session_init fails because a file that FISHPLATE_COLL names is missing, and the
 * program continues without MPI: a second attempt fails too.
 *
 * ranks: 1
 * nodes: no
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <sys/wait.h>
#include <unistd.h>

#include "mpitest.h"

static int try_sessions(void)
{
    MPI_Session session = MPI_SESSION_NULL;
    for (int i = 0; i < 2; i++) {
        EXPECT(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS);
        EXPECT(session == MPI_SESSION_NULL);
    }
    return mpitest_failures ? 1 : 0;
}

int main(int argc, char **argv)
{
    int status = 1;
    /* mpiexec would end the job of a process that ends without MPI_Finalize, so the process is not its rank. */
    const pid_t pid = fork();
    if (pid == 0) {
        unsetenv("PMI_FD");
        setenv("FISHPLATE_COLL", "@/dev/null/missing.coll", 1);
        return try_sessions();
    }
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
    mpitest_begin(&argc, &argv);
    return mpitest_end();
}
