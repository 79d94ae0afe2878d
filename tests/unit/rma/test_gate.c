/* test_gate.c: the lock of a window's target (rma/gate.h) in every order of its users' actions, with
 * repeated readers and writers of both sides. A writer holds the lock alone, and some user can always
 * continue. A user reads the lock words in two steps, in both orders, since an adapter guarantees no more.
 * A user that holds the lock checks again, as a process does before it sleeps.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rma/gate.h"

#include "net/explore.h"
#include "test.h"

enum { USERS_MAX = 4 };
enum user_state { IDLE, ENTERING, READ_1, READ_2, HOLDING, LEAVING, FINISHED };
enum variant { CORRECT, INVERTED_TURN, TURN_FIRST, INVERTED_WANT, VARIANTS };

struct user {
    uint8_t old, ticket;
    uint8_t seen[GATE_WORDS];
    struct {
        uint8_t add, word;
        int8_t value;
    } op[3];
    uint8_t count, done,
        reads_next; /* of the present step: number of operations, number executed, 1: a read follows */
    uint8_t side, shared, stage, place, rounds, checked_again;
};

struct state {
    uint8_t word[GATE_WORDS];
    struct user user[USERS_MAX];
};

static struct {
    uint32_t users;
    bool far_first; /* the words of the far side are read first */
    enum variant variant;
    const char *wrong; /* the violated invariant, or NULL */
} job;

static struct gate_entry make_entry(const struct user *u)
{
    return (struct gate_entry){.side = (enum gate_side)u->side,
                               .shared = u->shared,
                               .stage = (uint8_t)u->stage,
                               .ticket = u->ticket};
}

/* Applies the deliberate error that the search must find. */
static void inject_error(struct gate_step *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const bool turn = !s->op[i].add && s->op[i].word == GATE_TURN;
        const bool want = !s->op[i].add && s->op[i].word % GATE_SIDE == GATE_WANT && !turn;
        if ((turn && job.variant == INVERTED_TURN) ||
            (want && s->op[i].value && job.variant == INVERTED_WANT))
            s->op[i].value = !s->op[i].value;
    }
    if (job.variant == TURN_FIRST && s->count == 2 && s->op[1].word == GATE_TURN) {
        const struct gate_op first = s->op[0];
        s->op[0] = s->op[1];
        s->op[1] = first;
    }
}

static void store_step(struct user *u, const struct gate_entry *e, struct gate_step s)
{
    inject_error(&s);
    u->stage = e->stage;
    u->ticket = (uint8_t)e->ticket;
    memset(u->op, 0, sizeof(u->op));
    for (uint32_t i = 0; i < s.count; i++) {
        u->op[i].add = s.op[i].add;
        u->op[i].word = s.op[i].word;
        u->op[i].value = (int8_t)s.op[i].value;
    }
    u->count = s.count;
    u->done = 0;
    u->reads_next = s.look;
}

static bool is_read_first(uint32_t word)
{
    return (word < GATE_SIDE) != job.far_first;
}

static void read_words_of_side(struct state *s, struct user *u, bool first)
{
    for (uint32_t w = 0; w < GATE_WORDS; w++)
        if (is_read_first(w) == first)
            u->seen[w] = s->word[w];
}

/* A user that holds the lock reads the lock words again. If the next step has operations, or shows that the
 * lock is not held, the user goes back to ENTERING. */
static void recheck_held_lock(struct state *s, struct user *u, struct gate_entry *e)
{
    struct gate_step step;
    uint64_t seen[GATE_WORDS];
    for (uint32_t w = 0; w < GATE_WORDS; w++)
        seen[w] = s->word[w];
    const bool inside = gate_next_step(e, u->old, seen, &step);
    store_step(u, e, step);
    u->checked_again = 1;
    if (!inside || step.count > 0)
        u->place = ENTERING;
}

/* Executes one action of a user; returns false if the user has finished. */
static bool run_user(struct state *s, struct user *u)
{
    struct gate_entry e = make_entry(u);
    struct gate_step step;
    uint64_t seen[GATE_WORDS];
    switch ((enum user_state)u->place) {
    case IDLE:
        gate_enter(&e, e.side, e.shared, false, &step);
        store_step(u, &e, step);
        u->place = ENTERING;
        return true;
    case ENTERING:
    case LEAVING:
        if (u->done < u->count) {
            const uint32_t i = u->done++;
            const uint8_t now = s->word[u->op[i].word];
            if (u->op[i].add)
                u->old = now;
            s->word[u->op[i].word] = (uint8_t)(u->op[i].add ? now + u->op[i].value : u->op[i].value);
            if (u->done < u->count || u->reads_next)
                return true;
        }
        if (u->reads_next)
            u->place = READ_1;
        else if (u->place == ENTERING)
            u->place = HOLDING;
        else
            u->place = --u->rounds ? IDLE : FINISHED;
        return true;
    case READ_1:
        read_words_of_side(s, u, true);
        u->place = READ_2;
        return true;
    case READ_2:
        read_words_of_side(s, u, false);
        for (uint32_t w = 0; w < GATE_WORDS; w++)
            seen[w] = u->seen[w];
        gate_next_step(&e, u->old, seen, &step);
        store_step(u, &e, step);
        memset(u->seen, 0, sizeof(u->seen));
        u->place = ENTERING;
        u->old = 0;
        return true;
    case HOLDING:
        if (!u->checked_again) {
            recheck_held_lock(s, u, &e);
            return true;
        }
        gate_leave(&e, &step);
        store_step(u, &e, step);
        u->checked_again = 0;
        u->place = LEAVING;
        return true;
    case FINISHED:
        return false;
    }
    return false;
}

static void check_exclusion(const struct state *s)
{
    uint32_t readers = 0, writers = 0;
    for (uint32_t i = 0; i < job.users; i++)
        if (s->user[i].place == HOLDING)
            *(s->user[i].shared ? &readers : &writers) += 1;
    if (writers > 1 || (writers && readers))
        job.wrong = "a writer and another user hold the lock";
}

/* True if the user, running alone, changes a lock word or gets the lock. If every user only repeats its
 * reads, all wait forever. */
static bool can_continue(const struct state *at, uint32_t i)
{
    struct state s = *at;
    const uint32_t user_state = s.user[i].place, rounds = s.user[i].rounds;
    for (int k = 0; k < 12; k++) {
        if (!run_user(&s, &s.user[i]))
            return false;
        if (s.user[i].place == HOLDING || s.user[i].rounds != rounds ||
            memcmp(s.word, at->word, sizeof(s.word)) != 0)
            return true;
    }
    return user_state == HOLDING || user_state == LEAVING;
}

static bool expand_state(struct explore *e, const void *at)
{
    bool over = true, moves = false;
    for (uint32_t i = 0; i < job.users && !job.wrong; i++) {
        struct state s = *(const struct state *)at;
        over &= s.user[i].place == FINISHED;
        moves |= can_continue(&s, i);
        if (!run_user(&s, &s.user[i]))
            continue;
        check_exclusion(&s);
        explore_add(e, &s, "a user takes a step");
    }
    if (!job.wrong && !over && !moves)
        job.wrong = "all users wait forever";
    return !job.wrong;
}

struct user_kind {
    enum gate_side side;
    bool shared;
    uint8_t rounds;
};

static bool report_violation(void)
{
    if (!job.wrong || job.variant != CORRECT)
        return false;
    printf("%s:\n", job.wrong);
    return true;
}

static uint32_t explore_users(const struct user_kind *user_kind, uint32_t users, bool far_first,
                              enum variant variant)
{
    struct state first;
    memset(&first, 0, sizeof(first));
    for (uint32_t i = 0; i < users; i++) {
        first.user[i].side = (uint8_t)user_kind[i].side;
        first.user[i].shared = user_kind[i].shared;
        first.user[i].rounds = user_kind[i].rounds;
    }
    job.users = users;
    job.far_first = far_first;
    job.variant = variant;
    job.wrong = NULL;
    return explore_all_states(sizeof(first), &first, expand_state, report_violation);
}

#define NEAR_USER(shared, rounds) \
    {                             \
        GATE_NEAR, shared, rounds \
    }
#define FAR_USER(shared, rounds) \
    {                            \
        GATE_FAR, shared, rounds \
    }

static void test_writers_are_alone(void)
{
    static const struct user_kind jobs[][3] = {
        {NEAR_USER(0, 2), FAR_USER(0, 2), FAR_USER(0, 1)},
        {NEAR_USER(0, 2), FAR_USER(1, 2), FAR_USER(1, 1)},
        {NEAR_USER(1, 2), NEAR_USER(1, 1), FAR_USER(0, 2)},
        {NEAR_USER(1, 1), FAR_USER(1, 2), FAR_USER(0, 1)},
    };
    uint32_t states = 0;
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
        for (int far_first = 0; far_first < 2; far_first++) {
            states += explore_users(jobs[i], 3, far_first, CORRECT);
            EXPECT(!job.wrong);
        }
    printf("three users: %u states\n", states);
}

static void test_four_users(void)
{
    static const struct user_kind users[] = {NEAR_USER(1, 1), NEAR_USER(0, 1), FAR_USER(1, 1),
                                             FAR_USER(0, 1)};
    const uint32_t states = explore_users(users, 4, false, CORRECT);
    EXPECT(!job.wrong);
    printf("four users: %u states\n", states);
}

static void test_search_finds_errors(void)
{
    static const struct user_kind writers[] = {NEAR_USER(0, 2), FAR_USER(0, 2)};
    for (enum variant variant = INVERTED_TURN; variant < VARIANTS; variant++) {
        explore_users(writers, 2, false, variant);
        if (!job.wrong)
            explore_users(writers, 2, true, variant);
        EXPECT(job.wrong != NULL);
    }
}

/* If all users are on one side, only tickets are used. */
static void test_single_side_uses_tickets(void)
{
    struct gate_entry e;
    struct gate_step s;
    uint64_t words[GATE_WORDS] = {0};
    gate_enter(&e, GATE_NEAR, false, true, &s);
    EXPECT(s.count == 1 && s.op[0].add && s.op[0].word == GATE_USERS);
    EXPECT(gate_next_step(&e, 0, words, &s));
    EXPECT_EQ(s.count, 0);
    gate_leave(&e, &s);
    EXPECT_EQ(s.count, 2);
}

int main(void)
{
    TEST_RUN(test_single_side_uses_tickets);
    TEST_RUN(test_writers_are_alone);
    TEST_RUN(test_four_users);
    TEST_RUN(test_search_finds_errors);
    return test_result();
}
