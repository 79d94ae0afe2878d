/* test_gate.c: the lock of a window's target (rma/gate.h) in every order of its users' actions: readers and writers of both
 * sides, who come again. Nobody is inside beside a writer, and there is always someone who can go on. The words of
 * a look are read at two moments, in both orders, since an adapter promises no more. A user that is inside checks once more whether it
 * is, as a process does that was about to sleep.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rma/gate.h"

#include "net/explore.h"
#include "test.h"

enum { USERS_MAX = 4 };
enum place { OUTSIDE, COMING, LOOK_1, LOOK_2, INSIDE, LEAVING, GONE };
enum wrong { RIGHT, NO_TURN, TURN_FIRST, LOSE_WANT, WRONGS };

struct user {
    uint8_t old, ticket;
    uint8_t seen[GATE_WORDS];
    struct {
        uint8_t add, word;
        int8_t value;
    } op[3];
    uint8_t count, done, look; /* of the step */
    uint8_t side, shared, stage, place, rounds, checked_again;
};

struct state {
    uint8_t word[GATE_WORDS];
    struct user user[USERS_MAX];
};

static struct {
    uint32_t users;
    bool far_first; /* the other words are read first */
    enum wrong wrong_way;
    const char *wrong;
} job;

static struct gate_entry entry_of(const struct user *u)
{
    return (struct gate_entry){.side = (enum gate_side)u->side,
                               .shared = u->shared,
                               .stage = (uint8_t)u->stage,
                               .ticket = u->ticket};
}

/* Deliberate mistakes that the search must find. */
static void spoil(struct gate_step *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const bool turn = !s->op[i].add && s->op[i].word == GATE_TURN;
        const bool want = !s->op[i].add && s->op[i].word % GATE_SIDE == GATE_WANT && !turn;
        if ((turn && job.wrong_way == NO_TURN) || (want && s->op[i].value && job.wrong_way == LOSE_WANT))
            s->op[i].value = !s->op[i].value;
    }
    if (job.wrong_way == TURN_FIRST && s->count == 2 && s->op[1].word == GATE_TURN) {
        const struct gate_op first = s->op[0];
        s->op[0] = s->op[1];
        s->op[1] = first;
    }
}

static void take_step(struct user *u, const struct gate_entry *e, struct gate_step s)
{
    spoil(&s);
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
    u->look = s.look;
}

static bool first_half(uint32_t word)
{
    return (word < GATE_SIDE) != job.far_first;
}

static void look_half(struct state *s, struct user *u, bool first)
{
    for (uint32_t w = 0; w < GATE_WORDS; w++)
        if (first_half(w) == first)
            u->seen[w] = s->word[w];
}

/* A user that is inside checks again; unless that ends its turn, it continues with the result. */
static void ask_again(struct state *s, struct user *u, struct gate_entry *e)
{
    struct gate_step step;
    uint64_t seen[GATE_WORDS];
    for (uint32_t w = 0; w < GATE_WORDS; w++)
        seen[w] = s->word[w];
    const bool inside = gate_next_step(e, u->old, seen, &step);
    take_step(u, e, step);
    u->checked_again = 1;
    if (!inside || step.count > 0)
        u->place = COMING;
}

/* One action of a user; false: it can do nothing that changes anything. */
static bool act(struct state *s, struct user *u)
{
    struct gate_entry e = entry_of(u);
    struct gate_step step;
    uint64_t seen[GATE_WORDS];
    switch ((enum place)u->place) {
    case OUTSIDE:
        gate_enter(&e, e.side, e.shared, false, &step);
        take_step(u, &e, step);
        u->place = COMING;
        return true;
    case COMING:
    case LEAVING:
        if (u->done < u->count) {
            const uint32_t i = u->done++;
            const uint8_t now = s->word[u->op[i].word];
            if (u->op[i].add)
                u->old = now;
            s->word[u->op[i].word] = (uint8_t)(u->op[i].add ? now + u->op[i].value : u->op[i].value);
            if (u->done < u->count || u->look)
                return true;
        }
        if (u->look)
            u->place = LOOK_1;
        else if (u->place == COMING)
            u->place = INSIDE;
        else
            u->place = --u->rounds ? OUTSIDE : GONE;
        return true;
    case LOOK_1:
        look_half(s, u, true);
        u->place = LOOK_2;
        return true;
    case LOOK_2:
        look_half(s, u, false);
        for (uint32_t w = 0; w < GATE_WORDS; w++)
            seen[w] = u->seen[w];
        gate_next_step(&e, u->old, seen, &step);
        take_step(u, &e, step);
        memset(u->seen, 0, sizeof(u->seen));
        u->place = COMING;
        u->old = 0;
        return true;
    case INSIDE:
        if (!u->checked_again) {
            ask_again(s, u, &e);
            return true;
        }
        gate_leave(&e, &step);
        take_step(u, &e, step);
        u->checked_again = 0;
        u->place = LEAVING;
        return true;
    case GONE:
        return false;
    }
    return false;
}

static void judge(const struct state *s)
{
    uint32_t readers = 0, writers = 0;
    for (uint32_t i = 0; i < job.users; i++)
        if (s->user[i].place == INSIDE)
            *(s->user[i].shared ? &readers : &writers) += 1;
    if (writers > 1 || (writers && readers))
        job.wrong = "a writer is not alone";
}

/* A user that only looks goes round in a circle: where all do, everyone waits. So runs of each user alone until it is inside
 * or comes back to where it was. */
static bool can_go_on(const struct state *at, uint32_t i)
{
    struct state s = *at;
    const uint32_t place = s.user[i].place, rounds = s.user[i].rounds;
    for (int k = 0; k < 12; k++) {
        if (!act(&s, &s.user[i]))
            return false;
        if (s.user[i].place == INSIDE || s.user[i].rounds != rounds ||
            memcmp(s.word, at->word, sizeof(s.word)) != 0)
            return true;
    }
    return place == INSIDE || place == LEAVING;
}

static bool look(struct explore *e, const void *at)
{
    bool over = true, moves = false;
    for (uint32_t i = 0; i < job.users && !job.wrong; i++) {
        struct state s = *(const struct state *)at;
        over &= s.user[i].place == GONE;
        moves |= can_go_on(&s, i);
        if (!act(&s, &s.user[i]))
            continue;
        judge(&s);
        explore_add(e, &s, "a user goes on");
    }
    if (!job.wrong && !over && !moves)
        job.wrong = "everyone waits";
    return !job.wrong;
}

struct who {
    enum gate_side side;
    bool shared;
    uint8_t rounds;
};

static bool unexpected(void)
{
    if (!job.wrong || job.wrong_way != RIGHT)
        return false;
    printf("%s:\n", job.wrong);
    return true;
}

static uint32_t explore_job(const struct who *who, uint32_t users, bool far_first, enum wrong way)
{
    struct state first;
    memset(&first, 0, sizeof(first));
    for (uint32_t i = 0; i < users; i++) {
        first.user[i].side = (uint8_t)who[i].side;
        first.user[i].shared = who[i].shared;
        first.user[i].rounds = who[i].rounds;
    }
    job.users = users;
    job.far_first = far_first;
    job.wrong_way = way;
    job.wrong = NULL;
    return explore_every(sizeof(first), &first, look, unexpected);
}

#define N(shared, rounds)         \
    {                             \
        GATE_NEAR, shared, rounds \
    }
#define F(shared, rounds)        \
    {                            \
        GATE_FAR, shared, rounds \
    }

static void writers_are_alone(void)
{
    static const struct who jobs[][3] = {
        {N(0, 2), F(0, 2), F(0, 1)},
        {N(0, 2), F(1, 2), F(1, 1)},
        {N(1, 2), N(1, 1), F(0, 2)},
        {N(1, 1), F(1, 2), F(0, 1)},
    };
    uint32_t states = 0;
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
        for (int far_first = 0; far_first < 2; far_first++) {
            states += explore_job(jobs[i], 3, far_first, RIGHT);
            EXPECT(!job.wrong);
        }
    printf("three users: %u states\n", states);
}

static void four_users(void)
{
    static const struct who users[] = {N(1, 1), N(0, 1), F(1, 1), F(0, 1)};
    const uint32_t states = explore_job(users, 4, false, RIGHT);
    EXPECT(!job.wrong);
    printf("four users: %u states\n", states);
}

static void the_search_finds_what_is_wrong(void)
{
    static const struct who writers[] = {N(0, 2), F(0, 2)};
    for (enum wrong way = NO_TURN; way < WRONGS; way++) {
        explore_job(writers, 2, false, way);
        if (!job.wrong)
            explore_job(writers, 2, true, way);
        EXPECT(job.wrong != NULL);
    }
}

/* With one side only, only tickets are used. */
static void one_side_is_short(void)
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
    TEST_RUN(one_side_is_short);
    TEST_RUN(writers_are_alone);
    TEST_RUN(four_users);
    TEST_RUN(the_search_finds_what_is_wrong);
    return test_result();
}
