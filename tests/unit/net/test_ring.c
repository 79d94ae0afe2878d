/* test_ring.c: the shared-memory ring: empty, full, wrapping counters, payload at the end of the data
 * ring, when slots and lines are returned, and several concurrent senders with checked order and bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/shm/ring.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { LINES = 1024, IDS = 8 };

static struct ring *ring_new(void)
{
    size_t size = sizeof(struct ring) + ring_extra_bytes(LINES, IDS);
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static void ring_free(struct ring *r)
{
    munmap(r, sizeof(struct ring) + ring_extra_bytes(LINES, IDS));
}

/* Advances the counters of an empty ring, so that they wrap soon. */
static void ring_set_position(struct ring *r, struct ring_receiver *in, uint32_t slots, uint32_t lines)
{
    r->tail = r->head = ring_position(slots, lines);
    in->slot = slots;
    in->line = lines;
    in->published = ring_position(slots, lines);
    for (uint32_t i = slots - RING_SLOTS; i != slots; i++) /* the slots as the last round left them */
        r->slots[i % RING_SLOTS].sequence = i + 1;
}

static struct ring_sender make_sender(struct ring *r, uint32_t id, bool alone)
{
    return ring_sender(r, LINES, id, alone);
}

static struct ring_receiver make_receiver(struct ring *r)
{
    return ring_receiver(r, LINES);
}

static unsigned char payload_byte(uint32_t sender, uint64_t number, size_t i)
{
    return (unsigned char)(sender * 131 + number * 7 + i);
}

static int send_numbered(struct ring_sender *s, uint64_t number, size_t len)
{
    static unsigned char payload[LINES * CACHE_LINE];
    for (size_t i = 0; i < len; i++)
        payload[i] = payload_byte(s->id, number, i);
    return ring_send(s, frame_head(1, 2, 3, 4), frame_from(-5, 6), number, payload, len);
}

/* Receives one frame and checks its bytes; returns false if the ring is empty. */
static bool ring_consume_checked(struct ring_receiver *in, uint32_t *sender, uint64_t *number, size_t *len)
{
    const char *payload;
    const struct ring_slot *slot = ring_peek(in, &payload, len, sender);
    if (!slot)
        return false;
    *number = slot->header.word;
    EXPECT_EQ(slot->header.kind, 1);
    EXPECT_EQ(slot->header.flags, 2);
    EXPECT_EQ(slot->header.aux, 3);
    EXPECT_EQ(slot->header.context, 4);
    EXPECT_EQ(slot->header.source, -5);
    EXPECT_EQ(slot->header.tag, 6);
    size_t wrong = 0;
    for (size_t i = 0; i < *len; i++)
        wrong += (unsigned char)payload[i] != payload_byte(*sender, *number, i);
    EXPECT_EQ(wrong, 0);
    ring_consume(in, slot, *len);
    return true;
}

static void expect_frame(struct ring_receiver *in, uint64_t number, size_t len)
{
    uint32_t sender = 99;
    uint64_t found = 0;
    size_t found_len = 0;
    EXPECT(ring_consume_checked(in, &sender, &found, &found_len));
    EXPECT_EQ(found, number);
    EXPECT_EQ(found_len, len);
}

static void send_all_lengths(bool alone)
{
    struct ring *r = ring_new();
    struct ring_receiver in = make_receiver(r);
    uint32_t sender;
    uint64_t number;
    size_t len;
    ring_set_position(r, &in, UINT32_MAX - 500, UINT32_MAX - 2000); /* both counters wrap during the test */
    struct ring_sender out = make_sender(r, 3, alone);
    EXPECT(!ring_consume_checked(&in, &sender, &number, &len));
    static const size_t sizes[] = {0,  1,  7,  8,   9,   15,   16,   31,   32,    33,
                                   63, 64, 65, 127, 128, 1000, 4095, 4096, 16384, LINES * CACHE_LINE / 4};
    for (uint64_t n = 0; n < 2000; n++) {
        size_t want = sizes[n % COUNT_OF(sizes)];
        EXPECT_EQ(send_numbered(&out, n, want), 0);
        expect_frame(&in, n, want);
        EXPECT(!ring_consume_checked(&in, &sender, &number, &len));
        ring_return_when_idle(&in);
    }
    ring_free(r);
}

static void test_all_lengths(void)
{
    send_all_lengths(true);
    send_all_lengths(false);
}

static void test_all_slots_used(void)
{
    struct ring *r = ring_new();
    struct ring_receiver in = make_receiver(r);
    struct ring_sender out = make_sender(r, 0, true);
    for (int round = 0; round < 3; round++) {
        for (uint64_t n = 0; n < RING_SLOTS; n++)
            EXPECT_EQ(send_numbered(&out, n, 8), 0);
        EXPECT_EQ(send_numbered(&out, 9999, 8), ERR_AGAIN);
        for (uint64_t n = 0; n < RING_SLOTS; n++)
            expect_frame(&in, n, 8);
        ring_return_when_idle(&in);
    }
    ring_free(r);
}

/* An idle receiver returns every consumed slot, a busy receiver a quarter of the ring at a time. */
static void test_slots_are_returned(void)
{
    struct ring *r = ring_new();
    struct ring_receiver in = make_receiver(r);
    struct ring_sender out = make_sender(r, 0, true);
    for (uint64_t n = 0; n < RING_SLOTS; n++)
        EXPECT_EQ(send_numbered(&out, n, 8), 0);
    expect_frame(&in, 0, 8);
    EXPECT_EQ(send_numbered(&out, 1024, 8), ERR_AGAIN);
    ring_return_when_idle(&in);
    EXPECT_EQ(send_numbered(&out, 1024, 8), 0);
    for (uint64_t n = 1; n <= RING_SLOTS / 4; n++)
        expect_frame(&in, n, 8);
    EXPECT_EQ(send_numbered(&out, 1025, 8), 0);
    ring_free(r);
}

/* A payload that would cross the end of the data ring starts at the beginning; the skipped lines are
 * returned too. */
static void test_payload_at_end_of_ring(void)
{
    struct ring *r = ring_new();
    struct ring_receiver in = make_receiver(r);
    struct ring_sender out = make_sender(r, 0, true);
    size_t third = LINES / 3 * CACHE_LINE;
    for (uint64_t n = 0; n < 50; n++) {
        EXPECT_EQ(send_numbered(&out, 3 * n, third), 0);
        EXPECT_EQ(send_numbered(&out, 3 * n + 1, 40), 0);
        EXPECT_EQ(send_numbered(&out, 3 * n + 2, 8), 0);
        expect_frame(&in, 3 * n, third);
        expect_frame(&in, 3 * n + 1, 40);
        expect_frame(&in, 3 * n + 2, 8);
        ring_return_when_idle(&in);
    }
    EXPECT_EQ(send_numbered(&out, 0, third), 0);
    EXPECT_EQ(send_numbered(&out, 1, third), 0);
    /* The skipped lines before the end of the ring are still in use. */
    EXPECT_EQ(send_numbered(&out, 2, third), ERR_AGAIN);
    EXPECT_EQ(send_numbered(&out, 2, 8), 0); /* a short frame needs no lines */
    ring_free(r);
}

static void test_reserve_in_place(void)
{
    struct ring *r = ring_new();
    struct ring_receiver in = make_receiver(r);
    struct ring_sender out = make_sender(r, 7, false);
    struct frame_header h = {.kind = 1, .flags = 2, .aux = 3, .context = 4, .source = -5, .tag = 6};
    for (size_t len = 0; len < 200; len += 10) {
        uint32_t position, sender;
        char *room;
        uint64_t number;
        size_t found;
        struct ring_slot *slot = ring_reserve(&out, len, &position, &room);
        EXPECT(slot &&
               !ring_consume_checked(&in, &sender, &number, &found)); /* the frame is not visible yet */
        h.word = len;
        for (size_t i = 0; i < len; i++)
            room[i] = (char)payload_byte(7, len, i);
        ring_publish(&out, slot, position, &h, len);
        expect_frame(&in, len, len);
    }
    ring_free(r);
}

enum { SENDERS = 4, EACH = 6000 };

static void send_all_frames(struct ring *r, uint32_t id)
{
    struct ring_sender out = make_sender(r, id, false);
    for (uint64_t n = 0; n < EACH; n++) {
        size_t len = (n * 37 + id * 11) % 500;
        if (n % 97 == 0)
            len = 16000;
        while (send_numbered(&out, n, len) != 0)
            sched_yield();
    }
    _exit(0);
}

static void test_concurrent_senders(void)
{
    struct ring *r = ring_new();
    struct ring_receiver in = make_receiver(r);
    uint64_t next[SENDERS] = {0};
    pid_t pids[SENDERS];
    ring_set_position(r, &in, UINT32_MAX - 5000, UINT32_MAX - 70000);
    fflush(stdout);
    for (uint32_t id = 0; id < SENDERS; id++)
        if ((pids[id] = fork()) == 0)
            send_all_frames(r, id);
    for (int left = SENDERS * EACH; left > 0 && test_failures < 10;) {
        uint32_t sender;
        uint64_t number;
        size_t len;
        if (!ring_consume_checked(&in, &sender, &number, &len)) {
            ring_return_when_idle(&in);
            sched_yield();
            continue;
        }
        EXPECT(sender < SENDERS);
        EXPECT_EQ(number, next[sender]);
        next[sender]++;
        left--;
    }
    for (int i = 0; i < SENDERS; i++) {
        int status = 1;
        waitpid(pids[i], &status, 0);
        EXPECT_EQ(status, 0);
        EXPECT_EQ(next[i], EACH);
    }
    ring_free(r);
}

int main(void)
{
    TEST_RUN(test_all_lengths);
    TEST_RUN(test_all_slots_used);
    TEST_RUN(test_slots_are_returned);
    TEST_RUN(test_payload_at_end_of_ring);
    TEST_RUN(test_reserve_in_place);
    TEST_RUN(test_concurrent_senders);
    return test_result();
}
