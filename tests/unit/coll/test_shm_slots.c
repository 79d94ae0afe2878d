/* test_shm_slots.c: every order in which a few ranks may write, read and reuse the slots of shared memory,
 * in consecutive broadcasts, gathers and all-to-all steps: no rank reads data of another step, and no rank
 * waits forever. Data is written and read in two halves, so that a reader may run in between; the first
 * half is announced as a part and may be read at once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/shm/slots.h"

#include "net/explore.h"
#include "test.h"

enum { RANKS = 3, DEPTH_MAX = 3, STEPS = 10, EVERYONE = SLOTS_EVERYONE };
enum stage {
    BEGIN,
    FIRST_HALF,
    ANNOUNCE_PART,
    SECOND_HALF,
    POST,
    WAIT,
    READ_FIRST,
    WAIT_REST,
    READ_SECOND,
    DONE
};

/* Deliberate defects that the search must find. */
enum defect { NO_DEFECT, REUSE_AT_ONCE, POST_FIRST, IGNORE_FLAG, ANNOUNCE_FIRST, REPORT_EARLY };

struct rank_state {
    uint8_t step, stage, source; /* current step, next action, rank whose data is read */
    uint8_t reported, safe, seen[RANKS];
    uint8_t used[DEPTH_MAX];
    int8_t reader[DEPTH_MAX]; /* the reader of each of its own slots */
};

struct state {
    struct rank_state rank[RANKS];
    uint8_t flag[RANKS][DEPTH_MAX], part[RANKS][DEPTH_MAX], data[RANKS][DEPTH_MAX][2], done[RANKS];
};

struct transfer {
    int8_t writer, reader;
};

static struct {
    int ranks, depth, lag;
    int steps_per_call; /* steps of one call; a rank that only writes reports no progress before the call ends */
    const struct transfer *steps; /* the transfers that the steps repeat cyclically */
    int nsteps;
    enum defect defect;
    const char *wrong;
} job;

static struct transfer get_transfer_of_step(int step)
{
    return job.steps[(step - 1) / job.steps_per_call % job.nsteps];
}

static bool is_writer(struct transfer p, int me)
{
    return p.writer == EVERYONE ? p.reader != me : p.writer == me;
}

static bool is_reader(struct transfer p, int me, int source)
{
    return source != me && (p.reader == EVERYONE || p.reader == me) && is_writer(p, source);
}

static int next_source(struct transfer p, int me, int from)
{
    while (from < job.ranks && !is_reader(p, me, from))
        from++;
    return from;
}

static void report_progress(struct state *s, int me, uint64_t step)
{
    s->rank[me].reported = s->done[me] = (uint8_t)step;
}

static bool is_free(const struct rank_state *it, int slot)
{
    const struct slot_use use = {it->used[slot], it->reader[slot]};
    uint64_t seen[RANKS];
    for (int r = 0; r < RANKS; r++)
        seen[r] = it->seen[r];
    return slot_is_free(&use, it->safe, seen);
}

/* One pass of shared_wait_readers_done: polls the readers, and reports the rank's own progress before it
 * waits. */
static bool poll_readers(struct state *s, int me, int slot)
{
    struct rank_state *it = &s->rank[me];
    uint64_t seen[RANKS] = {0};
    const int reader = it->reader[slot];
    bool ready = true;
    for (int r = 0; r < job.ranks; r++)
        if (r != me && (reader == EVERYONE || reader == r))
            ready &= s->done[r] >= it->used[slot];
    if (!ready) {
        const uint64_t must = slots_step_to_report(it->reported, it->step);
        if (must == it->reported)
            return false;
        report_progress(s, me, must);
        return true;
    }
    for (int r = 0; r < job.ranks; r++) {
        if (r != me && (reader == EVERYONE || reader == r))
            it->seen[r] = s->done[r];
        seen[r] = it->seen[r];
    }
    const uint64_t least = slots_min_reported(seen, job.ranks, me);
    it->safe = (uint8_t)(least > it->safe ? least : it->safe);
    return true;
}

static void start_reading(struct state *s, int me)
{
    struct rank_state *it = &s->rank[me];
    it->source = (uint8_t)next_source(get_transfer_of_step(it->step), me, 0);
    it->stage = it->source < job.ranks ? WAIT : DONE;
}

static void end_step(struct state *s, int me)
{
    struct rank_state *it = &s->rank[me];
    const bool last = it->step % job.steps_per_call == 0,
               took = next_source(get_transfer_of_step(it->step), me, 0) < job.ranks;
    if ((last || took) && slots_must_report(it->reported, it->step, (uint64_t)job.lag))
        report_progress(s, me, it->step);
    it->step++;
    it->stage = BEGIN;
    it->source = 0;
}

/* Checks one half of the data: it must belong to this step. */
static void check_half_of_data(struct state *s, int me, int half)
{
    struct rank_state *it = &s->rank[me];
    if (s->data[it->source][it->step % job.depth][half] != it->step)
        job.wrong = "a rank read data of another step";
    it->stage++;
    if (half == 0)
        return;
    it->source = (uint8_t)next_source(get_transfer_of_step(it->step), me, it->source + 1);
    it->stage = it->source < job.ranks ? WAIT : DONE;
}

/* A posted step proves that its rank has finished all earlier steps if that step involves all ranks, or if
 * there are only two ranks. */
static void infer_progress(struct rank_state *it, struct transfer p)
{
    const bool all = p.writer == EVERYONE && p.reader == EVERYONE && it->source == job.ranks - 1;
    if ((job.ranks == 2 || all) && it->safe < it->step - 1)
        it->safe = (uint8_t)(it->step - 1);
}

static bool begin_step(struct state *s, int me)
{
    struct rank_state *it = &s->rank[me];
    const struct transfer p = get_transfer_of_step(it->step);
    const int slot = it->step % job.depth;
    if (!is_writer(p, me)) {
        start_reading(s, me);
        return true;
    }
    if (job.defect != REUSE_AT_ONCE && !is_free(it, slot))
        return poll_readers(s, me, slot);
    it->used[slot] = it->step;
    it->reader[slot] = p.reader;
    it->stage = job.defect == POST_FIRST ? POST : job.defect == ANNOUNCE_FIRST ? ANNOUNCE_PART : FIRST_HALF;
    return true;
}

static bool wait_for_flag(struct state *s, int me)
{
    struct rank_state *it = &s->rank[me];
    const struct transfer p = get_transfer_of_step(it->step);
    const int slot = it->step % job.depth;
    if (job.defect != IGNORE_FLAG && !slot_is_posted(s->flag[it->source][slot], it->step)) {
        if (it->stage == WAIT_REST || slot_parts(s->part[it->source][slot], it->step) == 0)
            return false;
        it->stage = READ_FIRST;
        return true;
    }
    infer_progress(it, p);
    if (job.defect == REPORT_EARLY)
        report_progress(s, me, it->step);
    it->stage++;
    return true;
}

/* Writes half of the data, the announcement of the first half, or the flag. */
static void execute_write_stage(struct state *s, int me, enum stage stage)
{
    struct rank_state *it = &s->rank[me];
    const int slot = it->step % job.depth;
    const bool last = stage == (job.defect == POST_FIRST ? SECOND_HALF : POST);
    if (stage == ANNOUNCE_PART)
        s->part[me][slot] = (uint8_t)slot_pack_parts(it->step, 1);
    else if (stage == POST)
        s->flag[me][slot] = it->step;
    else
        s->data[me][slot][stage == SECOND_HALF] = it->step;
    if (last)
        start_reading(s, me);
    else if (job.defect == ANNOUNCE_FIRST && stage <= ANNOUNCE_PART)
        it->stage = stage == ANNOUNCE_PART ? FIRST_HALF : SECOND_HALF;
    else
        it->stage = stage == POST ? FIRST_HALF : (uint8_t)(stage + 1);
}

/* Executes one action of a rank; returns false if the rank waits. */
static bool step_rank(struct state *s, int me)
{
    struct rank_state *it = &s->rank[me];
    if (it->step > STEPS)
        return false;
    switch ((enum stage)it->stage) {
    case BEGIN:
        return begin_step(s, me);
    case FIRST_HALF:
    case ANNOUNCE_PART:
    case SECOND_HALF:
    case POST:
        execute_write_stage(s, me, (enum stage)it->stage);
        return true;
    case WAIT:
    case WAIT_REST:
        return wait_for_flag(s, me);
    case READ_FIRST:
    case READ_SECOND:
        check_half_of_data(s, me, it->stage == READ_SECOND);
        return true;
    case DONE:
        end_step(s, me);
        return true;
    }
    return false;
}

static bool expand_state(struct explore *e, const void *at)
{
    bool moved = false, over = true;
    for (int r = 0; r < job.ranks && !job.wrong; r++) {
        struct state s = *(const struct state *)at;
        over &= s.rank[r].step > STEPS;
        if (!step_rank(&s, r))
            continue;
        moved = true;
        explore_add(e, &s, (const char *[]){"rank 0 continues", "rank 1 continues", "rank 2 continues"}[r]);
    }
    if (!job.wrong && !moved && !over)
        job.wrong = "all ranks wait forever";
    return !job.wrong;
}

static bool report_violation(void)
{
    const bool found = job.wrong && job.defect == NO_DEFECT && job.lag <= job.depth;
    if (found)
        printf("%d ranks, %d slots: %s:\n", job.ranks, job.depth, job.wrong);
    return found;
}

static uint32_t explore_job(void)
{
    struct state first;
    memset(&first, 0, sizeof(first));
    for (int r = 0; r < RANKS; r++)
        first.rank[r].step = 1;
    job.wrong = NULL;
    return explore_all_states(sizeof(first), &first, expand_state, report_violation);
}

static const struct transfer bcasts[] = {{0, EVERYONE}}, turns[] = {{0, EVERYONE}, {1, EVERYONE}},
                             gathers[] = {{EVERYONE, 0}}, all_to_alls[] = {{EVERYONE, EVERYONE}},
                             mix[] = {{0, EVERYONE}, {EVERYONE, 0}, {EVERYONE, EVERYONE}},
                             gathers_elsewhere[] = {{0, EVERYONE}, {EVERYONE, 1}};
static const struct {
    const struct transfer *steps;
    int n;
} jobs[] = {{bcasts, 1}, {turns, 2}, {gathers, 1}, {all_to_alls, 1}, {mix, 3}, {gathers_elsewhere, 2}};

static void set_job(size_t which, int ranks, int depth, int lag, enum defect defect)
{
    job.steps_per_call = 1;
    job.steps = jobs[which].steps;
    job.nsteps = jobs[which].n;
    job.ranks = ranks;
    job.depth = depth;
    job.lag = lag;
    job.defect = defect;
}

static void test_all_orders(void)
{
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
        for (int ranks = 2; ranks <= RANKS; ranks++)
            for (int depth = 2; depth <= DEPTH_MAX; depth++) {
                set_job(i, ranks, depth, depth, NO_DEFECT);
                for (job.steps_per_call = 1; job.steps_per_call <= STEPS / 2; job.steps_per_call++) {
                    const uint32_t states = explore_job();
                    EXPECT(!job.wrong);
                    EXPECT(states > 50);
                }
            }
}

static void test_search_finds_defects(void)
{
    for (enum defect b = REUSE_AT_ONCE; b <= REPORT_EARLY; b++) {
        int found = 0;
        for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
            set_job(i, 2, 2, 1, b);
            explore_job();
            found += job.wrong != NULL;
        }
        EXPECT(found > 0);
    }
}

/* If ranks may have more unreported steps than there are slots, writer and reader wait for each other. */
static void test_lag_longer_than_ring_deadlocks(void)
{
    set_job(0, 2, 2, 3, NO_DEFECT);
    explore_job();
    EXPECT(job.wrong != NULL);
}

int main(void)
{
    TEST_RUN(test_all_orders);
    TEST_RUN(test_search_finds_defects);
    TEST_RUN(test_lag_longer_than_ring_deadlocks);
    return test_result();
}
