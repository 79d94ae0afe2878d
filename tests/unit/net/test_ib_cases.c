/* test_ib_cases.c: moments in the life of connections that once went wrong, in the world of ib_world.h and one step after the other. What
 * was found by chance is also in test_ib_world.c; here are those that chance finds rarely.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "ib_judge.h"

static const struct world_settings two_rails = {.processes = 2,
                                                .ports = 2,
                                                .lanes = 1,
                                                .buffers = 1,
                                                .scheme = CREDIT_STATIC,
                                                .messages = "turns",
                                                .stripe = "even"};
static const struct world_settings one_rail = {.processes = 2,
                                               .ports = 1,
                                               .lanes = 1,
                                               .buffers = 1,
                                               .scheme = CREDIT_STATIC,
                                               .messages = "auto",
                                               .stripe = "even"};

static void work(uint32_t rank)
{
    for (int i = 0; i < 3; i++)
        net_progress(&world.processes[rank].net);
}

static struct fabric_qp *qp_of(uint32_t from, uint32_t to, unsigned lane)
{
    return (struct fabric_qp *)world_end(from, to)->lanes[lane].qp;
}

/* Delivers everything posted to the queue pair; with `acknowledged` its adapter is notified. */
static void carry(struct fabric_qp *qp, bool acknowledged)
{
    while (fabric_arrives(qp) || (acknowledged && fabric_acknowledged(qp)))
        ;
}

static void carry_datagrams(void)
{
    while (!list_empty(&fabric.datagrams))
        fabric_datagram_arrives(list_entry(fabric.datagrams.next, struct fabric_datagram, link), false);
}

static void close_from(uint32_t from, uint32_t to)
{
    ib_peer_part(&world.processes[from].ib->base, world.processes[from].net.peers[to], true);
}

/* Sends frames until all rails are joined. */
static void begin(struct world_settings set)
{
    world_open(set);
    for (uint32_t i = 0; i < 4; i++) {
        world_send(0, 1);
        EXPECT(judge_settle());
    }
    EXPECT_EQ(world_end(0, 1)->conn.state, CONN_OPEN);
}

/* The home of both fails, and is opened again; nothing that was sent before arrives. */
static void break_and_open(uint32_t first, uint32_t second)
{
    const uint32_t before = world_end(first, second)->conn.mine;
    EXPECT(fabric_gives_up(qp_of(first, second, 0), true));
    for (int i = 0;
         i < 20 && (world_end(first, second)->conn.mine == before || world_end(first, second)->failed_since ||
                    world_end(second, first)->failed_since);
         i++) {
        work(first);
        carry_datagrams();
        work(second);
        carry_datagrams();
        world_now += 5 * 1000 * 1000;
    }
    EXPECT_EQ(world_end(first, second)->conn.state, CONN_OPEN);
    EXPECT_EQ(world_end(second, first)->conn.state, CONN_OPEN);
}

static void end(void)
{
    world_judge();
    world_close();
}

/* Both close at once, and the end of a further rail is the last thing that one of them waits for. It never comes: the rail fails. */
static void last_words_on_a_rail_that_fails(void)
{
    begin(two_rails);
    struct ib_lane *pair = &world_end(1, 0)->pairs->pair[1].lane;
    for (int i = 0; i < 8 && pair->head == pair->tail; i++) { /* until a credit is on its way there */
        world_send(0, 1);
        carry(qp_of(0, 1, 0), true);
        carry((struct fabric_qp *)world_end(0, 1)->pairs->pair[1].lane.qp, true);
        work(1);
        carry(qp_of(1, 0, 0), true);
        work(0);
        work(1);
    }
    EXPECT(pair->head != pair->tail && !ib_lane_carries_frames(pair));
    close_from(0, 1);
    close_from(1, 0);
    EXPECT_EQ(world_end(0, 1)->conn.state, CONN_CLOSING);
    EXPECT_EQ(world_end(1, 0)->final_markers, 2);
    carry(qp_of(0, 1, 0), true);
    carry(qp_of(1, 0, 0), true);
    work(1);
    EXPECT_EQ(world_end(1, 0)->conn.state, CONN_AGREED);
    EXPECT_EQ(world_end(1, 0)->final_markers, 1);
    fabric_gives_up((struct fabric_qp *)pair->qp, true);
    work(1);
    EXPECT_EQ(world_end(1, 0)->conn.state, CONN_IDLE);
    end();
}

/* AGREE is lost with the port: the end that waits for it gets no other notification. */
static void an_answer_that_is_lost(void)
{
    begin(one_rail);
    close_from(0, 1);
    carry(qp_of(0, 1, 0), true);
    work(1);
    EXPECT_EQ(world_end(1, 0)->conn.state, CONN_AGREED);
    fabric_gives_up(qp_of(1, 0, 0), true);
    work(1);
    EXPECT_EQ(world_end(1, 0)->conn.state, CONN_IDLE);
    EXPECT_EQ(world_end(0, 1)->conn.state, CONN_CLOSING);
    end();
}

/* One end has more to send again than it has credits for, and the other, who could return them, closes: KEEP comes after that. */
static void credits_of_an_end_that_closes(void)
{
    struct world_settings set = one_rail;
    set.rings = 4;
    begin(set);
    world.length = 8; /* for the ring, which takes no credits */
    for (int i = 0; i < 8 && !world_end(0, 1)->tx_on; i++) {
        world_send(0, 1);
        EXPECT(judge_settle());
    }
    EXPECT(world_end(0, 1)->tx_on);
    for (int i = 0; i < 3; i++)
        world_send(0, 1);
    break_and_open(0, 1);
    close_from(1, 0);
    EXPECT_EQ(world_end(1, 0)->conn.state, CONN_CLOSING);
    end();
}

/* One end queries the state of a put, and the other closes before it receives the query. */
static void an_answer_of_an_end_that_closes(void)
{
    struct world_settings set = one_rail;
    set.fates = true;
    begin(set);
    world_put(0, 1, 0, 64);
    break_and_open(0, 1);
    EXPECT(!traffic_is_ready(&world_end(0, 1)->traffic));
    close_from(1, 0);
    EXPECT_EQ(world_end(1, 0)->conn.state, CONN_CLOSING);
    end();
}

/* The same with a flag, which the other end is to write. */
static void a_flag_of_an_end_that_closes(void)
{
    begin(one_rail);
    world_flag(0, 1);
    break_and_open(0, 1);
    EXPECT(!traffic_is_ready(&world_end(0, 1)->traffic));
    close_from(1, 0);
    EXPECT_EQ(world_end(1, 0)->conn.state, CONN_CLOSING);
    end();
}

/* A flag was seen, and its memory serves something else when its connection fails: it is not written again. */
static void a_flag_whose_memory_is_gone(void)
{
    struct world_settings set = one_rail;
    set.lazy = true;
    begin(set);
    world_flag(0, 1);
    carry(qp_of(0, 1, 0), false);
    world_flags_renew(1);
    EXPECT_EQ(world.processes[1].ngiven_up, 1);
    break_and_open(0, 1);
    end();
}

/* With two queue pairs a flag may come later than CLOSE: then the connection must not close. */
static void a_flag_on_its_way_when_all_closes(void)
{
    struct world_settings set = one_rail;
    set.lanes = 2;
    begin(set);
    world_flag(0, 1);
    close_from(0, 1);
    for (int i = 0; i < 3 && judge_state(world_end(0, 1)) != CONN_IDLE; i++) {
        carry(qp_of(0, 1, 0), true);
        work(1);
        carry(qp_of(1, 0, 0), true);
        work(0);
    }
    end();
}

/* A queue pair of a further rail cannot be made ready: nothing of it stays. */
static void a_rail_that_cannot_be_made(void)
{
    world_open(two_rails);
    fabric.refuse_init = 3; /* after the homes of both */
    world_send(0, 1);
    EXPECT(judge_settle());
    EXPECT_EQ(fabric.refuse_init, 0);
    end();
}

/* ---- rails that are reserved ---- */

static struct world_settings reserving(void)
{
    struct world_settings set = two_rails;
    set.messages = "binding";
    set.stripe = "dynamic";
    return set;
}

/* A put over both rails is begun: they are joined and granted. */
static void begin_put(struct ib_lane **home, struct ib_lane **pair)
{
    world_put(0, 1, 0, WORLD_PUT_MOST);
    EXPECT(judge_settle());
    *home = &world_end(0, 1)->lanes[0];
    *pair = &world_end(0, 1)->pairs->pair[1].lane;
    world_put(0, 1, 1, WORLD_PUT_MOST);
    for (int i = 0; i < 8 && (*pair)->head == (*pair)->tail; i++) {
        carry(qp_of(0, 1, 0), true);
        work(1);
        carry(qp_of(1, 0, 0), true);
        work(0);
    }
    EXPECT((*pair)->head != (*pair)->tail);
}

/* That a put is over finds no room, and then the connection fails. The receiver must hear of it: else its rails stay reserved. */
static void the_end_of_a_put_that_was_not_said(void)
{
    struct ib_lane *home, *pair;
    begin(reserving());
    begin_put(&home, &pair);
    carry(qp_of(0, 1, 0), true);
    work(0);
    while (world_end(0, 1)->control_pending == 0)
        ib_control_send(world_end(0, 1), IB_WAKE);
    carry((struct fabric_qp *)pair->qp, true);
    work(0);
    EXPECT(world_end(0, 1)->control_pending & 1u << IB_RESERVE);
    break_and_open(0, 1);
    end();
}

/* Rails were requested, and the primary rail moves: the two ends then number their rails differently, and the put uses none of them. */
static void a_request_of_a_connection_that_moves(void)
{
    struct world_settings set = reserving();
    struct ib_lane *home, *pair;
    begin(set);
    begin_put(&home, &pair);
    EXPECT(judge_settle());
    world_put(0, 1, 2, WORLD_PUT_MOST);
    EXPECT(world.processes[0].flows[1].puts[2].busy && world_end(0, 1)->ib->allot->is_busy(world_end(0, 1)));
    world_port(0, 0, false);
    world_notice(0);
    for (int i = 0; i < 40; i++) {
        judge_round();
        world_now += 1000 * 1000; /* less than a request waits, in all */
    }
    EXPECT_EQ(world_end(0, 1)->primary, 1);
    EXPECT(!world.processes[0].flows[1].puts[2].busy);
    end();
}

/* ---- the list of what is control_pending changes while it is walked ---- */

static enum net_fate the_fate;

static enum net_fate fate(void *ctx, struct net_op *op, uint64_t *number)
{
    (void)ctx;
    (void)op;
    *number = 0;
    return the_fate;
}

/* The next connection of that walk has nothing to report any more when its turn comes. */
static void done_and_talks(struct net_op *op, int status)
{
    world_put_done(op, status);
    ib_control_send(world_end(0, 2), IB_WAKE);
    EXPECT_EQ(world_end(0, 2)->control_pending, 0);
}

static void a_list_that_changes_while_it_is_walked(void)
{
    struct world_settings set = one_rail;
    struct world_put *u = &world.processes[0].flows[1].puts[0];
    set.processes = 3;
    begin(set);
    world_send(0, 2);
    EXPECT(judge_settle());
    world.processes[0].net.fate = fate;
    the_fate = NET_FATE_ASK;
    world_put(0, 1, 0, 64);
    u->op.done = done_and_talks;
    carry(qp_of(0, 1, 0), false); /* it has arrived, and its adapter does not know */
    break_and_open(0, 1);
    EXPECT(!list_empty(&world_end(0, 1)->control_link));
    const struct ib_endpoint *other = world_end(0, 2);
    while (other->control_pending == 0)
        ib_control_send(world_end(0, 2), IB_WAKE);
    EXPECT(world.processes[0].ib->control_waiting.next == &world_end(0, 1)->control_link &&
           !list_empty(&other->control_link));
    for (int i = 0; i < 8; i++) {
        carry(qp_of(0, 2, 0), true);
        work(2);
    }
    the_fate = NET_FATE_DONE;
    alarm(30); /* it went round and round */
    work(0);
    alarm(0);
    EXPECT(!u->busy);
    end();
}

int main(void)
{
    TEST_RUN(last_words_on_a_rail_that_fails);
    TEST_RUN(an_answer_that_is_lost);
    TEST_RUN(credits_of_an_end_that_closes);
    TEST_RUN(an_answer_of_an_end_that_closes);
    TEST_RUN(a_flag_of_an_end_that_closes);
    TEST_RUN(a_flag_whose_memory_is_gone);
    TEST_RUN(a_flag_on_its_way_when_all_closes);
    TEST_RUN(a_rail_that_cannot_be_made);
    TEST_RUN(the_end_of_a_put_that_was_not_said);
    TEST_RUN(a_request_of_a_connection_that_moves);
    TEST_RUN(a_list_that_changes_while_it_is_walked);
    return test_result();
}
