/* test_pipe.c: number of pieces of a message whose memory must be registered (pipe_policy.h), compared with
 * the times of both protocols in a model of both sides: registering the whole message one side after the
 * other, or pieces on both sides at the same time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/mechanisms/p2p/pipe_policy.h"

#include "base/util.h"
#include "test.h"

/* Models the time of the piecewise protocol: the receiver registers piece by piece; the sender registers
 * and writes each piece as soon as the piece is announced and the processor is free. */
static uint64_t compute_piecewise_ns(uint64_t bytes, uint64_t piece, uint64_t base, uint64_t pin_ns,
                                     uint64_t move_ns)
{
    uint64_t receiver = 0, sender = 0, wire = 0;
    for (uint64_t at = 0; at < bytes; at += piece) {
        const uint64_t len = MIN(piece, bytes - at);
        receiver += base + pin_ns * len / PIPE_UNIT + PIPE_PIECE_NS / 2;
        sender = MAX(sender, receiver) + base + pin_ns * len / PIPE_UNIT + PIPE_PIECE_NS / 2;
        wire = MAX(wire, sender) + move_ns * len / PIPE_UNIT;
    }
    return wire;
}

static uint64_t compute_single_registration_ns(uint64_t bytes, uint64_t base, uint64_t pin_ns,
                                               uint64_t move_ns)
{
    return 2 * base + (2 * pin_ns + move_ns) * (bytes / 1024) / (PIPE_UNIT / 1024);
}

static void test_pieces_are_never_slower(void)
{
    for (uint64_t base = 0; base < 100000; base = base * 4 + 1000)
        for (uint64_t bytes = 1024; bytes <= (uint64_t)64 << 20; bytes = bytes * 5 / 4)
            for (uint64_t pin = 0; pin < 200000; pin = pin * 3 / 2 + 1)
                for (uint64_t move = 500; move < 100000; move *= 3) {
                    const uint64_t piece = pipe_piece_bytes(bytes, base, pin);
                    if (piece == 0)
                        continue;
                    EXPECT((bytes + piece - 1) / piece <= PIPE_PIECES);
                    EXPECT((piece & (piece - 1)) == 0);
                    EXPECT(compute_piecewise_ns(bytes, piece, base, pin, move) <
                           compute_single_registration_ns(bytes, base, pin, move));
                }
}

/* Messages of 1 MiB at 12 GB/s, on adapters whose drivers take 100 ns to 2 us to register a page. */
static void test_pieces_of_1mib_save_time(void)
{
    static const struct {
        uint64_t page_ns, percent; /* percent: upper limit, relative to the time with one registration */
    } rows[] = {{100, 85}, {250, 75}, {500, 70}, {1000, 65}, {2000, 60}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const uint64_t pin = rows[i].page_ns * 16, move = 5300, bytes = 1 << 20;
        const uint64_t piece = pipe_piece_bytes(bytes, 1000, pin);
        const uint64_t percent = piece ? compute_piecewise_ns(bytes, piece, 1000, pin, move) * 100 /
                                             compute_single_registration_ns(bytes, 1000, pin, move)
                                       : 100;
        printf("%d ns a page: pieces of %d KiB, %d %% of the time as one\n", (int)rows[i].page_ns,
               (int)(piece / 1024), (int)percent);
        EXPECT(percent <= rows[i].percent);
    }
    EXPECT_EQ(pipe_piece_bytes(1 << 20, 0, 0), 0);  /* the costs of registration are unknown */
    EXPECT_EQ(pipe_piece_bytes(65536, 0, 5000), 0); /* the message is not longer than PIPE_PIECE_MIN */
    EXPECT_EQ(pipe_piece_bytes(1 << 20, 0, 200), 0);
    EXPECT_EQ(pipe_piece_bytes(1 << 20, 60000, 1000), 0); /* most of the cost is fixed for each piece */
}

static void test_forced_piece_size(void)
{
    for (uint64_t bytes = 1; bytes < 100000; bytes += 37)
        EXPECT((bytes + pipe_piece_forced(bytes) - 1) / pipe_piece_forced(bytes) <= PIPE_PIECES);
    EXPECT(pipe_piece_forced(1000) < 1000 / 2);
}

int main(void)
{
    TEST_RUN(test_pieces_are_never_slower);
    TEST_RUN(test_pieces_of_1mib_save_time);
    TEST_RUN(test_forced_piece_size);
    return test_result();
}
