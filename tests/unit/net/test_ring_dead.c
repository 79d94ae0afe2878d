/* test_ring_dead.c: senders of a ring that stop or die at any instruction that matters: every order of the steps of three
 * senders and the receiver. The senders run the code of ring.h, each on a stack of its own; at each kill point of that code the
 * test may let another one run, leave the sender there, or kill it: then it never runs again and its death is reported.
 *
 * After every step: frames of one sender arrive in their order and with their bytes; the slot that is skipped belongs to a
 * dead sender; a sender that is only stopped never loses its slot. At the end, with every sender finished or reported dead,
 * all frames that were published have arrived and the ring is empty, with all its lines given back.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define FISHPLATE_KILL_POINTS
#include "net/shm/ring.h"

#include <stdlib.h>
#include <ucontext.h>

#include "test.h"

enum { LINES = 64, SENDERS = 3, SLOTS = 4, STACK = 64 * 1024, DEPTH = 128, LONG = 100, SEEN = 1 << 20 };

enum fate { RUNS, DONE, DEAD, REPORTED };

static struct sender {
    ucontext_t context;
    struct ring_sender ring;
    enum fate fate;
    int at;        /* kill point, + 1; 0: before the first step */
    int published; /* frames */
    uint32_t owns; /* position + 1 of a slot that is reserved and not published */
    int received;
} senders[SENDERS];

static char stacks[SENDERS][STACK];
static ucontext_t scheduler;
static int running;
static int nsenders, nframes; /* that take part; frames of each */
static struct ring *ring;
static bool is_cleared; /* its memory was cleared as a whole */
static struct ring_receiver in;

/* One event: sender 0..n-1 runs to its next point, is killed, or its death is reported; or the receiver acts. */
enum { RUN = 0, KILL = SENDERS, REPORT = 2 * SENDERS, RECEIVE = 3 * SENDERS, EVENTS };
static int path[DEPTH], depth;
static uint64_t *seen, nstates, nskips, nunsure;

void kill_point_reach(enum kill_point point)
{
    struct sender *s = &senders[running];
    s->at = (int)point + 1;
    if (point == KILL_POINT_ring_slot_reserved)
        s->owns = (uint32_t)(atomic_load(&s->ring.intent->slot)) + 1;
    swapcontext(&s->context, &scheduler);
}

static unsigned char byte_of(int sender, int number)
{
    return (unsigned char)(1 + sender * 50 + number);
}

/* Every other frame needs lines of the data ring. */
static size_t length_of(int sender, int number)
{
    return (sender + number) % 2 ? LONG : 8;
}

static void ring_dead_message_body(int id)
{
    struct sender *s = &senders[id];
    for (int n = 0; n < nframes; n++) {
        unsigned char payload[LONG];
        memset(payload, byte_of(id, n), sizeof(payload));
        while (ring_send(&s->ring, 0, 0, (uint64_t)n, payload, length_of(id, n)) == ERR_AGAIN)
            swapcontext(&s->context, &scheduler);
        s->published++;
        s->owns = 0;
    }
    s->fate = DONE;
}

/* Apart from the loop: getcontext may return twice as far as the compiler knows. */
static void start_sender(struct sender *s, int number)
{
    getcontext(&s->context);
    s->context.uc_stack.ss_sp = stacks[number];
    s->context.uc_stack.ss_size = STACK;
    s->context.uc_link = &scheduler;
    makecontext(&s->context, (void (*)(void))ring_dead_message_body, 1, number);
}

static void world_open(void)
{
    const size_t size = sizeof(struct ring) + ring_extra_bytes(LINES, SENDERS);
    if (!ring && posix_memalign((void **)&ring, CACHE_LINE, size) != 0)
        abort();
    if (!is_cleared)
        memset(ring, 0, size);
    is_cleared = true;
    memset(ring, 0, offsetof(struct ring, slots) + SLOTS * sizeof(ring->slots[0])); /* those that are used */
    in = ring_receiver(ring, LINES);
    for (int i = 0; i < SENDERS; i++) {
        struct sender *s = &senders[i];
        memset(s, 0, sizeof(*s));
        ring_intents(ring, LINES)[i].slot = 0;
        s->fate = i < nsenders ? RUNS : DONE;
        s->ring = ring_sender(ring, LINES, (uint32_t)i, false);
        start_sender(s, i);
    }
}

static bool is_dead(void *arg, uint32_t sender)
{
    (void)arg;
    return senders[sender].fate == REPORTED;
}

static void take_frame(const struct ring_slot *slot, const char *payload, size_t len, uint32_t sender)
{
    EXPECT(sender < SENDERS);
    struct sender *s = &senders[sender];
    const int number = (int)slot->header.word;
    EXPECT_EQ(number, s->received);
    s->received++;
    EXPECT_EQ(len, length_of((int)sender, number));
    for (size_t i = 0; i < len; i++)
        EXPECT_EQ((unsigned char)payload[i], byte_of((int)sender, number));
    ring_consume(&in, slot, len);
}

static void ring_dead_receive(void)
{
    const char *payload;
    size_t len;
    uint32_t sender;
    const struct ring_slot *slot = ring_peek(&in, &payload, &len, &sender);
    if (slot) {
        take_frame(slot, payload, len, sender);
        return;
    }
    ring_return_when_idle(&in);
    const enum ring_block block = ring_blocked_reason(&in, SENDERS, is_dead, NULL);
    nunsure += block == RING_OWNER_UNSURE;
    if (block != RING_OWNER_DEAD)
        return;
    int owner = -1;
    for (int i = 0; i < SENDERS; i++)
        if (senders[i].owns == in.slot + 1)
            owner = i;
    EXPECT(owner >= 0 && senders[owner].fate == REPORTED);
    ring_skip(&in);
    nskips++;
}

static bool may_happen(int event)
{
    if (event >= RECEIVE)
        return true;
    const enum fate fate = senders[event % SENDERS].fate;
    return event >= REPORT ? fate == DEAD : fate == RUNS;
}

static void ring_dead_act(int event)
{
    if (event >= RECEIVE) {
        ring_dead_receive();
    } else if (event >= REPORT) {
        senders[event - REPORT].fate = REPORTED;
    } else if (event >= KILL) {
        senders[event - KILL].fate = DEAD;
    } else {
        running = event;
        swapcontext(&scheduler, &senders[event].context);
    }
}

static void ring_dead_mix(uint64_t *key, uint64_t value)
{
    *key = (*key ^ value) * 0x9e3779b97f4a7c15u;
    *key ^= *key >> 29;
}

static uint64_t state_key(void)
{
    uint64_t key = 1;
    ring_dead_mix(&key, ring->tail);
    ring_dead_mix(&key, ring->head);
    ring_dead_mix(&key, (uint64_t)in.slot << 32 | in.line);
    for (int i = 0; i < SENDERS; i++) {
        const struct sender *s = &senders[i];
        ring_dead_mix(&key, s->ring.intent->slot);
        ring_dead_mix(&key, (uint64_t)s->fate | (uint64_t)s->at << 8 | (uint64_t)s->published << 16 |
                                (uint64_t)s->received << 24 | (uint64_t)s->owns << 32);
    }
    for (uint32_t i = 0; i < SLOTS; i++)
        ring_dead_mix(&key, (uint64_t)ring->slots[i].sequence << 32 | ring->slots[i].meta);
    return key ? key : 1;
}

static bool ring_dead_remember(uint64_t key)
{
    for (uint64_t i = key;; i++) {
        uint64_t *place = &seen[i % SEEN];
        if (*place == key)
            return false;
        if (*place == 0) {
            *place = key;
            nstates++;
            return true;
        }
    }
}

static void test_replay(void)
{
    world_open();
    for (int i = 0; i < depth; i++)
        ring_dead_act(path[i]);
}

/* Checks the end: no sender runs any more and all deaths are reported, so the receiver gets everything that was
 * published. */
static void check_end(void)
{
    for (int i = 0; i < SENDERS; i++)
        if (senders[i].fate == RUNS || senders[i].fate == DEAD)
            return;
    for (int i = 0; i < 4 * SLOTS; i++)
        ring_dead_receive();
    EXPECT_EQ(in.slot, (uint32_t)(ring->tail >> 32));
    EXPECT_EQ(in.line, (uint32_t)ring->tail);
    EXPECT_EQ(ring->head, ring->tail);
    for (int i = 0; i < SENDERS; i++)
        EXPECT(senders[i].received >= senders[i].published &&
               (senders[i].fate == REPORTED || i >= nsenders || senders[i].received == nframes));
}

static void print_path(void)
{
    static const char *const what[] = {"runs", "dies", "is reported"};
    for (int i = 0; i < depth; i++)
        if (path[i] < RECEIVE)
            printf("sender %d %s, ", path[i] % SENDERS, what[path[i] / SENDERS]);
        else
            printf("receive, ");
    printf("end\n");
}

static void ring_dead_explore(int most_deaths, int deaths)
{
    for (int event = 0; event < EVENTS && test_failures == 0; event++) {
        test_replay();
        if (!may_happen(event) || (event >= KILL && event < REPORT && deaths == most_deaths))
            continue;
        EXPECT(depth < DEPTH);
        path[depth++] = event;
        ring_dead_act(event);
        const bool fresh = ring_dead_remember(state_key());
        if (fresh && test_failures == 0)
            check_end();
        if (test_failures)
            print_path();
        if (fresh && test_failures == 0)
            ring_dead_explore(most_deaths, deaths + (event >= KILL && event < REPORT));
        depth--;
    }
}

static void every_order(int n, int frames)
{
    nsenders = n;
    nframes = frames;
    EXPECT(n * frames <= SLOTS);
    seen = calloc(SEEN, sizeof(*seen));
    nstates = nskips = nunsure = 0;
    ring_dead_explore(2, 0);
    printf("%d senders of %d frames: ", n, frames);
    printf("%" PRIu64 " states, %" PRIu64 " slots skipped, %" PRIu64
           " times a living sender had to be awaited\n",
           nstates, nskips, nunsure);
    EXPECT(nstates > 1000 && nstates < SEEN / 2 && nskips > 100 && nunsure > 100);
    free(seen);
}

static void two_senders(void)
{
    every_order(2, 2);
}

static void three_senders(void)
{
    every_order(3, 1);
}

int main(void)
{
    TEST_RUN(two_senders);
    TEST_RUN(three_senders);
    free(ring);
    return test_result();
}
