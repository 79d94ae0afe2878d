/* opening.c: messages that are sent while their connection is being opened are queued and sent as soon as
 * it is open: they are not announced, as messages without credits are, and none is counted as starved.
 *
 * ranks: 2
 * nodes: only 2
 * also: FISHPLATE_LAB=IB_FLOW=static FISHPLATE_IB_BUFFERS=8
 * also: FISHPLATE_IB_RECEIVE=shared
 * also: FISHPLATE_IB_RECEIVE=xrc
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

enum { MESSAGES = 3, BYTES = 4000 };

static const char *const names[] = {"p2p_starved_rendezvous", "p2p_rendezvous", "p2p_eager_queued"};
enum { STARVED, ANNOUNCED, QUEUED, NAMES };

int main(int argc, char **argv)
{
    static char out[BYTES], in[MESSAGES][BYTES];
    int provided, index, count;
    unsigned long long value[NAMES] = {0};
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handles[NAMES];
    MPI_Request requests[2 * MESSAGES];
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    for (int i = 0; i < NAMES; i++) {
        EXPECT_EQ(MPI_T_pvar_get_index(names[i], MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
        MPI_T_pvar_handle_alloc(session, index, NULL, &handles[i], &count);
        MPI_T_pvar_start(session, handles[i]);
    }
    mpitest_begin(&argc, &argv);
    memset(out, 7, sizeof(out));
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Irecv(in[i], BYTES, MPI_CHAR, 1 - mpitest_rank, i, MPI_COMM_WORLD, &requests[i]);
        MPI_Isend(out, BYTES, MPI_CHAR, 1 - mpitest_rank, i, MPI_COMM_WORLD, &requests[MESSAGES + i]);
    }
    MPI_Waitall(2 * MESSAGES, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < NAMES; i++)
        MPI_T_pvar_read(session, handles[i], &value[i]);
    for (int i = 0; i < MESSAGES; i++)
        EXPECT_EQ(in[i][BYTES - 1], 7);
    EXPECT_EQ(value[STARVED], 0);
    EXPECT_EQ(value[ANNOUNCED], 0);
    MPI_Allreduce(MPI_IN_PLACE, &value[QUEUED], 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(value[QUEUED] > 0); /* otherwise the connection was already open, and nothing was tested */
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return mpitest_end();
}
