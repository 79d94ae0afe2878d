/* test_ring_dead.c: senders of a ring stop or die at every relevant instruction, in every order of the
 * steps of three senders and the receiver. Each sender runs the code of ring.h on its own stack; at each
 * kill point of that code the test may run another sender, leave the sender stopped, or kill it: then the
 * sender never runs again and its death is reported.
 *
 * After every step: frames of one sender arrive in their order and with their bytes; the slot that is
 * skipped belongs to a dead sender; a sender that is only stopped never loses its slot. At the end, with
 * every sender finished or reported dead, all frames that were published have arrived and the ring is
 * empty, with all its lines free.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define FISHPLATE_KILL_POINTS
#include "net/shm/ring.h"

#include <stdlib.h>
#include <ucontext.h>

#include "test.h"

enum {
    LINES = 64,
    SENDERS = 3,
    SLOTS = 4,
    STACK = 64 * 1024,
    DEPTH = 128,
    LONG_LENGTH = 100,
    SEEN_MAX = 1 << 20
};

enum sender_state { RUNS, DONE, DEAD, REPORTED };

static struct sender {
    ucontext_t context;
    struct ring_sender ring;
    enum sender_state state;
    int kill_point_index; /* kill point + 1; 0: before the first step */
    int published;        /* number of frames published */
    uint32_t owns;        /* position + 1 of the slot that is reserved and not published; 0: none */
    int received;
} senders[SENDERS];

static char stacks[SENDERS][STACK];
static ucontext_t scheduler;
static int running;
static int nsenders, nframes; /* number of senders; frames of each sender */
static struct ring *ring;
static bool is_cleared; /* all memory of the ring was cleared once */
static struct ring_receiver receiver;

/* One event: sender 0..n-1 runs to its next point, is killed, or its death is reported; or the receiver
 * acts. */
enum { RUN = 0, KILL = SENDERS, REPORT = 2 * SENDERS, RECEIVE = 3 * SENDERS, EVENTS };
static int event_path[DEPTH], depth;
static uint64_t *seen_states, nstates, nskips, nunsure;

void kill_point_reach(enum kill_point point)
{
    struct sender *s = &senders[running];
    s->kill_point_index = (int)point + 1;
    if (point == KILL_POINT_ring_slot_reserved)
        s->owns = (uint32_t)(atomic_load(&s->ring.intent->slot)) + 1;
    swapcontext(&s->context, &scheduler);
}

static unsigned char payload_byte(int sender, int number)
{
    return (unsigned char)(1 + sender * 50 + number);
}

/* Every other frame needs lines of the data ring. */
static size_t payload_length(int sender, int number)
{
    return (sender + number) % 2 ? LONG_LENGTH : 8;
}

static void send_frames(int id)
{
    struct sender *s = &senders[id];
    for (int n = 0; n < nframes; n++) {
        unsigned char payload[LONG_LENGTH];
        memset(payload, payload_byte(id, n), sizeof(payload));
        while (ring_send(&s->ring, 0, 0, (uint64_t)n, payload, payload_length(id, n)) == ERR_AGAIN)
            swapcontext(&s->context, &scheduler);
        s->published++;
        s->owns = 0;
    }
    s->state = DONE;
}

/* A function of its own: to the compiler getcontext may return twice, which would affect variables of the
 * calling loop. */
static void start_sender(struct sender *s, int number)
{
    getcontext(&s->context);
    s->context.uc_stack.ss_sp = stacks[number];
    s->context.uc_stack.ss_size = STACK;
    s->context.uc_link = &scheduler;
    makecontext(&s->context, (void (*)(void))send_frames, 1, number);
}

static void reset_senders(void)
{
    const size_t size = sizeof(struct ring) + ring_extra_bytes(LINES, SENDERS);
    if (!ring && posix_memalign((void **)&ring, CACHE_LINE, size) != 0)
        abort();
    if (!is_cleared)
        memset(ring, 0, size);
    is_cleared = true;
    /* Clears the slots that the test uses, not the whole array. */
    memset(ring, 0, offsetof(struct ring, slots) + SLOTS * sizeof(ring->slots[0]));
    receiver = ring_receiver(ring, LINES);
    for (int i = 0; i < SENDERS; i++) {
        struct sender *s = &senders[i];
        memset(s, 0, sizeof(*s));
        ring_intents(ring, LINES)[i].slot = 0;
        s->state = i < nsenders ? RUNS : DONE;
        s->ring = ring_sender(ring, LINES, (uint32_t)i, false);
        start_sender(s, i);
    }
}

static bool is_dead(void *arg, uint32_t sender)
{
    (void)arg;
    return senders[sender].state == REPORTED;
}

static void check_frame(const struct ring_slot *slot, const char *payload, size_t len, uint32_t sender)
{
    EXPECT(sender < SENDERS);
    struct sender *s = &senders[sender];
    const int number = (int)slot->header.word;
    EXPECT_EQ(number, s->received);
    s->received++;
    EXPECT_EQ(len, payload_length((int)sender, number));
    for (size_t i = 0; i < len; i++)
        EXPECT_EQ((unsigned char)payload[i], payload_byte((int)sender, number));
    ring_consume(&receiver, slot, len);
}

static void receive_frames(void)
{
    const char *payload;
    size_t len;
    uint32_t sender;
    const struct ring_slot *slot = ring_peek(&receiver, &payload, &len, &sender);
    if (slot) {
        check_frame(slot, payload, len, sender);
        return;
    }
    ring_return_when_idle(&receiver);
    const enum ring_block block = ring_blocked_reason(&receiver, SENDERS, is_dead, NULL);
    nunsure += block == RING_OWNER_UNSURE;
    if (block != RING_OWNER_DEAD)
        return;
    int owner = -1;
    for (int i = 0; i < SENDERS; i++)
        if (senders[i].owns == receiver.slot + 1)
            owner = i;
    EXPECT(owner >= 0 && senders[owner].state == REPORTED);
    ring_skip(&receiver);
    nskips++;
}

static bool event_is_possible(int event)
{
    if (event >= RECEIVE)
        return true;
    const enum sender_state sender_state = senders[event % SENDERS].state;
    return event >= REPORT ? sender_state == DEAD : sender_state == RUNS;
}

static void execute_event(int event)
{
    if (event >= RECEIVE) {
        receive_frames();
    } else if (event >= REPORT) {
        senders[event - REPORT].state = REPORTED;
    } else if (event >= KILL) {
        senders[event - KILL].state = DEAD;
    } else {
        running = event;
        swapcontext(&scheduler, &senders[event].context);
    }
}

static void mix_hash(uint64_t *key, uint64_t value)
{
    *key = (*key ^ value) * 0x9e3779b97f4a7c15u;
    *key ^= *key >> 29;
}

static uint64_t hash_state(void)
{
    uint64_t key = 1;
    mix_hash(&key, ring->tail);
    mix_hash(&key, ring->head);
    mix_hash(&key, (uint64_t)receiver.slot << 32 | receiver.line);
    for (int i = 0; i < SENDERS; i++) {
        const struct sender *s = &senders[i];
        mix_hash(&key, s->ring.intent->slot);
        mix_hash(&key, (uint64_t)s->state | (uint64_t)s->kill_point_index << 8 |
                           (uint64_t)s->published << 16 | (uint64_t)s->received << 24 |
                           (uint64_t)s->owns << 32);
    }
    for (uint32_t i = 0; i < SLOTS; i++)
        mix_hash(&key, (uint64_t)ring->slots[i].sequence << 32 | ring->slots[i].meta);
    return key ? key : 1;
}

static bool add_seen_state(uint64_t key)
{
    for (uint64_t i = key;; i++) {
        uint64_t *place = &seen_states[i % SEEN_MAX];
        if (*place == key)
            return false;
        if (*place == 0) {
            *place = key;
            nstates++;
            return true;
        }
    }
}

static void replay_path(void)
{
    reset_senders();
    for (int i = 0; i < depth; i++)
        execute_event(event_path[i]);
}

/* Checks the final state: no sender runs and all deaths are reported, so the receiver must get every
 * published frame. */
static void check_final_state(void)
{
    for (int i = 0; i < SENDERS; i++)
        if (senders[i].state == RUNS || senders[i].state == DEAD)
            return;
    for (int i = 0; i < 4 * SLOTS; i++)
        receive_frames();
    EXPECT_EQ(receiver.slot, (uint32_t)(ring->tail >> 32));
    EXPECT_EQ(receiver.line, (uint32_t)ring->tail);
    EXPECT_EQ(ring->head, ring->tail);
    for (int i = 0; i < SENDERS; i++)
        EXPECT(senders[i].received >= senders[i].published &&
               (senders[i].state == REPORTED || i >= nsenders || senders[i].received == nframes));
}

static void print_path(void)
{
    static const char *const what[] = {"runs", "dies", "is reported"};
    for (int i = 0; i < depth; i++)
        if (event_path[i] < RECEIVE)
            printf("sender %d %s, ", event_path[i] % SENDERS, what[event_path[i] / SENDERS]);
        else
            printf("receive, ");
    printf("end\n");
}

static void explore_events(int most_deaths, int deaths)
{
    for (int event = 0; event < EVENTS && test_failures == 0; event++) {
        replay_path();
        if (!event_is_possible(event) || (event >= KILL && event < REPORT && deaths == most_deaths))
            continue;
        EXPECT(depth < DEPTH);
        event_path[depth++] = event;
        execute_event(event);
        const bool fresh = add_seen_state(hash_state());
        if (fresh && test_failures == 0)
            check_final_state();
        if (test_failures)
            print_path();
        if (fresh && test_failures == 0)
            explore_events(most_deaths, deaths + (event >= KILL && event < REPORT));
        depth--;
    }
}

static void explore_all_orders(int n, int frames)
{
    nsenders = n;
    nframes = frames;
    EXPECT(n * frames <= SLOTS);
    seen_states = calloc(SEEN_MAX, sizeof(*seen_states));
    nstates = nskips = nunsure = 0;
    explore_events(2, 0);
    printf("%d senders of %d frames: ", n, frames);
    printf("%" PRIu64 " states, %" PRIu64 " slots skipped, %" PRIu64
           " times a living sender had to be awaited\n",
           nstates, nskips, nunsure);
    EXPECT(nstates > 1000 && nstates < SEEN_MAX / 2 && nskips > 100 && nunsure > 100);
    free(seen_states);
}

static void test_two_senders(void)
{
    explore_all_orders(2, 2);
}

static void test_three_senders(void)
{
    explore_all_orders(3, 1);
}

int main(void)
{
    TEST_RUN(test_two_senders);
    TEST_RUN(test_three_senders);
    free(ring);
    return test_result();
}
