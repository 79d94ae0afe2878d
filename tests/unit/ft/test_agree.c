/* test_agree.c: the agreement (ft/agree.h) in every order of events, among 2 to 4 processes of which all but one may die: in
 * any step, after any of the messages that the step sends. Messages between two processes keep their order; the news of a
 * death may come before or after what the dead one sent. Every process that decides, alive or not yet dead, decides the same; when
 * nothing can happen any more all who live have decided. Several agreements may be under way at once: a process forgets one when
 * a later decision permits it (ft/agree.h), and then answers no query about it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "ft/agree.h"
#include "test.h"

/* The first mistake ends the search. */
#define CHECK_TRUE(cond)   \
    do {                   \
        EXPECT(cond);      \
        if (test_failures) \
            exit(1);       \
    } while (0)

#define MOST    5
#define QUEUE   10
#define WORDS   3 /* an AND, a greatest, and what need not be kept */
#define ROUNDS  3
#define MACHINE (sizeof(struct agree) + (3 * WORDS + 4) * sizeof(uint64_t))

struct letter {
    uint8_t round, kind, epoch, decided, words, most, open, have, dead;
};

/* Memory of this type compares byte by byte. */
struct world {
    uint64_t machines[MOST][ROUNDS][MACHINE / 8];
    struct letter mail[MOST][MOST][QUEUE]; /* [from][to] */
    uint8_t queued[MOST][MOST];
    uint8_t dead[MOST];            /* 1: has died */
    uint8_t knows[MOST][MOST];     /* [who][of whom] */
    uint8_t begun[MOST];           /* number of agreements */
    uint8_t forgot[MOST];          /* number of agreements forgotten */
    uint16_t result[MOST][ROUNDS]; /* of the living: 0x8000 and the words, once decided */
};

static uint32_t n, may_die, rounds;
static uint64_t states, ends, longest;

static struct agree *machine(struct world *w, uint32_t i, uint32_t round)
{
    return (struct agree *)w->machines[i][round];
}

/* ---- one step of one process, which may die after `left` messages ---- */

struct post {
    struct world *w;
    uint32_t from, round;
    int left; /* messages that still leave before it dies */
};

static void post(void *arg, uint32_t to, const struct agree_message *m)
{
    struct post *p = arg;
    if (p->left == 0)
        return;
    p->left--;
    if (p->w->dead[to])
        return;
    uint8_t *queued = &p->w->queued[p->from][to];
    CHECK_TRUE(*queued < QUEUE);
    p->w->mail[p->from][to][(*queued)++] =
        (struct letter){(uint8_t)p->round,    (uint8_t)m->kind,           (uint8_t)m->epoch,
                        (uint8_t)m->decided,  (uint8_t)(m->data[0] & 31), (uint8_t)m->data[1],
                        (uint8_t)~m->data[2], (uint8_t)m->data[3],        (uint8_t)m->data[4]};
}

enum what { BEGIN, HEAR, NEWS };
struct event {
    enum what what;
    uint32_t at, from;
};

static uint64_t words_of(uint32_t i)
{
    return 31 & ~(1ull << i);
}

static struct letter take(struct world *w, uint32_t from, uint32_t to)
{
    struct letter first = w->mail[from][to][0];
    w->queued[from][to]--;
    memmove(&w->mail[from][to][0], &w->mail[from][to][1], w->queued[from][to] * sizeof(first));
    memset(&w->mail[from][to][w->queued[from][to]], 0, sizeof(first));
    return first;
}

static uint32_t first_open(struct world *w, uint32_t i)
{
    uint32_t first = w->forgot[i];
    while (first < w->begun[i] && machine(w, i, first)->decided)
        first++;
    return first;
}

/* As round.c does after each decision. */
static void forget(struct world *w, uint32_t i)
{
    uint32_t below = w->forgot[i];
    for (uint32_t k = below; k < w->begun[i]; k++)
        if (machine(w, i, k)->decided && agree_decode_first_open(machine(w, i, k)) > below)
            below = agree_decode_first_open(machine(w, i, k));
    CHECK_TRUE(below <= first_open(w, i));
    for (; w->forgot[i] < below; w->forgot[i]++)
        memset(w->machines[i][w->forgot[i]], 0, MACHINE);
}

static void hear(struct world *w, const struct event *e, struct post *p, const struct agree_out *out)
{
    struct letter l = take(w, e->from, e->at);
    uint64_t memory[8] = {0};
    struct agree_message *m = (struct agree_message *)memory;
    *m = (struct agree_message){.kind = l.kind, .epoch = l.epoch, .decided = l.decided};
    m->data[0] = l.words | ~31ull;
    m->data[1] = l.most;
    m->data[2] = agree_encode_first_open(l.open);
    m->data[3] = l.have;
    m->data[4] = l.dead;
    p->round = l.round;
    if (l.round >= w->forgot[e->at])
        agree_receive(machine(w, e->at, l.round), e->from, m, out);
}

/* Returns how many messages it sent; `most` < 0: all of them, else it dies after `most`. */
static int step(struct world *w, const struct event *e, int most)
{
    uint64_t room[8] = {0},
             words[WORDS] = {words_of(e->at), e->at + 1, agree_encode_first_open(first_open(w, e->at))};
    struct post p = {w, e->at, w->begun[e->at], most < 0 ? 1000 : most};
    struct agree_out out = {post, &p, (struct agree_message *)room};
    if (e->what == BEGIN) {
        agree_begin(machine(w, e->at, w->begun[e->at]++), words, &out);
    } else if (e->what == NEWS) {
        w->knows[e->at][e->from] = 1;
        for (p.round = w->forgot[e->at]; p.round < rounds; p.round++)
            agree_member_died(machine(w, e->at, p.round), e->from, &out);
    } else {
        hear(w, e, &p, &out);
    }
    return (most < 0 ? 1000 : most) - p.left;
}

static void die(struct world *w, uint32_t i)
{
    w->dead[i] = 1;
    memset(w->result[i], 0, sizeof(w->result[i]));
    memset(w->machines[i], 0, sizeof(w->machines[i]));
    for (uint32_t k = 0; k < n; k++) {
        memset(w->mail[k][i], 0, sizeof(w->mail[k][i]));
        w->queued[k][i] = 0;
        w->knows[i][k] = 0;
    }
}

/* ---- what must be true ---- */

static void check_decision(struct world *w, uint32_t i, uint32_t round)
{
    struct agree *a = machine(w, i, round);
    if (!a->decided)
        return;
    uint16_t got = (uint16_t)(0x8000 | agree_get_result(a)[1] << 5 | (agree_get_result(a)[0] & 31));
    CHECK_TRUE(w->result[i][round] == 0 || w->result[i][round] == got);
    w->result[i][round] = got;
    for (uint32_t k = 0; k < n; k++) {
        if (!w->dead[k]) {
            CHECK_TRUE(w->begun[k] > round);
            CHECK_TRUE(
                !(agree_get_result(a)[0] >> k & 1)); /* the contribution of everyone who lives is in it */
            CHECK_TRUE(agree_get_result(a)[1] >= k + 1);
            CHECK_TRUE(!agree_is_gone(a, k));
        }
        CHECK_TRUE(w->result[k][round] == 0 || w->result[k][round] == got);
    }
}

static void check_and_forget(struct world *w, uint32_t i)
{
    for (uint32_t round = w->forgot[i]; round < rounds; round++)
        check_decision(w, i, round);
    forget(w, i);
}

static uint64_t gone_of(struct world *w, uint32_t i, uint32_t round)
{
    uint64_t gone = 0;
    for (uint32_t k = 0; k < n; k++)
        gone |= (uint64_t)agree_is_gone(machine(w, i, round), k) << k;
    return gone;
}

static void check_end(struct world *w)
{
    ends++;
    for (uint32_t round = 0; round < rounds; round++) {
        uint64_t gone = UINT64_MAX;
        for (uint32_t i = 0; i < n; i++) {
            if (w->dead[i])
                continue;
            CHECK_TRUE(w->result[i][round] != 0);
            if (w->forgot[i] > round)
                continue;
            CHECK_TRUE(gone == UINT64_MAX || gone == gone_of(w, i, round));
            gone = gone_of(w, i, round);
        }
    }
}

static int events_of(const struct world *w, struct event *list)
{
    int count = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (w->dead[i])
            continue;
        if (w->begun[i] < rounds)
            list[count++] = (struct event){BEGIN, i, 0};
        for (uint32_t k = 0; k < n; k++) {
            /* A process receives nothing from a process that it knows to be dead. */
            if (w->queued[k][i] && !w->knows[i][k])
                list[count++] = (struct event){HEAR, i, k};
            if (w->dead[k] && !w->knows[i][k])
                list[count++] = (struct event){NEWS, i, k};
        }
    }
    return count;
}

/* ---- every order: depth first, over states not seen before ---- */

static uint64_t *seen;
static uint64_t seen_room;

static bool is_new(const struct world *w)
{
    uint64_t hash = 0x243f6a8885a308d3u;
    const char *bytes = (const char *)w;
    for (size_t i = 0; i + 8 <= sizeof(*w); i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 31;
    }
    hash |= 1;
    if (2 * states >= seen_room) {
        uint64_t *old = seen, room = seen_room;
        seen_room = room ? 2 * room : 1 << 16;
        seen = calloc(seen_room, sizeof(*seen));
        CHECK_TRUE(seen != NULL);
        for (uint64_t i = 0; i < room; i++)
            if (old[i]) {
                uint64_t at = old[i] >> 8 & (seen_room - 1);
                while (seen[at])
                    at = (at + 1) & (seen_room - 1);
                seen[at] = old[i];
            }
        free(old);
    }
    uint64_t at = hash >> 8 & (seen_room - 1);
    for (; seen[at]; at = (at + 1) & (seen_room - 1))
        if (seen[at] == hash)
            return false;
    seen[at] = hash;
    states++;
    return true;
}

static void explore(const struct world *w, uint32_t deaths, uint64_t depth)
{
    struct event list[MOST * (2 * MOST + 1)];
    if (!is_new(w))
        return;
    longest = depth > longest ? depth : longest;
    const int count = events_of(w, list);
    if (count == 0)
        check_end((struct world *)(uintptr_t)w);
    for (int i = 0; i < count; i++) {
        struct world next = *w;
        int sent = step(&next, &list[i], -1);
        check_and_forget(&next, list[i].at);
        explore(&next, deaths, depth + 1);
        /* It may die after any of its messages. After the last one is the same as between two steps. */
        for (int most = 0; deaths < may_die && most < sent; most++) {
            struct world cut = *w;
            step(&cut, &list[i], most);
            die(&cut, list[i].at);
            explore(&cut, deaths + 1, depth + 1);
        }
    }
    for (uint32_t i = 0; deaths < may_die && i < n; i++)
        if (!w->dead[i]) {
            struct world next = *w;
            die(&next, i);
            explore(&next, deaths + 1, depth + 1);
        }
}

static void explore_all(uint32_t size, uint32_t deaths, uint32_t agreements)
{
    struct world w;
    memset(&w, 0, sizeof(w));
    n = size;
    may_die = deaths;
    rounds = agreements;
    states = ends = longest = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t round = 0; round < rounds; round++) {
            agree_init(machine(&w, i, round), n, i, WORDS);
            agree_set_max_words(machine(&w, i, round), 2);
        }
    explore(&w, 0, 0);
    printf("%u processes, at most %u die, agreements: %u: %llu states, %llu ends, at most %llu steps\n", n,
           deaths, rounds, (unsigned long long)states, (unsigned long long)ends, (unsigned long long)longest);
    free(seen);
    seen = NULL;
    seen_room = 0;
}

int main(void)
{
    explore_all(1, 0, 1);
    explore_all(2, 1, 1);
    explore_all(3, 2, 1);
    explore_all(4, 1, 1);
    explore_all(4, 2, 1);
    explore_all(4, 3, 1);
    explore_all(5, 1, 1);
    explore_all(2, 1, 3);
    explore_all(3, 1, 2);
    explore_all(3, 2, 2);
    return 0;
}
