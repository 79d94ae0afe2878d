/* switch_groups.c: every communicator has a barrier group of its own in the switch; when all are in use the next ones do without,
 * and groups come back when communicators are freed.
 *
 * ranks: 2
 * nodes: only 2
 * env: FISHPLATE_COLL=barrier=switch FISHPLATE_VERBS=softib
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

enum { GROUPS = 128, MORE = 5 }; /* as many as softib's switch has */

static MPI_T_pvar_session session;

static MPI_T_pvar_handle counter_open(const char *name)
{
    MPI_T_pvar_handle handle;
    int index, count;
    EXPECT_EQ(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
    MPI_T_pvar_start(session, handle);
    return handle;
}

static unsigned long long counter(MPI_T_pvar_handle handle)
{
    unsigned long long value = 0;
    MPI_T_pvar_read(session, handle, &value);
    return value;
}

/* The first barrier of a communicator is done by messages. */
static void two_barriers(MPI_Comm comm)
{
    MPI_Barrier(comm);
    MPI_Barrier(comm);
}

int main(int argc, char **argv)
{
    static MPI_Comm comms[GROUPS + MORE];
    int provided;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle switched = counter_open("coll_switched"), full = counter_open("coll_switch_full"),
                      written = counter_open("coll_written");
    mpitest_begin(&argc, &argv);
    for (int i = 0; i < GROUPS + MORE; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        two_barriers(comms[i]);
    }
    EXPECT_EQ(counter(switched), GROUPS);
    EXPECT_EQ(counter(written), MORE);
    EXPECT_EQ(counter(full), mpitest_rank == 0 ? MORE : 0);
    for (int i = 0; i < GROUPS + MORE; i++)
        MPI_Barrier(comms[i]);
    for (int i = 0; i < GROUPS + MORE; i++)
        MPI_Comm_free(&comms[i]);
    two_barriers(MPI_COMM_WORLD); /* after which both ranks have left the groups */
    const unsigned long long before = counter(switched);
    for (int i = 0; i < MORE; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        two_barriers(comms[i]);
        MPI_Comm_free(&comms[i]);
    }
    EXPECT_EQ(counter(switched), before + MORE);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return mpitest_end();
}
