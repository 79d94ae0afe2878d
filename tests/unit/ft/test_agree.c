/* test_agree.c: the agreement (ft/agree.h) in every order of events, among 2 to 4 processes of which all
 * but one may die: in any step, after any of the messages that the step sends. Messages between two
 * processes keep their order; the notification of a death may arrive before or after messages of the dead
 * process. All processes that decide decide the same, also those that die later; when no event is left all
 * living processes have decided. Several agreements may run at once: a process forgets an agreement when a
 * later decision permits it (ft/agree.h), and then answers no query about it. Or, as in MPI_Finalize, a
 * process leaves after it has decided, and answers queries by LEFT only.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "ft/agree.h"
#include "test.h"

/* The first violated condition ends the search. */
#define CHECK_TRUE(cond)   \
    do {                   \
        EXPECT(cond);      \
        if (test_failures) \
            exit(1);       \
    } while (0)

#define PROCESSES_MAX 5
#define QUEUE         10
#define WORDS         3 /* a bitwise AND, a maximum, and the first agreement that must be retained */
#define ROUNDS        3
#define MACHINE       (sizeof(struct agree) + (3 * WORDS + 5) * sizeof(uint64_t))
#define LEFT          2      /* kind of a reply, besides enum agree_kind: the sender has left MPI_Finalize */
#define REQUEST_LEFT  3      /* kind of a request: reply LEFT, now or when the receiver leaves */
#define ENDED         0x4000 /* result of a process that may leave; the agreed value is not checked */

struct simulated_message {
    uint8_t round, kind, epoch, decided, words, maximum, open, have, dead;
};

/* Memory of this type compares byte by byte. */
struct world {
    uint64_t machines[PROCESSES_MAX][ROUNDS][MACHINE / 8];
    struct simulated_message messages[PROCESSES_MAX][PROCESSES_MAX]
                                     [QUEUE]; /* indexed by sender and receiver */
    uint8_t queued[PROCESSES_MAX][PROCESSES_MAX];
    uint8_t dead[PROCESSES_MAX]; /* 1: has died */
    uint8_t knows_dead[PROCESSES_MAX]
                      [PROCESSES_MAX]; /* knows[i][k] is 1: process i was notified that k died */
    uint8_t begun[PROCESSES_MAX];      /* number of agreements begun */
    uint8_t forgotten[PROCESSES_MAX];  /* number of agreements forgotten */
    uint8_t requested
        [PROCESSES_MAX]; /* set of processes that have requested LEFT from this process (kind REQUEST_LEFT) */
    uint8_t has_left[PROCESSES_MAX];        /* 1: has decided all agreements and answers queries only */
    uint16_t result[PROCESSES_MAX][ROUNDS]; /* of living processes: 0x8000 | result words, once decided */
};

static uint32_t nprocesses, deaths_max, nrounds;
static bool processes_leave; /* as in MPI_Finalize: each agreement must end, its result is not checked */
static uint64_t nstates, nfinal_states, longest_path;

static struct agree *get_agreement(struct world *w, uint32_t i, uint32_t round)
{
    return (struct agree *)w->machines[i][round];
}

/* ---- one step of one process, which may die after `messages_left` more messages ---- */

struct outbox {
    struct world *w;
    uint32_t from, round;
    int messages_left; /* messages that the process still sends before it dies */
};

static void send_simulated_message(void *arg, uint32_t to, const struct agree_message *m)
{
    struct outbox *p = arg;
    if (p->messages_left == 0)
        return;
    p->messages_left--;
    if (p->w->dead[to])
        return;
    uint8_t *queued = &p->w->queued[p->from][to];
    CHECK_TRUE(*queued < QUEUE);
    p->w->messages[p->from][to][(*queued)++] =
        (struct simulated_message){(uint8_t)p->round,    (uint8_t)m->kind,           (uint8_t)m->epoch,
                                   (uint8_t)m->decided,  (uint8_t)(m->data[0] & 31), (uint8_t)m->data[1],
                                   (uint8_t)~m->data[2], (uint8_t)m->data[3],        (uint8_t)m->data[4]};
}

enum event_kind { BEGIN, RECEIVE, NOTIFY_DEATH, LEAVE };
struct event {
    enum event_kind event_kind;
    uint32_t at, from;
};

static uint64_t get_contribution(uint32_t i)
{
    return 31 & ~(1ull << i);
}

static struct simulated_message dequeue_simulated_message(struct world *w, uint32_t from, uint32_t to)
{
    struct simulated_message first = w->messages[from][to][0];
    w->queued[from][to]--;
    memmove(&w->messages[from][to][0], &w->messages[from][to][1], w->queued[from][to] * sizeof(first));
    memset(&w->messages[from][to][w->queued[from][to]], 0, sizeof(first));
    return first;
}

static uint32_t find_first_undecided(struct world *w, uint32_t i)
{
    uint32_t first = w->forgotten[i];
    while (first < w->begun[i] && get_agreement(w, i, first)->decided)
        first++;
    return first;
}

/* Forgets agreements as round.c does after each decision. */
static void forget_agreements(struct world *w, uint32_t i)
{
    uint32_t below = w->forgotten[i];
    for (uint32_t k = below; k < w->begun[i]; k++)
        if (get_agreement(w, i, k)->decided && agree_decode_first_open(get_agreement(w, i, k)) > below)
            below = agree_decode_first_open(get_agreement(w, i, k));
    CHECK_TRUE(below <= find_first_undecided(w, i));
    for (; w->forgotten[i] < below; w->forgotten[i]++)
        memset(w->machines[i][w->forgotten[i]], 0, MACHINE);
}

static void post_simulated_message(struct outbox *p, uint32_t to, uint8_t kind)
{
    if (p->messages_left == 0)
        return;
    p->messages_left--;
    CHECK_TRUE(p->w->queued[p->from][to] < QUEUE);
    if (!p->w->dead[to])
        p->w->messages[p->from][to][p->w->queued[p->from][to]++] =
            (struct simulated_message){.round = (uint8_t)p->round, .kind = kind};
}

/* A process that has left replies LEFT to every message; an undecided process that receives LEFT ends its
 * agreement. */
static void handle_leave_message(struct world *w, const struct event *e, const struct simulated_message *l,
                                 struct outbox *p, const struct agree_out *out)
{
    struct agree *a = get_agreement(w, e->at, l->round);
    p->round = l->round;
    if (l->kind == LEFT && !w->has_left[e->at] && !a->decided)
        agree_end_without_result(a, out);
    else if (l->kind != LEFT && w->has_left[e->at])
        post_simulated_message(p, e->from, LEFT);
    else if (l->kind == REQUEST_LEFT)
        w->requested[e->at] |= (uint8_t)(1 << e->from);
}

/* Called after a death, which may have made process i the root (`led`: i was the root before). A new root
 * requests a reply from all members, since members that have left send no contribution. */
static void request_contributions(struct world *w, uint32_t i, bool led, struct outbox *p)
{
    const struct agree *a = get_agreement(w, i, p->round);
    for (uint32_t k = 0; k < nprocesses && processes_leave && !led && a->epoch == i && !a->decided; k++)
        if (k != i && !w->knows_dead[i][k])
            post_simulated_message(p, k, REQUEST_LEFT);
}

static void receive_simulated_message(struct world *w, const struct event *e, struct outbox *p,
                                      const struct agree_out *out)
{
    struct simulated_message l = dequeue_simulated_message(w, e->from, e->at);
    if (l.kind >= LEFT || w->has_left[e->at]) {
        handle_leave_message(w, e, &l, p, out);
        return;
    }
    uint64_t memory[8] = {0};
    struct agree_message *m = (struct agree_message *)memory;
    *m = (struct agree_message){.kind = l.kind, .epoch = l.epoch, .decided = l.decided};
    m->data[0] = l.words | ~31ull;
    m->data[1] = l.maximum;
    m->data[2] = agree_encode_first_open(l.open);
    m->data[3] = l.have;
    m->data[4] = l.dead;
    p->round = l.round;
    if (l.round >= w->forgotten[e->at]) {
        const bool led = get_agreement(w, e->at, l.round)->epoch == e->at;
        agree_receive(get_agreement(w, e->at, l.round), e->from, m, out);
        request_contributions(w, e->at, led, p);
    }
}

/* Executes one event and returns the number of messages sent. `most` >= 0: the process dies after `most`
 * messages. */
static int step_process(struct world *w, const struct event *e, int most)
{
    uint64_t room[8] = {0}, words[WORDS] = {get_contribution(e->at), e->at + 1,
                                            agree_encode_first_open(find_first_undecided(w, e->at))};
    struct outbox p = {w, e->at, w->begun[e->at], most < 0 ? 1000 : most};
    struct agree_out out = {send_simulated_message, &p, (struct agree_message *)room};
    if (e->event_kind == LEAVE) {
        w->has_left[e->at] = 1;
        p.round = 0;
        for (uint32_t k = 0; k < nprocesses; k++)
            if (w->requested[e->at] >> k & 1)
                post_simulated_message(&p, k, LEFT);
        w->requested[e->at] = 0;
        memset(w->machines[e->at], 0, sizeof(w->machines[e->at]));
    } else if (e->event_kind == BEGIN) {
        agree_begin(get_agreement(w, e->at, w->begun[e->at]++), words, &out);
    } else if (e->event_kind == NOTIFY_DEATH) {
        w->knows_dead[e->at][e->from] = 1;
        for (p.round = w->forgotten[e->at]; p.round < nrounds && !w->has_left[e->at]; p.round++) {
            struct agree *a = get_agreement(w, e->at, p.round);
            const bool led = a->epoch == e->at;
            agree_member_died(a, e->from, &out);
            request_contributions(w, e->at, led, &p);
        }
    } else {
        receive_simulated_message(w, e, &p, &out);
    }
    return (most < 0 ? 1000 : most) - p.messages_left;
}

static void kill_process(struct world *w, uint32_t i)
{
    w->dead[i] = 1;
    w->requested[i] = 0;
    memset(w->result[i], 0, sizeof(w->result[i]));
    memset(w->machines[i], 0, sizeof(w->machines[i]));
    for (uint32_t k = 0; k < nprocesses; k++) {
        memset(w->messages[k][i], 0, sizeof(w->messages[k][i]));
        w->queued[k][i] = 0;
        w->knows_dead[i][k] = 0;
    }
}

/* ---- checks ---- */

static void check_decision(struct world *w, uint32_t i, uint32_t round)
{
    struct agree *a = get_agreement(w, i, round);
    if (!a->decided)
        return;
    for (uint32_t k = 0; k < nprocesses; k++)
        CHECK_TRUE(w->dead[k] || w->begun[k] > round);
    if (processes_leave) { /* the result is not used */
        w->result[i][round] = ENDED;
        return;
    }
    uint16_t got = (uint16_t)(0x8000 | agree_get_result(a)[1] << 5 | (agree_get_result(a)[0] & 31));
    CHECK_TRUE(w->result[i][round] == 0 || w->result[i][round] == got);
    w->result[i][round] = got;
    for (uint32_t k = 0; k < nprocesses; k++) {
        if (!w->dead[k]) {
            /* The result includes the contributions of all living processes. */
            CHECK_TRUE(!(agree_get_result(a)[0] >> k & 1));
            CHECK_TRUE(agree_get_result(a)[1] >= k + 1);
            CHECK_TRUE(!agree_is_named_dead(a, k));
        }
        CHECK_TRUE(w->result[k][round] == 0 || w->result[k][round] == got);
    }
}

static void check_decisions_and_forget(struct world *w, uint32_t i)
{
    for (uint32_t round = w->forgotten[i]; round < nrounds; round++)
        check_decision(w, i, round);
    forget_agreements(w, i);
}

static uint64_t unreachable_members_mask(struct world *w, uint32_t i, uint32_t round)
{
    uint64_t gone = 0;
    for (uint32_t k = 0; k < nprocesses; k++)
        gone |= (uint64_t)agree_is_named_dead(get_agreement(w, i, round), k) << k;
    return gone;
}

static void check_final_state(struct world *w)
{
    nfinal_states++;
    for (uint32_t round = 0; round < nrounds; round++) {
        uint64_t gone = UINT64_MAX;
        for (uint32_t i = 0; i < nprocesses; i++) {
            if (w->dead[i])
                continue;
            CHECK_TRUE(w->result[i][round] != 0);
            if (w->forgotten[i] > round || processes_leave)
                continue;
            CHECK_TRUE(gone == UINT64_MAX || gone == unreachable_members_mask(w, i, round));
            gone = unreachable_members_mask(w, i, round);
        }
    }
}

static bool has_all_results(const struct world *w, uint32_t i)
{
    for (uint32_t round = 0; round < nrounds; round++)
        if (w->result[i][round] == 0)
            return false;
    return true;
}

static int list_events(const struct world *w, struct event *list)
{
    int count = 0;
    for (uint32_t i = 0; i < nprocesses; i++) {
        if (w->dead[i])
            continue;
        if (w->begun[i] < nrounds)
            list[count++] = (struct event){BEGIN, i, 0};
        else if (processes_leave && !w->has_left[i] && has_all_results(w, i))
            list[count++] = (struct event){LEAVE, i, 0};
        for (uint32_t k = 0; k < nprocesses; k++) {
            /* A process receives nothing from a process that it knows to be dead. */
            if (w->queued[k][i] && !w->knows_dead[i][k])
                list[count++] = (struct event){RECEIVE, i, k};
            if (w->dead[k] && !w->knows_dead[i][k])
                list[count++] = (struct event){NOTIFY_DEATH, i, k};
        }
    }
    return count;
}

/* ---- every order of events: depth-first search over states not seen before ---- */

static uint64_t *seen_states;
static uint64_t seen_capacity;

static bool add_if_new_state(const struct world *w)
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
    if (2 * nstates >= seen_capacity) {
        uint64_t *old = seen_states, room = seen_capacity;
        seen_capacity = room ? 2 * room : 1 << 16;
        seen_states = calloc(seen_capacity, sizeof(*seen_states));
        CHECK_TRUE(seen_states != NULL);
        for (uint64_t i = 0; i < room; i++)
            if (old[i]) {
                uint64_t at = old[i] >> 8 & (seen_capacity - 1);
                while (seen_states[at])
                    at = (at + 1) & (seen_capacity - 1);
                seen_states[at] = old[i];
            }
        free(old);
    }
    uint64_t at = hash >> 8 & (seen_capacity - 1);
    for (; seen_states[at]; at = (at + 1) & (seen_capacity - 1))
        if (seen_states[at] == hash)
            return false;
    seen_states[at] = hash;
    nstates++;
    return true;
}

static void explore_events(const struct world *w, uint32_t deaths, uint64_t depth)
{
    struct event list[PROCESSES_MAX * (2 * PROCESSES_MAX + 2)];
    if (!add_if_new_state(w))
        return;
    longest_path = depth > longest_path ? depth : longest_path;
    const int count = list_events(w, list);
    if (count == 0)
        check_final_state((struct world *)(uintptr_t)w);
    for (int i = 0; i < count; i++) {
        struct world next = *w;
        int sent = step_process(&next, &list[i], -1);
        check_decisions_and_forget(&next, list[i].at);
        explore_events(&next, deaths, depth + 1);
        /* The process may die after any of its messages except the last: that equals a death between two
         * steps. */
        for (int most = 0; deaths < deaths_max && most < sent; most++) {
            struct world cut = *w;
            step_process(&cut, &list[i], most);
            kill_process(&cut, list[i].at);
            explore_events(&cut, deaths + 1, depth + 1);
        }
    }
    for (uint32_t i = 0; deaths < deaths_max && i < nprocesses; i++)
        if (!w->dead[i]) {
            struct world next = *w;
            kill_process(&next, i);
            explore_events(&next, deaths + 1, depth + 1);
        }
}

static void explore_all(uint32_t size, uint32_t deaths, uint32_t agreements, bool leave)
{
    struct world w;
    memset(&w, 0, sizeof(w));
    nprocesses = size;
    deaths_max = deaths;
    nrounds = agreements;
    processes_leave = leave;
    nstates = nfinal_states = longest_path = 0;
    for (uint32_t i = 0; i < nprocesses; i++)
        for (uint32_t round = 0; round < nrounds; round++) {
            agree_init(get_agreement(&w, i, round), nprocesses, i, WORDS);
            agree_set_max_words(get_agreement(&w, i, round), 2);
        }
    explore_events(&w, 0, 0);
    printf("%u processes, at most %u die, agreements: %u%s: %llu states, %llu final states, at most %llu "
           "steps\n",
           nprocesses, deaths, nrounds, leave ? ", then leave" : "", (unsigned long long)nstates,
           (unsigned long long)nfinal_states, (unsigned long long)longest_path);
    free(seen_states);
    seen_states = NULL;
    seen_capacity = 0;
}

int main(void)
{
    explore_all(1, 0, 1, false);
    explore_all(2, 1, 1, false);
    explore_all(3, 2, 1, false);
    explore_all(4, 1, 1, false);
    explore_all(4, 2, 1, false);
    explore_all(4, 3, 1, false);
    explore_all(5, 1, 1, false);
    explore_all(2, 1, 3, false);
    explore_all(3, 1, 2, false);
    explore_all(3, 2, 2, false);
    explore_all(2, 1, 1, true);
    explore_all(3, 2, 1, true);
    explore_all(4, 1, 1, true);
    explore_all(4, 2, 1, true);
    return 0;
}
