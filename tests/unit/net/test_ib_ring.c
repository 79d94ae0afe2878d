/* test_ib_ring.c: the RDMA ring. A frame arrives byte by byte in ascending order in a slot full of
 * misleading old bytes, and must not be visible before its last byte; all short histories of a slot;
 * counters that wrap; invalid data of peers; a long random run against a model; a writer and a reader in
 * two threads.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/rdma_ring.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "test.h"

struct ring_pair {
    struct ring_tx tx;
    struct ring_rx rx;
};

static struct ring_pair ring_pair_open(uint32_t slots, uint32_t slot_size, uint32_t age)
{
    return (struct ring_pair){
        .tx = {calloc(slots, slot_size), slots, slot_size, age, age},
        .rx = {calloc(slots, slot_size), slots, slot_size, age, 0},
    };
}

static void ring_pair_close(struct ring_pair *p)
{
    free(p->tx.mirror);
    free(p->rx.ring);
}

static bool has_frame(const struct ring_pair *p)
{
    size_t size;
    bool broken = false;
    bool seen = ring_rx_peek(&p->rx, &size, &broken) != NULL;
    EXPECT(!broken);
    return seen;
}

/* Stores the frame byte by byte, as an adapter does, and polls before each byte: the frame must not be
 * visible yet. */
static void write_frame_bytewise(struct ring_pair *p, uint32_t slot, size_t bytes)
{
    const char *from = p->tx.mirror + (size_t)slot * p->tx.slot_size;
    char *to = p->rx.ring + (size_t)slot * p->rx.slot_size;
    for (size_t i = 0; i < bytes; i++) {
        if (has_frame(p)) {
            EXPECT(!"a frame seen before its last byte arrived");
            return;
        }
        to[i] = from[i];
    }
}

static void expect_frame(struct ring_pair *p, const void *wanted, size_t wanted_size)
{
    size_t size = SIZE_MAX;
    bool broken = false;
    const char *frame = ring_rx_peek(&p->rx, &size, &broken);
    EXPECT(frame != NULL && !broken);
    EXPECT_EQ(size, wanted_size);
    EXPECT_EQ((uintptr_t)frame % 8, 0);
    if (frame && size == wanted_size)
        EXPECT(memcmp(frame, wanted, size) == 0);
    ring_rx_consume(&p->rx);
    EXPECT(p->rx.slots > 1 || !has_frame(p));
}

static void pass_frame(struct ring_pair *p, const void *bytes, size_t size)
{
    char *room = ring_tx_next_slot(&p->tx);
    EXPECT(room != NULL);
    if (!room)
        return;
    memcpy(room, bytes, size);
    uint32_t slot;
    size_t len = ring_tx_close(&p->tx, size, &slot);
    EXPECT_EQ(len, RING_HEAD_BYTES + size + RING_TAIL_BYTES);
    write_frame_bytewise(p, slot, len);
    expect_frame(p, bytes, size);
    EXPECT(ring_tx_release_slots(&p->tx, ring_rx_take_owed(&p->rx, UINT32_MAX)));
}

/* ---- one slot and all its possible histories ---- */

static uint64_t histories;

static void explore_histories(struct ring_pair *p, size_t size_max, int frames)
{
    static const unsigned char worst[] = {RING_FLAG_FIRST, RING_FLAG_SECOND, 0};
    enum { SLOT = 16 };
    if (frames == 0) {
        histories++;
        return;
    }
    char mirror[SLOT], ring[SLOT];
    memcpy(mirror, p->tx.mirror, SLOT);
    memcpy(ring, p->rx.ring, SLOT);
    size_t contents = 1;
    for (size_t size = 0; size <= size_max; size++, contents *= COUNT_OF(worst)) {
        for (size_t which = 0; which < contents && test_failures == 0; which++) {
            unsigned char bytes[SLOT];
            for (size_t i = 0, rest = which; i < size; i++, rest /= COUNT_OF(worst))
                bytes[i] = worst[rest % COUNT_OF(worst)];
            pass_frame(p, bytes, size);
            explore_histories(p, size_max, frames - 1);
            memcpy(p->tx.mirror, mirror, SLOT);
            memcpy(p->rx.ring, ring, SLOT);
        }
    }
}

static void test_all_slot_histories(void)
{
    struct ring_pair p = ring_pair_open(1, 16, 0);
    explore_histories(&p, 3, 3);
    explore_histories(&p, 1, 6);
    EXPECT_EQ(histories, 40 * 40 * 40 + 4 * 4 * 4 * 4 * 4 * 4);
    ring_pair_close(&p);
}

static void test_all_sizes_after_misleading_bytes(void)
{
    enum { SLOT = 512 };
    static const unsigned char flags[] = {RING_FLAG_FIRST, RING_FLAG_SECOND};
    size_t most = ring_frame_max(SLOT);
    unsigned char old[SLOT], bytes[SLOT];
    for (int left = 0; left < 2; left++) {
        for (int filled = 0; filled < 2; filled++) {
            struct ring_pair p = ring_pair_open(1, SLOT, 0);
            memset(old, flags[left], sizeof(old));
            memset(bytes, flags[filled], sizeof(bytes));
            for (size_t size = 0; size <= most && test_failures == 0; size++) {
                pass_frame(&p, old, most); /* writes the flag value at every position where a tail may be */
                pass_frame(&p, bytes, size);
            }
            ring_pair_close(&p);
        }
    }
}

/* The adapter guarantees only that the last byte is written last: any part of the head may have arrived,
 * alone or with all of the frame, while old bytes look like tails at every position where a tail may be. */
static void test_partial_heads(void)
{
    enum { SLOT = 1024 };
    static const size_t sizes[] = {0, 1, 2, 0x5a, 0xa5, 255, 256, 257, 0x15a, SLOT - 9};
    unsigned char bytes[SLOT];
    struct ring_pair p = ring_pair_open(1, SLOT, 0);
    for (size_t n = 0; n < 2 * COUNT_OF(sizes) * COUNT_OF(sizes); n++) {
        bool swap = n & 1;
        size_t before = sizes[n / 2 / COUNT_OF(sizes)], size = sizes[n / 2 % COUNT_OF(sizes)];
        memset(bytes, swap ? RING_FLAG_FIRST : RING_FLAG_SECOND, sizeof(bytes));
        pass_frame(&p, bytes, ring_frame_max(SLOT));
        pass_frame(&p, bytes, before);
        memset(ring_tx_next_slot(&p.tx), swap ? RING_FLAG_SECOND : RING_FLAG_FIRST, size);
        uint32_t slot;
        char old[RING_HEAD_BYTES];
        size_t len = ring_tx_close(&p.tx, size, &slot);
        memcpy(old, p.rx.ring, sizeof(old));
        for (int frame = 0; frame < 2; frame++) {
            if (frame)
                memcpy(p.rx.ring + RING_HEAD_BYTES, p.tx.mirror + RING_HEAD_BYTES, size);
            for (unsigned there = 0; there < 1u << RING_HEAD_BYTES; there++) {
                for (size_t k = 0; k < RING_HEAD_BYTES; k++)
                    p.rx.ring[k] = there >> k & 1 ? p.tx.mirror[k] : old[k];
                EXPECT(!has_frame(&p));
            }
        }
        p.rx.ring[len - 1] = p.tx.mirror[len - 1];
        expect_frame(&p, p.tx.mirror + RING_HEAD_BYTES, size);
        EXPECT(ring_tx_release_slots(&p.tx, ring_rx_take_owed(&p.rx, 1)));
        if (test_failures)
            break;
    }
    ring_pair_close(&p);
}

/* Only large slots use the third byte of the size. */
static void test_large_slots(void)
{
    enum { SLOT = 128 * 1024 };
    static unsigned char bytes[SLOT];
    static const size_t sizes[] = {0, 255, 256, 0x5a5a, 0xa5a5, 65535, 65536, 0x15a5a, SLOT - 9};
    struct ring_pair p = ring_pair_open(2, SLOT, 0);
    memset(bytes, RING_FLAG_FIRST, sizeof(bytes));
    EXPECT_EQ(ring_frame_max(SLOT), SLOT - 9);
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        for (int twice = 0; twice < 2; twice++)
            pass_frame(&p, bytes, sizes[i]);
    ring_pair_close(&p);
}

/* ---- full, empty, wrapping ---- */

static void test_ring_fills_and_wraps(void)
{
    enum { SLOTS = 4, SLOT = 64 };
    struct ring_pair p = ring_pair_open(SLOTS, SLOT, UINT32_MAX - 5);
    uint32_t slot, next = 0, number = 0, wanted = 0;
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < SLOTS; i++, number++) {
            char *room = ring_tx_next_slot(&p.tx);
            EXPECT(room != NULL);
            if (!room)
                return;
            memcpy(room, &number, sizeof(number));
            size_t len = ring_tx_close(&p.tx, sizeof(number), &slot);
            EXPECT(number == 0 || slot == (next + 1) % SLOTS);
            next = slot;
            memcpy(p.rx.ring + slot * SLOT, p.tx.mirror + slot * SLOT, len);
        }
        EXPECT(ring_tx_next_slot(&p.tx) == NULL);
        EXPECT(ring_tx_next_slot(&p.tx) == NULL);
        for (int i = 0; i < SLOTS; i++, wanted++) {
            EXPECT_EQ(ring_rx_message_is_due(&p.rx), i >= SLOTS / 2);
            expect_frame(&p, &wanted, sizeof(wanted));
        }
        EXPECT(!has_frame(&p));
        EXPECT_EQ(ring_rx_take_owed(&p.rx, 1), 1);
        EXPECT(ring_tx_release_slots(&p.tx, 1));
        EXPECT(ring_tx_next_slot(&p.tx) != NULL);
        EXPECT_EQ(ring_rx_take_owed(&p.rx, 255), 3);
        EXPECT_EQ(ring_rx_take_owed(&p.rx, 255), 0);
        EXPECT(!ring_rx_message_is_due(&p.rx));
        EXPECT(ring_tx_release_slots(&p.tx, 3));
    }
    ring_pair_close(&p);
}

static void test_ring_of_one_slot(void)
{
    struct ring_pair p = ring_pair_open(1, 32, 7);
    pass_frame(&p, "a", 1);
    EXPECT(!ring_rx_message_is_due(&p.rx)); /* the credit was granted already */
    memcpy(ring_tx_next_slot(&p.tx), "b", 1);
    uint32_t slot;
    size_t len = ring_tx_close(&p.tx, 1, &slot);
    EXPECT(ring_tx_next_slot(&p.tx) == NULL);
    write_frame_bytewise(&p, slot, len);
    expect_frame(&p, "b", 1);
    EXPECT(ring_rx_message_is_due(&p.rx));
    ring_pair_close(&p);
}

static void test_invalid_peer_data_is_detected(void)
{
    struct ring_pair p = ring_pair_open(2, 64, 0);
    uint32_t slot;
    EXPECT(!ring_tx_release_slots(&p.tx, 1));
    ring_tx_close(&p.tx, 0, &slot);
    EXPECT(!ring_tx_release_slots(&p.tx, 2));
    EXPECT(ring_tx_release_slots(&p.tx, 1));
    EXPECT(!ring_tx_release_slots(&p.tx, UINT32_MAX));

    static const struct {
        size_t size;
        unsigned char flag;
        bool broken;
    } cases[] = {
        {55, RING_FLAG_FIRST, false},
        {56, RING_FLAG_FIRST, true},
        {0xffffff, RING_FLAG_SECOND, true},
        {0, 0x5b, true},
        {0, 0xff, true},
        {0, 0, true},
    };
    size_t size = 0;
    bool broken = false;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint64_t head = ring_make_head(cases[i].size, cases[i].flag);
        broken = false;
        memcpy(p.rx.ring, &head, sizeof(head));
        EXPECT(ring_rx_peek(&p.rx, &size, &broken) == NULL);
        EXPECT_EQ(broken, cases[i].broken);
    }
    broken = false;
    memset(p.rx.ring, 0xff, 8); /* an invalid head */
    EXPECT(ring_rx_peek(&p.rx, &size, &broken) == NULL);
    EXPECT(!broken);
    ring_pair_close(&p);
}

/* ---- a long random run against a model ---- */

static uint64_t seed = 88172645463325252u;

static uint32_t random_choice(uint32_t sides)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 20) % sides;
}

enum { RUN_SLOTS = 8, RUN_SLOT_SIZE = 48, RUN_FRAMES = 100000 };

struct random_run_state {
    struct ring_pair p;
    struct {
        unsigned char bytes[RUN_SLOT_SIZE];
        size_t size;
    } sent[RUN_SLOTS];                       /* frames sent, by slot */
    uint32_t nbuilt, narrived, nconsumed;    /* number of frames built, completely arrived, consumed */
    size_t arrived;                          /* bytes of frame number `narrived` that have arrived */
    size_t len[RUN_SLOTS];                   /* bytes of each frame, by slot */
    uint32_t grants[RUN_SLOTS], grant_count; /* credits in flight to the sender */
};

static void random_build_frame(struct random_run_state *s)
{
    char *room = ring_tx_next_slot(&s->p.tx);
    if (!room) {
        EXPECT(s->nbuilt - s->nconsumed + s->p.rx.owed + s->grant_count > 0);
        return;
    }
    size_t size = random_choice((uint32_t)ring_frame_max(RUN_SLOT_SIZE) + 1);
    uint32_t slot = s->nbuilt % RUN_SLOTS;
    for (size_t i = 0; i < size; i++) {
        static const unsigned char likely_bytes[] = {RING_FLAG_FIRST, RING_FLAG_SECOND, 0, 1};
        s->sent[slot].bytes[i] =
            random_choice(8) ? likely_bytes[random_choice(4)] : (unsigned char)random_choice(256);
    }
    s->sent[slot].size = size;
    memcpy(room, s->sent[slot].bytes, size);
    uint32_t got;
    s->len[slot] = ring_tx_close(&s->p.tx, size, &got);
    EXPECT_EQ(got, slot);
    s->nbuilt++;
}

static void random_deliver_bytes(struct random_run_state *s)
{
    for (uint32_t n = random_choice(100); n > 0 && s->narrived != s->nbuilt; n--) {
        uint32_t slot = s->narrived % RUN_SLOTS;
        size_t at = slot * (size_t)RUN_SLOT_SIZE + s->arrived;
        /* The adapter reads the mirror at arrival: the sender must not have changed it meanwhile. */
        s->p.rx.ring[at] = s->p.tx.mirror[at];
        if (++s->arrived == s->len[slot]) {
            s->narrived++;
            s->arrived = 0;
        }
    }
}

static void random_receive_frame(struct random_run_state *s)
{
    size_t size;
    bool broken = false;
    const char *frame = ring_rx_peek(&s->p.rx, &size, &broken);
    EXPECT(!broken);
    EXPECT_EQ(frame != NULL, s->nconsumed != s->narrived);
    if (!frame || s->nconsumed == s->narrived)
        return;
    uint32_t slot = s->nconsumed++ % RUN_SLOTS;
    EXPECT_EQ(size, s->sent[slot].size);
    if (size == s->sent[slot].size)
        EXPECT(memcmp(frame, s->sent[slot].bytes, size) == 0);
    ring_rx_consume(&s->p.rx);
}

static void test_random_run(void)
{
    static struct random_run_state s;
    s.p = ring_pair_open(RUN_SLOTS, RUN_SLOT_SIZE, UINT32_MAX - 999 * RUN_SLOTS + 1);
    int before = test_failures;
    for (int steps = 0; s.nconsumed < RUN_FRAMES && steps < 100 * RUN_FRAMES && test_failures == before;
         steps++) {
        switch (random_choice(4)) {
        case 0:
            random_build_frame(&s);
            break;
        case 1:
            random_deliver_bytes(&s);
            break;
        case 2:
            random_receive_frame(&s);
            break;
        default: /* grant credits now, deliver them later */
            if (s.grant_count < RUN_SLOTS && random_choice(2)) {
                s.grants[s.grant_count++] = ring_rx_take_owed(&s.p.rx, random_choice(4));
            } else if (s.grant_count) {
                EXPECT(ring_tx_release_slots(&s.p.tx, s.grants[0]));
                memmove(s.grants, s.grants + 1, --s.grant_count * sizeof(s.grants[0]));
            }
        }
    }
    EXPECT_EQ(s.nconsumed, RUN_FRAMES);
    ring_pair_close(&s.p);
}

/* ---- an adapter in a thread of its own ---- */

enum { THREAD_FRAMES = 20000, IDLE_MAX = 4000000 };

struct thread_state {
    struct ring_pair p;
    _Atomic uint32_t freed;
};

static size_t frame_size(uint32_t number)
{
    return number * 7 % (ring_frame_max(RUN_SLOT_SIZE) + 1);
}

static unsigned char frame_byte(uint32_t number, size_t i)
{
    return (number + i) % 3 ? (unsigned char)(number / 3 % 2 ? RING_FLAG_FIRST : RING_FLAG_SECOND)
                            : (unsigned char)i;
}

static void *write_frames(void *arg)
{
    struct thread_state *t = arg;
    uint32_t granted = 0, idle = 0;
    for (uint32_t number = 0; number < THREAD_FRAMES; number++) {
        char *room;
        while (!(room = ring_tx_next_slot(&t->p.tx))) {
            uint32_t freed = atomic_load_explicit(&t->freed, memory_order_acquire);
            idle = freed == granted ? idle + 1 : 0;
            if (idle)
                sched_yield();
            if (idle > IDLE_MAX || !ring_tx_release_slots(&t->p.tx, freed - granted)) {
                printf("frame %u: the ring is full, or has more free slots than it has slots\n", number);
                exit(1);
            }
            granted = freed;
        }
        for (size_t i = 0; i < frame_size(number); i++)
            room[i] = (char)frame_byte(number, i);
        uint32_t slot;
        size_t len = ring_tx_close(&t->p.tx, frame_size(number), &slot);
        for (size_t i = 0; i < len; i++) {
            size_t at = slot * (size_t)RUN_SLOT_SIZE + i;
            atomic_store_explicit((_Atomic char *)(void *)&t->p.rx.ring[at], t->p.tx.mirror[at],
                                  memory_order_release);
        }
    }
    return NULL;
}

static void test_two_threads(void)
{
    static struct thread_state t;
    t.p = ring_pair_open(RUN_SLOTS, RUN_SLOT_SIZE, 0);
    pthread_t thread;
    if (pthread_create(&thread, NULL, write_frames, &t) != 0) {
        EXPECT(!"no thread");
        return;
    }
    for (uint32_t number = 0, idle = 0; number < THREAD_FRAMES; idle++) {
        size_t size;
        bool broken = false;
        const char *frame = ring_rx_peek(&t.p.rx, &size, &broken);
        if (!frame) {
            if (broken || idle > IDLE_MAX) {
                printf("frame %u %s\n", number, broken ? "has wrong bytes" : "did not arrive");
                exit(1);
            }
            sched_yield();
            continue;
        }
        EXPECT_EQ(size, frame_size(number));
        size_t wrong = 0;
        for (size_t i = 0; i < size; i++)
            wrong += (unsigned char)frame[i] != frame_byte(number, i);
        EXPECT_EQ(wrong, 0);
        ring_rx_consume(&t.p.rx);
        number++;
        idle = 0;
        if (ring_rx_message_is_due(&t.p.rx))
            atomic_fetch_add_explicit(&t.freed, ring_rx_take_owed(&t.p.rx, 255), memory_order_release);
    }
    pthread_join(thread, NULL);
    ring_pair_close(&t.p);
}

int main(void)
{
    TEST_RUN(test_all_slot_histories);
    TEST_RUN(test_all_sizes_after_misleading_bytes);
    TEST_RUN(test_partial_heads);
    TEST_RUN(test_large_slots);
    TEST_RUN(test_ring_fills_and_wraps);
    TEST_RUN(test_ring_of_one_slot);
    TEST_RUN(test_invalid_peer_data_is_detected);
    TEST_RUN(test_random_run);
    TEST_RUN(test_two_threads);
    return test_result();
}
