/* counts.c: between connected ranks on different nodes MPI_Win_post, MPI_Win_complete and MPI_Win_fence
 * write counters by RDMA: no frame is sent, and data arrives before the counter. Waiting ranks sleep,
 * poll, or let a thread make progress.
 *
 * ranks: 4
 * nodes: only 4
 * also: FISHPLATE_SPIN_US=0 FISHPLATE_LAB=YIELDS=0
 * also: FISHPLATE_PROGRESS=thread
 * also: SOFTIB_FABRIC=hcas=2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "counters.h"
#include "rma/windows.h"

enum { WARM = 12, ROUNDS = 20, WORDS = 2048 }; /* WARM: rounds not counted; the first barriers use messages */

static MPI_T_pvar_handle frames, counts, barriers[3];

static void fill_data(int *data, int value)
{
    for (int i = 0; i < WORDS; i++)
        data[i] = value + i;
}

static void expect_filled(const int *data, int value)
{
    int wrong = 0;
    for (int i = 0; i < WORDS; i++)
        wrong += data[i] != value + i;
    EXPECT_EQ(wrong, 0);
}

/* Every rank writes to its right neighbour, with MPI_Win_test or MPI_Win_wait. */
static void test_post_and_complete(struct window *w, int by_test)
{
    const int right = (w->rank + 1) % w->size, left = (w->rank + w->size - 1) % w->size;
    int out[WORDS], done;
    unsigned long long frames_before = 0, counts_before = 0;
    MPI_Group all, to, from;
    MPI_Win_get_group(w->win, &all);
    MPI_Group_incl(all, 1, &right, &to);
    MPI_Group_incl(all, 1, &left, &from);
    for (int k = 0; k < WARM + ROUNDS; k++) {
        if (k == WARM) {
            MPI_Barrier(w->comm);
            frames_before = read_counter(frames);
            counts_before = read_counter(counts);
        }
        fill_data(out, 1000 * w->rank + k);
        MPI_Win_post(from, 0, w->win);
        MPI_Win_start(to, 0, w->win);
        MPI_Put(out, WORDS, MPI_INT, right, 0, WORDS, MPI_INT, w->win);
        MPI_Win_complete(w->win);
        for (done = 0; by_test && !done;)
            MPI_Win_test(w->win, &done);
        if (!by_test)
            MPI_Win_wait(w->win);
        expect_filled((const int *)w->memory, 1000 * left + k);
    }
    EXPECT_EQ(read_counter(frames), frames_before);
    EXPECT_EQ(read_counter(counts), counts_before + 2 * ROUNDS);
    MPI_Group_free(&all);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
    MPI_Barrier(w->comm);
}

/* An accumulate is sent as a frame, and so is the complete that follows it, which must not overtake the
 * accumulate. */
static void test_complete_after_accumulate(struct window *w)
{
    const int to = (w->rank + 1) % w->size;
    double *sums = (double *)w->memory, one[WORDS / 2];
    MPI_Group others = window_get_other_ranks(w);
    for (int i = 0; i < WORDS / 2; i++)
        one[i] = 1;
    memset(sums, 0, sizeof(one));
    MPI_Barrier(w->comm);
    for (int k = 1; k <= 4; k++) {
        MPI_Win_post(others, 0, w->win);
        MPI_Win_start(others, 0, w->win);
        MPI_Accumulate(one, WORDS / 2, MPI_DOUBLE, to, 0, WORDS / 2, MPI_DOUBLE, MPI_SUM, w->win);
        MPI_Win_complete(w->win);
        MPI_Win_wait(w->win);
        for (int i = 0; i < WORDS / 2; i += 97)
            EXPECT_EQ((int)sums[i], k);
    }
    MPI_Group_free(&others);
}

/* Returns the number of barriers between nodes that used no messages. */
static unsigned long long count_counter_barriers(void)
{
    return read_counter(barriers[0]) + read_counter(barriers[1]) + read_counter(barriers[2]);
}

static void test_fences(struct window *w)
{
    const int right = (w->rank + 1) % w->size, left = (w->rank + w->size - 1) % w->size;
    unsigned long long before = 0, met = 0;
    int out[WORDS];
    for (int k = 0; k < WARM + ROUNDS; k++) {
        if (k == WARM) {
            before = read_counter(frames);
            met = count_counter_barriers();
        }
        fill_data(out, 500 * w->rank + k);
        MPI_Win_fence(0, w->win);
        MPI_Put(out, WORDS, MPI_INT, right, 0, WORDS, MPI_INT, w->win);
        MPI_Win_fence(0, w->win);
        expect_filled((const int *)w->memory, 500 * left + k);
    }
    EXPECT_EQ(read_counter(frames), before);
    /* Not every barrier counts: the tuner also tries other methods. */
    EXPECT(count_counter_barriers() >= met + ROUNDS);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
}

int main(int argc, char **argv)
{
    struct window w;
    counters_begin();
    frames = counter_open("rma_frames_sent");
    counts = counter_open("rma_counts_written");
    barriers[0] = counter_open("coll_barrier_rdma");
    barriers[1] = counter_open("coll_barrier_switch");
    barriers[2] = counter_open("coll_barrier_multicast");
    mpitest_begin(&argc, &argv);
    for (int flavor = CREATED; flavor <= ALLOCATED; flavor++) {
        if (!window_open(&w, (enum flavor)flavor, WORDS * sizeof(int)))
            continue;
        test_post_and_complete(&w, 0);
        test_post_and_complete(&w, 1);
        test_complete_after_accumulate(&w);
        test_fences(&w);
        window_close(&w);
    }
    counters_end();
    return mpitest_end();
}
