/* test_ib_ring.c: the RDMA ring. A frame arrives byte by byte in ascending order, into a slot that is full of
 * the worst leftovers, and must not be seen before its last byte; all short histories of a slot; counters
 * that wrap; broken peers; a long random run against a model; a writer and a reader in two threads.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/ring.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "test.h"

struct pair {
    struct ring_tx tx;
    struct ring_rx rx;
};

static struct pair pair_new(uint32_t slots, uint32_t slot_size, uint32_t age)
{
    return (struct pair){
        .tx = {calloc(slots, slot_size), slots, slot_size, age, age},
        .rx = {calloc(slots, slot_size), slots, slot_size, age, 0},
    };
}

static void pair_drop(struct pair *p)
{
    free(p->tx.mirror);
    free(p->rx.ring);
}

static bool sees(const struct pair *p)
{
    size_t size;
    bool broken = false;
    bool seen = ring_rx_peek(&p->rx, &size, &broken) != NULL;
    EXPECT(!broken);
    return seen;
}

/* Stores the frame as an adapter does, byte by byte, and polls after each. */
static void arrive(struct pair *p, uint32_t slot, size_t bytes)
{
    const char *from = p->tx.mirror + (size_t)slot * p->tx.slot_size;
    char *to = p->rx.ring + (size_t)slot * p->rx.slot_size;
    for (size_t i = 0; i < bytes; i++) {
        if (sees(p)) {
            EXPECT(!"a frame seen before its last byte arrived");
            return;
        }
        to[i] = from[i];
    }
}

static void receive(struct pair *p, const void *wanted, size_t wanted_size)
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
    EXPECT(p->rx.slots > 1 || !sees(p));
}

static void pass(struct pair *p, const void *bytes, size_t size)
{
    char *room = ring_tx_next_slot(&p->tx);
    EXPECT(room != NULL);
    if (!room)
        return;
    memcpy(room, bytes, size);
    uint32_t slot;
    size_t len = ring_tx_close(&p->tx, size, &slot);
    EXPECT_EQ(len, RING_HEAD_BYTES + size + RING_TAIL_BYTES);
    arrive(p, slot, len);
    receive(p, bytes, size);
    EXPECT(ring_tx_release_slots(&p->tx, ring_rx_take_owed(&p->rx, UINT32_MAX)));
}

/* ---- one slot and all that can have happened to it ---- */

static uint64_t histories;

static void history(struct pair *p, size_t size_max, int frames)
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
            pass(p, bytes, size);
            history(p, size_max, frames - 1);
            memcpy(p->tx.mirror, mirror, SLOT);
            memcpy(p->rx.ring, ring, SLOT);
        }
    }
}

static void no_history_of_a_slot_deceives(void)
{
    struct pair p = pair_new(1, 16, 0);
    history(&p, 3, 3);
    history(&p, 1, 6);
    EXPECT_EQ(histories, 40 * 40 * 40 + 4 * 4 * 4 * 4 * 4 * 4);
    pair_drop(&p);
}

static void every_size_after_the_worst_leftovers(void)
{
    enum { SLOT = 512 };
    static const unsigned char flags[] = {RING_FLAG_FIRST, RING_FLAG_SECOND};
    size_t most = ring_frame_max(SLOT);
    unsigned char old[SLOT], bytes[SLOT];
    for (int left = 0; left < 2; left++) {
        for (int filled = 0; filled < 2; filled++) {
            struct pair p = pair_new(1, SLOT, 0);
            memset(old, flags[left], sizeof(old));
            memset(bytes, flags[filled], sizeof(bytes));
            for (size_t size = 0; size <= most && test_failures == 0; size++) {
                pass(&p, old, most); /* puts the flag wherever a tail may be looked for */
                pass(&p, bytes, size);
            }
            pair_drop(&p);
        }
    }
}

/* The adapter promises only that the last byte comes last: any part of the head may be there, alone or with
 * all of the frame, while leftovers look like tails wherever one may be looked for. */
static void any_part_of_the_head_deceives_nobody(void)
{
    enum { SLOT = 1024 };
    static const size_t sizes[] = {0, 1, 2, 0x5a, 0xa5, 255, 256, 257, 0x15a, SLOT - 9};
    unsigned char bytes[SLOT];
    struct pair p = pair_new(1, SLOT, 0);
    for (size_t n = 0; n < 2 * COUNT_OF(sizes) * COUNT_OF(sizes); n++) {
        bool swap = n & 1;
        size_t before = sizes[n / 2 / COUNT_OF(sizes)], size = sizes[n / 2 % COUNT_OF(sizes)];
        memset(bytes, swap ? RING_FLAG_FIRST : RING_FLAG_SECOND, sizeof(bytes));
        pass(&p, bytes, ring_frame_max(SLOT));
        pass(&p, bytes, before);
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
                EXPECT(!sees(&p));
            }
        }
        p.rx.ring[len - 1] = p.tx.mirror[len - 1];
        receive(&p, p.tx.mirror + RING_HEAD_BYTES, size);
        EXPECT(ring_tx_release_slots(&p.tx, ring_rx_take_owed(&p.rx, 1)));
        if (test_failures)
            break;
    }
    pair_drop(&p);
}

/* The third byte of the size matters only here. */
static void large_slots(void)
{
    enum { SLOT = 128 * 1024 };
    static unsigned char bytes[SLOT];
    static const size_t sizes[] = {0, 255, 256, 0x5a5a, 0xa5a5, 65535, 65536, 0x15a5a, SLOT - 9};
    struct pair p = pair_new(2, SLOT, 0);
    memset(bytes, RING_FLAG_FIRST, sizeof(bytes));
    EXPECT_EQ(ring_frame_max(SLOT), SLOT - 9);
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        for (int twice = 0; twice < 2; twice++)
            pass(&p, bytes, sizes[i]);
    pair_drop(&p);
}

/* ---- full, empty, wrapping ---- */

static void fills_and_wraps(void)
{
    enum { SLOTS = 4, SLOT = 64 };
    struct pair p = pair_new(SLOTS, SLOT, UINT32_MAX - 5);
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
            receive(&p, &wanted, sizeof(wanted));
        }
        EXPECT(!sees(&p));
        EXPECT_EQ(ring_rx_take_owed(&p.rx, 1), 1);
        EXPECT(ring_tx_release_slots(&p.tx, 1));
        EXPECT(ring_tx_next_slot(&p.tx) != NULL);
        EXPECT_EQ(ring_rx_take_owed(&p.rx, 255), 3);
        EXPECT_EQ(ring_rx_take_owed(&p.rx, 255), 0);
        EXPECT(!ring_rx_message_is_due(&p.rx));
        EXPECT(ring_tx_release_slots(&p.tx, 3));
    }
    pair_drop(&p);
}

static void one_slot_is_enough(void)
{
    struct pair p = pair_new(1, 32, 7);
    pass(&p, "a", 1);
    EXPECT(!ring_rx_message_is_due(&p.rx)); /* granted already */
    memcpy(ring_tx_next_slot(&p.tx), "b", 1);
    uint32_t slot;
    size_t len = ring_tx_close(&p.tx, 1, &slot);
    EXPECT(ring_tx_next_slot(&p.tx) == NULL);
    arrive(&p, slot, len);
    receive(&p, "b", 1);
    EXPECT(ring_rx_message_is_due(&p.rx));
    pair_drop(&p);
}

static void broken_peers_are_noticed(void)
{
    struct pair p = pair_new(2, 64, 0);
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
        uint64_t head = ring_head(cases[i].size, cases[i].flag);
        broken = false;
        memcpy(p.rx.ring, &head, sizeof(head));
        EXPECT(ring_rx_peek(&p.rx, &size, &broken) == NULL);
        EXPECT_EQ(broken, cases[i].broken);
    }
    broken = false;
    memset(p.rx.ring, 0xff, 8); /* no head at all */
    EXPECT(ring_rx_peek(&p.rx, &size, &broken) == NULL);
    EXPECT(!broken);
    pair_drop(&p);
}

/* ---- a long random run against a model ---- */

static uint64_t seed = 88172645463325252u;

static uint32_t dice(uint32_t sides)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 20) % sides;
}

enum { SOAK_SLOTS = 8, SOAK_SLOT = 48, SOAK_FRAMES = 100000 };

struct soak {
    struct pair p;
    struct {
        unsigned char bytes[SOAK_SLOT];
        size_t size;
    } sent[SOAK_SLOTS];          /* by slot */
    uint32_t built, whole, used; /* frames built, arrived, consumed */
    size_t arrived,
        len[SOAK_SLOTS]; /* bytes of frame number `whole` that have arrived, and of each to arrive */
    uint32_t grants[SOAK_SLOTS], grant_count; /* on their way back */
};

static void soak_build(struct soak *s)
{
    char *room = ring_tx_next_slot(&s->p.tx);
    if (!room) {
        EXPECT(s->built - s->used + s->p.rx.owed + s->grant_count > 0);
        return;
    }
    size_t size = dice((uint32_t)ring_frame_max(SOAK_SLOT) + 1);
    uint32_t slot = s->built % SOAK_SLOTS;
    for (size_t i = 0; i < size; i++) {
        static const unsigned char likely_bytes[] = {RING_FLAG_FIRST, RING_FLAG_SECOND, 0, 1};
        s->sent[slot].bytes[i] = dice(8) ? likely_bytes[dice(4)] : (unsigned char)dice(256);
    }
    s->sent[slot].size = size;
    memcpy(room, s->sent[slot].bytes, size);
    uint32_t got;
    s->len[slot] = ring_tx_close(&s->p.tx, size, &got);
    EXPECT_EQ(got, slot);
    s->built++;
}

static void soak_arrive(struct soak *s)
{
    for (uint32_t n = dice(100); n > 0 && s->whole != s->built; n--) {
        uint32_t slot = s->whole % SOAK_SLOTS;
        size_t at = slot * (size_t)SOAK_SLOT + s->arrived;
        /* The mirror is read at arrival: the sender must not have changed it since. */
        s->p.rx.ring[at] = s->p.tx.mirror[at];
        if (++s->arrived == s->len[slot]) {
            s->whole++;
            s->arrived = 0;
        }
    }
}

static void soak_receive(struct soak *s)
{
    size_t size;
    bool broken = false;
    const char *frame = ring_rx_peek(&s->p.rx, &size, &broken);
    EXPECT(!broken);
    EXPECT_EQ(frame != NULL, s->used != s->whole);
    if (!frame || s->used == s->whole)
        return;
    uint32_t slot = s->used++ % SOAK_SLOTS;
    EXPECT_EQ(size, s->sent[slot].size);
    if (size == s->sent[slot].size)
        EXPECT(memcmp(frame, s->sent[slot].bytes, size) == 0);
    ring_rx_consume(&s->p.rx);
}

static void random_run(void)
{
    static struct soak s;
    s.p = pair_new(SOAK_SLOTS, SOAK_SLOT, UINT32_MAX - 999 * SOAK_SLOTS + 1);
    int before = test_failures;
    for (int steps = 0; s.used < SOAK_FRAMES && steps < 100 * SOAK_FRAMES && test_failures == before;
         steps++) {
        switch (dice(4)) {
        case 0:
            soak_build(&s);
            break;
        case 1:
            soak_arrive(&s);
            break;
        case 2:
            soak_receive(&s);
            break;
        default: /* tell now, arrive later */
            if (s.grant_count < SOAK_SLOTS && dice(2)) {
                s.grants[s.grant_count++] = ring_rx_take_owed(&s.p.rx, dice(4));
            } else if (s.grant_count) {
                EXPECT(ring_tx_release_slots(&s.p.tx, s.grants[0]));
                memmove(s.grants, s.grants + 1, --s.grant_count * sizeof(s.grants[0]));
            }
        }
    }
    EXPECT_EQ(s.used, SOAK_FRAMES);
    pair_drop(&s.p);
}

/* ---- an adapter in a thread of its own ---- */

enum { THREAD_FRAMES = 20000, IDLE_MAX = 4000000 };

struct threads {
    struct pair p;
    _Atomic uint32_t freed;
};

static size_t size_of(uint32_t number)
{
    return number * 7 % (ring_frame_max(SOAK_SLOT) + 1);
}

static unsigned char byte_of(uint32_t number, size_t i)
{
    return (number + i) % 3 ? (unsigned char)(number / 3 % 2 ? RING_FLAG_FIRST : RING_FLAG_SECOND)
                            : (unsigned char)i;
}

static void *writer(void *arg)
{
    struct threads *t = arg;
    uint32_t granted = 0, idle = 0;
    for (uint32_t number = 0; number < THREAD_FRAMES; number++) {
        char *room;
        while (!(room = ring_tx_next_slot(&t->p.tx))) {
            uint32_t freed = atomic_load_explicit(&t->freed, memory_order_acquire);
            idle = freed == granted ? idle + 1 : 0;
            if (idle)
                sched_yield();
            if (idle > IDLE_MAX || !ring_tx_release_slots(&t->p.tx, freed - granted)) {
                printf("frame %u: no room, or more than there is\n", number);
                exit(1);
            }
            granted = freed;
        }
        for (size_t i = 0; i < size_of(number); i++)
            room[i] = (char)byte_of(number, i);
        uint32_t slot;
        size_t len = ring_tx_close(&t->p.tx, size_of(number), &slot);
        for (size_t i = 0; i < len; i++) {
            size_t at = slot * (size_t)SOAK_SLOT + i;
            atomic_store_explicit((_Atomic char *)(void *)&t->p.rx.ring[at], t->p.tx.mirror[at],
                                  memory_order_release);
        }
    }
    return NULL;
}

static void two_threads(void)
{
    static struct threads t;
    t.p = pair_new(SOAK_SLOTS, SOAK_SLOT, 0);
    pthread_t thread;
    if (pthread_create(&thread, NULL, writer, &t) != 0) {
        EXPECT(!"no thread");
        return;
    }
    for (uint32_t number = 0, idle = 0; number < THREAD_FRAMES; idle++) {
        size_t size;
        bool broken = false;
        const char *frame = ring_rx_peek(&t.p.rx, &size, &broken);
        if (!frame) {
            if (broken || idle > IDLE_MAX) {
                printf("frame %u %s\n", number, broken ? "is broken" : "never arrives");
                exit(1);
            }
            sched_yield();
            continue;
        }
        EXPECT_EQ(size, size_of(number));
        size_t wrong = 0;
        for (size_t i = 0; i < size; i++)
            wrong += (unsigned char)frame[i] != byte_of(number, i);
        EXPECT_EQ(wrong, 0);
        ring_rx_consume(&t.p.rx);
        number++;
        idle = 0;
        if (ring_rx_message_is_due(&t.p.rx))
            atomic_fetch_add_explicit(&t.freed, ring_rx_take_owed(&t.p.rx, 255), memory_order_release);
    }
    pthread_join(thread, NULL);
    pair_drop(&t.p);
}

int main(void)
{
    TEST_RUN(no_history_of_a_slot_deceives);
    TEST_RUN(every_size_after_the_worst_leftovers);
    TEST_RUN(any_part_of_the_head_deceives_nobody);
    TEST_RUN(large_slots);
    TEST_RUN(fills_and_wraps);
    TEST_RUN(one_slot_is_enough);
    TEST_RUN(broken_peers_are_noticed);
    TEST_RUN(random_run);
    TEST_RUN(two_threads);
    return test_result();
}
