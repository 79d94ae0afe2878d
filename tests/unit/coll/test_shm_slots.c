/* test_shm_slots.c: every order in which a few ranks may write, read and reuse the slots of shared memory, in bcasts, gathers and
 * meetings in a row. Nobody reads what belongs to another step, and nobody waits for ever. Data is written and read in
 * two halves, so that a reader may come in between; the first is announced as a part, and may be read at once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/shm/slots.h"

#include "net/explore.h"
#include "test.h"

enum { RANKS = 3, DEPTH_MAX = 3, STEPS = 10, EVERYONE = SLOTS_EVERYONE };
enum stage { BEGIN, FIRST_HALF, SAY_PART, SECOND_HALF, POST, WAIT, READ_FIRST, WAIT_REST, READ_SECOND, DONE };

/* Defects that the search must find, one at a time. */
enum broken { NOTHING, REUSE_AT_ONCE, POST_FIRST, LOOK_AT_NO_FLAG, PART_FIRST, TELL_EARLY };

struct one {
    uint8_t step, stage, source; /* the step it is in, what it does next, whose data */
    uint8_t reported, safe, seen[RANKS];
    uint8_t used[DEPTH_MAX];
    int8_t reader[DEPTH_MAX]; /* of its own slots */
};

struct state {
    struct one rank[RANKS];
    uint8_t flag[RANKS][DEPTH_MAX], part[RANKS][DEPTH_MAX], data[RANKS][DEPTH_MAX][2], done[RANKS];
};

struct part {
    int8_t writer, reader;
};

static struct {
    int ranks, depth, lag;
    int call;                 /* steps of a call; a rank that only writes reports nothing before its end */
    const struct part *steps; /* in turn, for ever */
    int nsteps;
    enum broken broken;
    const char *wrong;
} job;

static struct part part_of(int step)
{
    return job.steps[(step - 1) / job.call % job.nsteps];
}

static bool writes(struct part p, int me)
{
    return p.writer == EVERYONE ? p.reader != me : p.writer == me;
}

static bool reads(struct part p, int me, int source)
{
    return source != me && (p.reader == EVERYONE || p.reader == me) && writes(p, source);
}

static int next_source(struct part p, int me, int from)
{
    while (from < job.ranks && !reads(p, me, from))
        from++;
    return from;
}

static void tell(struct state *s, int me, uint64_t step)
{
    s->rank[me].reported = s->done[me] = (uint8_t)step;
}

static bool is_free(const struct one *it, int slot)
{
    const struct slot_use use = {it->used[slot], it->reader[slot]};
    uint64_t seen[RANKS];
    for (int r = 0; r < RANKS; r++)
        seen[r] = it->seen[r];
    return slot_is_free(&use, it->safe, seen);
}

/* One pass of shared_wait_readers_done: it polls, and reports its own progress before it waits. */
static bool ask(struct state *s, int me, int slot)
{
    struct one *it = &s->rank[me];
    uint64_t seen[RANKS] = {0};
    const int reader = it->reader[slot];
    bool ready = true;
    for (int r = 0; r < job.ranks; r++)
        if (r != me && (reader == EVERYONE || reader == r))
            ready &= s->done[r] >= it->used[slot];
    if (!ready) {
        const uint64_t must = slots_before_waiting(it->reported, it->step);
        if (must == it->reported)
            return false;
        tell(s, me, must);
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

static void after_writing(struct state *s, int me)
{
    struct one *it = &s->rank[me];
    it->source = (uint8_t)next_source(part_of(it->step), me, 0);
    it->stage = it->source < job.ranks ? WAIT : DONE;
}

static void end_step(struct state *s, int me)
{
    struct one *it = &s->rank[me];
    const bool last = it->step % job.call == 0, took = next_source(part_of(it->step), me, 0) < job.ranks;
    if ((last || took) && slots_must_report(it->reported, it->step, (uint64_t)job.lag))
        tell(s, me, it->step);
    it->step++;
    it->stage = BEGIN;
    it->source = 0;
}

/* Checks one half of the data: it must belong to this step. */
static void read_half(struct state *s, int me, int half)
{
    struct one *it = &s->rank[me];
    if (s->data[it->source][it->step % job.depth][half] != it->step)
        job.wrong = "a rank read what belongs to another step";
    it->stage++;
    if (half == 0)
        return;
    it->source = (uint8_t)next_source(part_of(it->step), me, it->source + 1);
    it->stage = it->source < job.ranks ? WAIT : DONE;
}

/* Derives progress: a rank that has posted a step has finished the steps before it, if all ranks take part in that
 * step; with two ranks always. */
static void learn(struct one *it, struct part p)
{
    const bool all = p.writer == EVERYONE && p.reader == EVERYONE && it->source == job.ranks - 1;
    if ((job.ranks == 2 || all) && it->safe < it->step - 1)
        it->safe = (uint8_t)(it->step - 1);
}

static bool begin(struct state *s, int me)
{
    struct one *it = &s->rank[me];
    const struct part p = part_of(it->step);
    const int slot = it->step % job.depth;
    if (!writes(p, me)) {
        after_writing(s, me);
        return true;
    }
    if (job.broken != REUSE_AT_ONCE && !is_free(it, slot))
        return ask(s, me, slot);
    it->used[slot] = it->step;
    it->reader[slot] = p.reader;
    it->stage = job.broken == POST_FIRST ? POST : job.broken == PART_FIRST ? SAY_PART : FIRST_HALF;
    return true;
}

static bool wait(struct state *s, int me)
{
    struct one *it = &s->rank[me];
    const struct part p = part_of(it->step);
    const int slot = it->step % job.depth;
    if (job.broken != LOOK_AT_NO_FLAG && !slot_is_posted(s->flag[it->source][slot], it->step)) {
        if (it->stage == WAIT_REST || slot_parts(s->part[it->source][slot], it->step) == 0)
            return false;
        it->stage = READ_FIRST;
        return true;
    }
    learn(it, p);
    if (job.broken == TELL_EARLY)
        tell(s, me, it->step);
    it->stage++;
    return true;
}

/* Writes half of the data, the announcement of the first half, or the flag. */
static void write_some(struct state *s, int me, enum stage stage)
{
    struct one *it = &s->rank[me];
    const int slot = it->step % job.depth;
    const bool last = stage == (job.broken == POST_FIRST ? SECOND_HALF : POST);
    if (stage == SAY_PART)
        s->part[me][slot] = (uint8_t)slot_pack_parts(it->step, 1);
    else if (stage == POST)
        s->flag[me][slot] = it->step;
    else
        s->data[me][slot][stage == SECOND_HALF] = it->step;
    if (last)
        after_writing(s, me);
    else if (job.broken == PART_FIRST && stage <= SAY_PART)
        it->stage = stage == SAY_PART ? FIRST_HALF : SECOND_HALF;
    else
        it->stage = stage == POST ? FIRST_HALF : (uint8_t)(stage + 1);
}

/* One action of a rank; false when it waits. */
static bool act(struct state *s, int me)
{
    struct one *it = &s->rank[me];
    if (it->step > STEPS)
        return false;
    switch ((enum stage)it->stage) {
    case BEGIN:
        return begin(s, me);
    case FIRST_HALF:
    case SAY_PART:
    case SECOND_HALF:
    case POST:
        write_some(s, me, (enum stage)it->stage);
        return true;
    case WAIT:
    case WAIT_REST:
        return wait(s, me);
    case READ_FIRST:
    case READ_SECOND:
        read_half(s, me, it->stage == READ_SECOND);
        return true;
    case DONE:
        end_step(s, me);
        return true;
    }
    return false;
}

static bool look(struct explore *e, const void *at)
{
    bool moved = false, over = true;
    for (int r = 0; r < job.ranks && !job.wrong; r++) {
        struct state s = *(const struct state *)at;
        over &= s.rank[r].step > STEPS;
        if (!act(&s, r))
            continue;
        moved = true;
        explore_add(e, &s, (const char *[]){"rank 0 goes on", "rank 1 goes on", "rank 2 goes on"}[r]);
    }
    if (!job.wrong && !moved && !over)
        job.wrong = "everybody waits";
    return !job.wrong;
}

static bool unexpected(void)
{
    const bool found = job.wrong && job.broken == NOTHING && job.lag <= job.depth;
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
    return explore_every(sizeof(first), &first, look, unexpected);
}

static const struct part bcasts[] = {{0, EVERYONE}}, turns[] = {{0, EVERYONE}, {1, EVERYONE}},
                         gathers[] = {{EVERYONE, 0}}, meetings[] = {{EVERYONE, EVERYONE}},
                         mix[] = {{0, EVERYONE}, {EVERYONE, 0}, {EVERYONE, EVERYONE}},
                         away[] = {{0, EVERYONE}, {EVERYONE, 1}};
static const struct {
    const struct part *steps;
    int n;
} jobs[] = {{bcasts, 1}, {turns, 2}, {gathers, 1}, {meetings, 1}, {mix, 3}, {away, 2}};

static void job_set(size_t which, int ranks, int depth, int lag, enum broken broken)
{
    job.call = 1;
    job.steps = jobs[which].steps;
    job.nsteps = jobs[which].n;
    job.ranks = ranks;
    job.depth = depth;
    job.lag = lag;
    job.broken = broken;
}

static void nobody_reads_another_step_or_waits_for_ever(void)
{
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
        for (int ranks = 2; ranks <= RANKS; ranks++)
            for (int depth = 2; depth <= DEPTH_MAX; depth++) {
                job_set(i, ranks, depth, depth, NOTHING);
                for (job.call = 1; job.call <= STEPS / 2; job.call++) {
                    const uint32_t states = explore_job();
                    EXPECT(!job.wrong);
                    EXPECT(states > 50);
                }
            }
}

static void the_search_finds_what_is_wrong(void)
{
    for (enum broken b = REUSE_AT_ONCE; b <= TELL_EARLY; b++) {
        int found = 0;
        for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
            job_set(i, 2, 2, 1, b);
            explore_job();
            found += job.wrong != NULL;
        }
        EXPECT(found > 0);
    }
}

/* With more unreported steps than slots, writer and reader wait for each other. */
static void a_lag_longer_than_the_ring_is_too_long(void)
{
    job_set(0, 2, 2, 3, NOTHING);
    explore_job();
    EXPECT(job.wrong != NULL);
}

int main(void)
{
    TEST_RUN(nobody_reads_another_step_or_waits_for_ever);
    TEST_RUN(the_search_finds_what_is_wrong);
    TEST_RUN(a_lag_longer_than_the_ring_is_too_long);
    return test_result();
}
