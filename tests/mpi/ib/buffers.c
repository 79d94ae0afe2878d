/* buffers.c: a program that allocates a large buffer for each message and frees it again does not pay for a
 * registration each time: malloc keeps the memory. Where it is told not to, the messages are right all the
 * same.
 *
 * ranks: 2
 * nodes: only 2
 * also: FISHPLATE_MALLOC=leave
 * also: MALLOC_TOP_PAD_=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../p2p/pattern.h"

enum { MESSAGES = 40, BYTES = 3 << 20 };

static MPI_T_pvar_session session;
static MPI_T_pvar_handle misses;

static void start_counting(void)
{
    int provided, index, count;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    EXPECT_EQ(MPI_T_pvar_get_index("reg_misses", MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
    MPI_T_pvar_handle_alloc(session, index, NULL, &misses, &count);
    MPI_T_pvar_start(session, misses);
}

static void one_message(int seed)
{
    struct layout l = layout_of(BYTES, 0);
    char *buf = malloc(BYTES);
    EXPECT(buf != NULL);
    if (mpitest_rank == 0) {
        pattern_fill(buf, &l, seed);
        MPI_Send(buf, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    } else {
        MPI_Recv(buf, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT_EQ(pattern_wrong(buf, &l, seed), 0);
    }
    free(buf);
}

int main(int argc, char **argv)
{
    start_counting();
    mpitest_begin(&argc, &argv);
    for (int i = 0; i < MESSAGES; i++)
        one_message(i);
    unsigned long long registered = 0;
    MPI_T_pvar_read(session, misses, &registered);
    EXPECT(registered > 0);
    if (!getenv("FISHPLATE_MALLOC") && !getenv("MALLOC_TOP_PAD_"))
        EXPECT(registered < MESSAGES / 2);
    return mpitest_end();
}
