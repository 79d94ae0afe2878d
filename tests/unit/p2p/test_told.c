/* test_told.c: what the lower of two ranks tells the other with its announcements: the way of messages that cross, or that go to and
 * fro. The other one goes that way where it can; whatever stands in those bits, every message arrives whole.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

enum { BYTES = 65536, STEPS = 200000, TURNS = 400 };

#define RDMA .put = true, .get = true, .put_ordered = true, .last_byte_last = true

static unsigned char out[RANKS][BYTES], in[RANKS][BYTES];
static int chosen[RANKS]; /* how the last message to this rank moves: enum p2p_protocol, or -1 */

static void chose(struct p2p *p, struct envelope env, uint64_t length, enum p2p_protocol protocol)
{
    (void)env, (void)length;
    chosen[p == fake_ranks[1].p2p] = (int)protocol;
}

static void arrived(struct p2p *p, const struct p2p_arrival *a)
{
    (void)p, (void)a;
}

static void delivered(struct p2p *p)
{
    (void)p;
}

static const struct p2p_watch watch = {.arrived = arrived, .delivered = delivered, .chose = chose};

static void open_ranks(struct fake_rules rules)
{
    fake_open(rules);
    for (int i = 0; i < RANKS; i++) {
        p2p_set_watch(fake_ranks[i].p2p, &watch);
        chosen[i] = -1;
    }
}

static struct request *send_to(int to, int number)
{
    struct fake_rank *me = &fake_ranks[1 - to];
    struct request *r;
    for (size_t i = 0; i < BYTES; i++)
        out[1 - to][i] = (unsigned char)(i * 3 + (i >> 8) + (size_t)number * 7 + 1);
    EXPECT_EQ(p2p_isend(me->p2p, out[1 - to], BYTES, dtype_from(MPI_BYTE), &me->peers[to],
                        (struct envelope){.context = 2, .source = 1 - to, .tag = 1}, SEND_STANDARD, &r),
              0);
    return r;
}

static struct request *receive_at(int at)
{
    struct request *r;
    memset(in[at], 0, BYTES);
    EXPECT_EQ(p2p_irecv(fake_ranks[at].p2p, in[at], BYTES, dtype_from(MPI_BYTE),
                        (struct envelope){.context = 2, .source = 1 - at, .tag = 1}, &r),
              0);
    return r;
}

/* Until all of them are complete, and nothing is under way. */
static void finish(struct request **requests, int n)
{
    bool all = false;
    for (int i = 0; i < STEPS && !all; i++) {
        fake_hardware();
        net_progress(&fake_ranks[dice(RANKS)].net);
        all = fake_quiet();
        for (int k = 0; k < n; k++)
            all &= requests[k]->complete;
    }
    EXPECT(all);
    for (int k = 0; k < n; k++) {
        EXPECT_EQ(requests[k]->error, 0);
        request_free(requests[k]);
    }
}

/* The bits of the announcement that rank 0 has for rank 1, as they never were. */
static void forge(uint64_t clear, uint64_t set)
{
    list_foreach(pos, &fake_ranks[0].out[1])
    {
        struct fake_item *i = list_entry(pos, struct fake_item, link);
        if (i->op || i->header.kind != FRAME_RTS)
            continue;
        struct rts rts;
        memcpy(&rts, i->payload, sizeof(rts));
        rts.can = (rts.can & ~clear) | set;
        memcpy(i->payload, &rts, sizeof(rts));
        return;
    }
    EXPECT(!"there is an announcement");
}

/* Rank 1 has announced a message of its own. In pieces or read, if it is told so; else it reads: neither writing nor splitting is
 * open to messages that cross, and other numbers are no ways. */
static void any_way_while_messages_cross(void)
{
    for (uint64_t told = 0; told < 8; told++) {
        fake_seed = (uint32_t)told + 1;
        open_ranks((struct fake_rules){.caps = {RDMA, .cpu_moves = true}});
        struct request *r[] = {send_to(0, 1), receive_at(1), send_to(1, 2), receive_at(0)};
        forge(RTS_WAY, told << RTS_WAY_SHIFT);
        for (int i = 0; i < STEPS && chosen[1] < 0; i++)
            net_progress(&fake_ranks[1].net);
        EXPECT_EQ(chosen[1], told == WAY_PIECES + 1 ? PROTOCOL_R3 : PROTOCOL_GETCQE);
        finish(r, 4);
        EXPECT(memcmp(in[0], out[1], BYTES) == 0 && memcmp(in[1], out[0], BYTES) == 0);
        fake_close();
    }
}

/* One there, one back. */
static void turn(int i, bool forged)
{
    struct request *there[] = {send_to(1, i), receive_at(1)};
    if (forged)
        forge(RTS_WAY | ~(uint64_t)UINT32_MAX, (uint64_t)dice(8) << RTS_WAY_SHIFT | (uint64_t)dice(1u << 24)
                                                                                        << 40);
    finish(there, 2);
    struct request *back[] = {send_to(0, i + 1), receive_at(0)};
    finish(back, 2);
    EXPECT(memcmp(in[1], out[0], BYTES) == 0 && memcmp(in[0], out[1], BYTES) == 0);
}

static const struct fake_rules program = {.caps = {RDMA, .software = true}};

/* Over an adapter that is a program, rank 0 leads: rank 1 goes the way of the last message to rank 0. */
static void one_follows(void)
{
    int followed = 0, used[32] = {0};
    fake_seed = 5;
    open_ranks(program);
    for (int i = 0; i < TURNS; i++) {
        const int last = chosen[0];
        turn(i, false);
        followed += i >= 4 && chosen[1] == last;
        used[chosen[1] & 31]++;
    }
    EXPECT_EQ(followed, TURNS - 4);
    EXPECT(used[PROTOCOL_GET] > 0 && used[PROTOCOL_RPUT] > 0 && used[PROTOCOL_SPLIT] > 0);
    fake_close();
}

static void any_way_to_and_fro(void)
{
    fake_seed = 6;
    open_ranks(program);
    for (int i = 0; i < TURNS; i++)
        turn(i, true);
    fake_close();
}

/* Nobody is led where adapters are real, and both find their ways. */
static void adapters_are_not_led(void)
{
    fake_seed = 7;
    open_ranks((struct fake_rules){.caps = {RDMA}});
    for (int i = 0; i < 20; i++) {
        turn(i, false);
        EXPECT_EQ(fake_ranks[0].peers[1].echo.turns, 0);
    }
    fake_close();
}

int main(void)
{
    TEST_RUN(any_way_while_messages_cross);
    TEST_RUN(one_follows);
    TEST_RUN(any_way_to_and_fro);
    TEST_RUN(adapters_are_not_led);
    return test_result();
}
