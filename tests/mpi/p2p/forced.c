/* forced.c: with a forced rendezvous protocol all messages of a job use that protocol, as the counters of
 * all ranks show; with ranks on one node and on separate nodes. For protocols that begin at the receiver,
 * receives are posted before messages are announced.
 *
 * ranks: 2
 * env: FISHPLATE_RENDEZVOUS=r3
 * also: FISHPLATE_RENDEZVOUS=rput
 * also: FISHPLATE_RENDEZVOUS=getcqe
 * also: FISHPLATE_RENDEZVOUS=get FISHPLATE_LAB=IB_LAST_BYTE=yes
 * also: FISHPLATE_RENDEZVOUS=putnr FISHPLATE_LAB=IB_LAST_BYTE=yes
 * also: FISHPLATE_RENDEZVOUS=put FISHPLATE_LAB=IB_LAST_BYTE=yes
 * also: FISHPLATE_RENDEZVOUS=split
 * also: FISHPLATE_RENDEZVOUS=pipe
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

enum { ROUNDS = 40, BYTES = 200000 };

static const char *const protocols[] = {"r3", "rput", "getcqe", "get", "putnr", "put", "split", "pipe"};
enum { PROTOCOLS = sizeof(protocols) / sizeof(protocols[0]) };

static MPI_T_pvar_session session;
static MPI_T_pvar_handle handles[PROTOCOLS];

static void start_counting(void)
{
    int provided, index, count;
    char name[64];
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    for (int i = 0; i < PROTOCOLS; i++) {
        snprintf(name, sizeof(name), "p2p_rendezvous_%s", protocols[i]);
        EXPECT_EQ(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
        MPI_T_pvar_handle_alloc(session, index, NULL, &handles[i], &count);
        MPI_T_pvar_start(session, handles[i]);
    }
}

/* Exchanges messages with neighbours: each receive is posted, and its sender notified, before the message
 * is sent. */
static void exchange_with_neighbours(void)
{
    static char out[BYTES], in[BYTES];
    int right = (mpitest_rank + 1) % mpitest_size, left = (mpitest_rank + mpitest_size - 1) % mpitest_size;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request request;
        memset(out, i + 1, sizeof(out));
        memset(in, 0, sizeof(in));
        MPI_Irecv(in, sizeof(in), MPI_CHAR, left, 1, MPI_COMM_WORLD, &request);
        MPI_Sendrecv(NULL, 0, MPI_CHAR, left, 2, NULL, 0, MPI_CHAR, right, 2, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Send(out, sizeof(out), MPI_CHAR, right, 1, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        EXPECT_EQ(in[0], (char)(i + 1));
        EXPECT_EQ(in[BYTES / 2], (char)(i + 1));
        EXPECT_EQ(in[BYTES - 1], (char)(i + 1));
    }
}

int main(int argc, char **argv)
{
    const char *forced = getenv("FISHPLATE_RENDEZVOUS");
    unsigned long long mine[PROTOCOLS] = {0}, all[PROTOCOLS];
    start_counting();
    mpitest_begin(&argc, &argv);
    exchange_with_neighbours();
    for (int i = 0; i < PROTOCOLS; i++)
        MPI_T_pvar_read(session, handles[i], &mine[i]);
    MPI_Allreduce(mine, all, PROTOCOLS, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < PROTOCOLS; i++) {
        unsigned long long expected = forced && strcmp(forced, protocols[i]) == 0
                                          ? (unsigned long long)ROUNDS * (unsigned)mpitest_size
                                          : 0;
        if (all[i] != expected && mpitest_rank == 0)
            printf("FISHPLATE_RENDEZVOUS=%s: %llu messages by protocol %s, expected %llu\n",
                   forced ? forced : "not set", all[i], protocols[i], expected);
        EXPECT_EQ(all[i], expected);
    }
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return mpitest_end();
}
