/* test_ib_cases.c: event sequences of connections that once caused errors, executed step by step in the
 * world of ib_world.h. The random worlds of test_ib_world.c rarely reach these sequences.
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

static void progress_process(uint32_t rank)
{
    for (int i = 0; i < 3; i++)
        net_progress(&world.processes[rank].net);
}

static struct fabric_qp *find_qp(uint32_t from, uint32_t to, unsigned lane)
{
    return (struct fabric_qp *)world_endpoint(from, to)->lanes[lane].qp;
}

/* Delivers everything posted to the queue pair. `acknowledged`: its adapter receives the
 * acknowledgements too. */
static void deliver_requests(struct fabric_qp *qp, bool acknowledged)
{
    while (fabric_deliver_request(qp) || (acknowledged && fabric_acknowledge_request(qp)))
        ;
}

static void deliver_datagrams(void)
{
    while (!list_empty(&fabric.datagrams))
        fabric_deliver_datagram(list_entry(fabric.datagrams.next, struct fabric_datagram, link), false);
}

static void close_connection(uint32_t from, uint32_t to)
{
    ib_peer_close_guest(&world.processes[from].ib->base, world.processes[from].net.peers[to], true);
}

/* Sends frames until all rails are joined. */
static void open_connected_world(struct world_settings set)
{
    world_open(set);
    for (uint32_t i = 0; i < 4; i++) {
        world_request_frame(0, 1);
        EXPECT(settle_world());
    }
    EXPECT_EQ(world_endpoint(0, 1)->conn.state, CONN_OPEN);
}

/* Fails the primary rail of both ends and waits until the connection is open again; requests sent
 * before do not arrive. */
static void fail_and_reconnect(uint32_t first, uint32_t second)
{
    const uint32_t before = world_endpoint(first, second)->conn.mine;
    EXPECT(fabric_fail_request(find_qp(first, second, 0), true));
    for (int i = 0; i < 20 && (world_endpoint(first, second)->conn.mine == before ||
                               world_endpoint(first, second)->failed_since ||
                               world_endpoint(second, first)->failed_since);
         i++) {
        progress_process(first);
        deliver_datagrams();
        progress_process(second);
        deliver_datagrams();
        world_now += 5 * 1000 * 1000;
    }
    EXPECT_EQ(world_endpoint(first, second)->conn.state, CONN_OPEN);
    EXPECT_EQ(world_endpoint(second, first)->conn.state, CONN_OPEN);
}

static void check_and_close_world(void)
{
    world_check();
    world_close();
}

/* Both ends close at once. The final marker of the secondary rail, which one end waits for, is lost because
 * that rail fails. */
static void test_final_marker_is_lost_with_its_rail(void)
{
    open_connected_world(two_rails);
    struct ib_lane *pair = &world_endpoint(1, 0)->pairs->pair[1].lane;
    for (int i = 0; i < 8 && pair->head == pair->tail;
         i++) { /* until a credit is in flight on the secondary rail */
        world_request_frame(0, 1);
        deliver_requests(find_qp(0, 1, 0), true);
        deliver_requests((struct fabric_qp *)world_endpoint(0, 1)->pairs->pair[1].lane.qp, true);
        progress_process(1);
        deliver_requests(find_qp(1, 0, 0), true);
        progress_process(0);
        progress_process(1);
    }
    EXPECT(pair->head != pair->tail && !ib_lane_carries_frames(pair));
    close_connection(0, 1);
    close_connection(1, 0);
    EXPECT_EQ(world_endpoint(0, 1)->conn.state, CONN_CLOSING);
    EXPECT_EQ(world_endpoint(1, 0)->final_markers, 2);
    deliver_requests(find_qp(0, 1, 0), true);
    deliver_requests(find_qp(1, 0, 0), true);
    progress_process(1);
    EXPECT_EQ(world_endpoint(1, 0)->conn.state, CONN_AGREED);
    EXPECT_EQ(world_endpoint(1, 0)->final_markers, 1);
    fabric_fail_request((struct fabric_qp *)pair->qp, true);
    progress_process(1);
    EXPECT_EQ(world_endpoint(1, 0)->conn.state, CONN_IDLE);
    check_and_close_world();
}

/* The AGREE that accepts a CLOSE is lost because the port goes down; the closing end gets no other
 * notification. */
static void test_agree_is_lost_with_the_port(void)
{
    open_connected_world(one_rail);
    close_connection(0, 1);
    deliver_requests(find_qp(0, 1, 0), true);
    progress_process(1);
    EXPECT_EQ(world_endpoint(1, 0)->conn.state, CONN_AGREED);
    fabric_fail_request(find_qp(1, 0, 0), true);
    progress_process(1);
    EXPECT_EQ(world_endpoint(1, 0)->conn.state, CONN_IDLE);
    EXPECT_EQ(world_endpoint(0, 1)->conn.state, CONN_CLOSING);
    check_and_close_world();
}

/* One end must resend more frames than it has credits. The peer, which owes those credits, refuses to close
 * by KEEP only after it has returned the credits. */
static void test_peer_closes_while_credits_are_missing(void)
{
    struct world_settings set = one_rail;
    set.rings = 4;
    open_connected_world(set);
    world.length = 8; /* short frames use the RDMA ring, which needs no credits */
    for (int i = 0; i < 8 && !world_endpoint(0, 1)->tx_on; i++) {
        world_request_frame(0, 1);
        EXPECT(settle_world());
    }
    EXPECT(world_endpoint(0, 1)->tx_on);
    for (int i = 0; i < 3; i++)
        world_request_frame(0, 1);
    fail_and_reconnect(0, 1);
    close_connection(1, 0);
    EXPECT_EQ(world_endpoint(1, 0)->conn.state, CONN_CLOSING);
    check_and_close_world();
}

/* One end queries the delivery status of a put, and the peer closes before it receives the query. */
static void test_peer_closes_before_put_status_query(void)
{
    struct world_settings set = one_rail;
    set.puts_have_status = true;
    open_connected_world(set);
    world_put(0, 1, 0, 64);
    fail_and_reconnect(0, 1);
    EXPECT(!frame_route_is_ready(&world_endpoint(0, 1)->route));
    close_connection(1, 0);
    EXPECT_EQ(world_endpoint(1, 0)->conn.state, CONN_CLOSING);
    check_and_close_world();
}

/* One end must write a flag again, and the peer closes before it receives the query about the flag. */
static void test_peer_closes_before_flag_is_rewritten(void)
{
    open_connected_world(one_rail);
    world_write_flag(0, 1);
    fail_and_reconnect(0, 1);
    EXPECT(!frame_route_is_ready(&world_endpoint(0, 1)->route));
    close_connection(1, 0);
    EXPECT_EQ(world_endpoint(1, 0)->conn.state, CONN_CLOSING);
    check_and_close_world();
}

/* A flag arrived, and its memory is reused when the connection fails: the sender must not write the
 * flag again. */
static void test_flag_is_not_rewritten_into_reused_memory(void)
{
    struct world_settings set = one_rail;
    set.keeps_deregistered = true;
    open_connected_world(set);
    world_write_flag(0, 1);
    deliver_requests(find_qp(0, 1, 0), false);
    world_renew_flags(1);
    EXPECT_EQ(world.processes[1].nreleased, 1);
    fail_and_reconnect(0, 1);
    check_and_close_world();
}

/* With two queue pairs CLOSE may overtake a flag: the connection must stay open until the flag has
 * arrived. */
static void test_close_overtakes_flag(void)
{
    struct world_settings set = one_rail;
    set.lanes = 2;
    open_connected_world(set);
    world_write_flag(0, 1);
    close_connection(0, 1);
    for (int i = 0; i < 3 && connection_state(world_endpoint(0, 1)) != CONN_IDLE; i++) {
        deliver_requests(find_qp(0, 1, 0), true);
        progress_process(1);
        deliver_requests(find_qp(1, 0, 0), true);
        progress_process(0);
    }
    check_and_close_world();
}

/* A queue pair of the secondary rail cannot be initialised: all its resources are released. */
static void test_secondary_rail_fails_to_initialise(void)
{
    world_open(two_rails);
    fabric.inits_until_refusal = 3; /* the queue pairs of the two primary rails come first */
    world_request_frame(0, 1);
    EXPECT(settle_world());
    EXPECT_EQ(fabric.inits_until_refusal, 0);
    check_and_close_world();
}

/* ---- the end of processes ---- */

static const struct world_settings xrc = {.processes = 2,
                                          .ports = 1,
                                          .lanes = 2,
                                          .buffers = 1,
                                          .scheme = CREDIT_STATIC,
                                          .xrc = true,
                                          .messages = "auto",
                                          .stripe = "even"};

/* Process 0 enters MPI_Finalize and sends LEAVE, and process 1 receives it. */
static void deliver_leave_of_process_0(void)
{
    for (int i = 0; i < 3 && !world_endpoint(0, 1)->leave.sent; i++) {
        try_to_finalize(0); /* process 0 may first have to request a completion */
        deliver_requests(find_qp(0, 1, 0), true);
        progress_process(0);
    }
    EXPECT(world_endpoint(0, 1)->leave.sent);
    deliver_requests(find_qp(0, 1, 0), true);
    progress_process(0);
    progress_process(1);
    EXPECT(world_endpoint(1, 0)->leave.received);
}

/* Process 0 sends a frame after both LEAVEs, as a rank that replies to an agreement of others does: both
 * processes must end. */
static void test_frame_follows_leave(void)
{
    open_connected_world(one_rail);
    deliver_leave_of_process_0();
    for (int i = 0; i < 3 && !world_endpoint(0, 1)->leave.received; i++) {
        try_to_finalize(1);
        deliver_requests(find_qp(1, 0, 0), false);
        progress_process(0);
    }
    EXPECT(world_endpoint(0, 1)->leave.received);
    world_request_frame(0, 1);
    progress_process(0);
    EXPECT(find_qp(0, 1, 0)->head != find_qp(0, 1, 0)->done);
    check_all_end();
    world_close();
}

/* Process 1 has received LEAVE and sends its own LEAVE, which is lost with the connection: process 1 must not
 * end, since process 0 still waits for that message. */
static void test_leave_is_lost(void)
{
    open_connected_world(one_rail);
    deliver_leave_of_process_0();
    try_to_finalize(1);
    EXPECT(fabric_fail_request(find_qp(1, 0, 0), true));
    progress_process(1);
    try_to_finalize(1);
    EXPECT(!world.processes[1].has_ended);
    check_all_end();
    world_close();
}

/* The connection fails after process 1 has received LEAVE and before process 1 sends LEAVE; only a message
 * that returns credits is lost. */
static void test_credits_lost_before_leave(void)
{
    open_connected_world(one_rail);
    deliver_leave_of_process_0();
    ib_control_send(world_endpoint(1, 0), IB_CREDIT);
    EXPECT(fabric_fail_request(find_qp(1, 0, 0), true));
    progress_process(1);
    check_all_end();
    world_close();
}

/* Delivers and acknowledges the requests of an XRC initiator through its shared target, which still exists
 * because other processes of the peer's node use it. */
static void deliver_to_shared_target(struct fabric_qp *qp)
{
    struct fabric_qp target = {.base = {.qp_type = IBV_QPT_XRC_RECV}};
    for (; qp->done != qp->head; qp->done++, qp->tail++) {
        const struct fabric_request *r = &qp->requests[qp->done & (qp->room - 1)];
        EXPECT(fabric_execute(r, &target));
        fabric_add_completion(qp->base.send_cq,
                              (struct ibv_wc){.wr_id = r->wr.wr_id, .qp_num = qp->base.qp_num});
    }
}

/* XRC: process 0 reopens its connection while the LEAVE of process 1 is on the old connection, whose target
 * acknowledges it. Both processes must end. */
static void test_leave_arrives_late(void)
{
    open_connected_world(xrc);
    deliver_leave_of_process_0();
    for (int i = 0; i < 3 && !world_endpoint(1, 0)->leave.sent; i++) {
        try_to_finalize(1);
        if (!world_endpoint(1, 0)->leave.sent)
            deliver_requests(find_qp(1, 0, 0), true);
        progress_process(1);
    }
    EXPECT(world_endpoint(1, 0)->leave.sent);
    ib_control_send(world_endpoint(0, 1), IB_CREDIT);
    EXPECT(fabric_fail_request(find_qp(0, 1, 0), true));
    progress_process(0);
    EXPECT_EQ(world_endpoint(0, 1)->conn.state, CONN_ASKING);
    deliver_to_shared_target(find_qp(1, 0, 0));
    progress_process(1);
    try_to_finalize(1);
    EXPECT(world.processes[1].has_ended);
    progress_process(0);
    try_to_finalize(0);
    EXPECT(world.processes[0].has_ended);
    world_close();
}

/* ---- rails that are reserved ---- */

static struct world_settings make_reserving_settings(void)
{
    struct world_settings set = two_rails;
    set.messages = "binding";
    set.stripe = "dynamic";
    return set;
}

/* Starts a put over both rails, after another put has joined the rails and obtained their reservation. */
static void start_striped_put(struct ib_lane **home, struct ib_lane **pair)
{
    world_put(0, 1, 0, WORLD_PUT_MAX);
    EXPECT(settle_world());
    *home = &world_endpoint(0, 1)->lanes[0];
    *pair = &world_endpoint(0, 1)->pairs->pair[1].lane;
    world_put(0, 1, 1, WORLD_PUT_MAX);
    for (int i = 0; i < 8 && (*pair)->head == (*pair)->tail; i++) {
        deliver_requests(find_qp(0, 1, 0), true);
        progress_process(1);
        deliver_requests(find_qp(1, 0, 0), true);
        progress_process(0);
    }
    EXPECT((*pair)->head != (*pair)->tail);
}

/* The send queue is full when the control message that reports the end of a put is due, and then the
 * connection fails. The message must still reach the receiver; otherwise the rails stay reserved. */
static void test_unreported_end_of_put_releases_rails(void)
{
    struct ib_lane *home, *pair;
    open_connected_world(make_reserving_settings());
    start_striped_put(&home, &pair);
    deliver_requests(find_qp(0, 1, 0), true);
    progress_process(0);
    while (world_endpoint(0, 1)->control_pending == 0)
        ib_control_send(world_endpoint(0, 1), IB_WAKE);
    deliver_requests((struct fabric_qp *)pair->qp, true);
    progress_process(0);
    EXPECT(world_endpoint(0, 1)->control_pending & 1u << IB_RESERVE);
    fail_and_reconnect(0, 1);
    check_and_close_world();
}

/* The primary rail changes while a reservation is pending: the two ends then number their rails
 * differently, and the put uses none of the requested rails. */
static void test_primary_rail_changes_during_reservation(void)
{
    struct world_settings set = make_reserving_settings();
    struct ib_lane *home, *pair;
    open_connected_world(set);
    start_striped_put(&home, &pair);
    EXPECT(settle_world());
    world_put(0, 1, 2, WORLD_PUT_MAX);
    EXPECT(world.processes[0].flows[1].puts[2].busy &&
           world_endpoint(0, 1)->ib->allot->is_busy(world_endpoint(0, 1)));
    world_set_port(0, 0, false);
    world_report_ports(0);
    for (int i = 0; i < 40; i++) {
        deliver_and_progress_all();
        world_now += 1000 * 1000; /* 40 rounds take less than the timeout of a reservation */
    }
    EXPECT_EQ(world_endpoint(0, 1)->primary, 1);
    EXPECT(!world.processes[0].flows[1].puts[2].busy);
    check_and_close_world();
}

/* ---- the list of pending control messages changes during its traversal ---- */

static enum net_delivery_status the_put_status;

static enum net_delivery_status simulate_put_status(void *ctx, struct net_op *op, uint64_t *number)
{
    (void)ctx;
    (void)op;
    *number = 0;
    return the_put_status;
}

/* Called during the traversal of the list of endpoints with pending control messages: sends the message of
 * the next endpoint, so that this endpoint has none when the traversal reaches it. */
static void send_control_on_completion(struct net_op *op, int status)
{
    world_put_done(op, status);
    ib_control_send(world_endpoint(0, 2), IB_WAKE);
    EXPECT_EQ(world_endpoint(0, 2)->control_pending, 0);
}

static void test_control_list_changes_during_traversal(void)
{
    struct world_settings set = one_rail;
    struct world_put *u = &world.processes[0].flows[1].puts[0];
    set.processes = 3;
    open_connected_world(set);
    world_request_frame(0, 2);
    EXPECT(settle_world());
    world.processes[0].net.fate = simulate_put_status;
    the_put_status = NET_DELIVERY_QUERY;
    world_put(0, 1, 0, 64);
    u->op.done = send_control_on_completion;
    deliver_requests(find_qp(0, 1, 0), false); /* the put arrives, its acknowledgement does not */
    fail_and_reconnect(0, 1);
    EXPECT(!list_empty(&world_endpoint(0, 1)->control_link));
    const struct ib_endpoint *other = world_endpoint(0, 2);
    while (other->control_pending == 0)
        ib_control_send(world_endpoint(0, 2), IB_WAKE);
    EXPECT(world.processes[0].ib->control_waiting.next == &world_endpoint(0, 1)->control_link &&
           !list_empty(&other->control_link));
    for (int i = 0; i < 8; i++) {
        deliver_requests(find_qp(0, 2, 0), true);
        progress_process(2);
    }
    the_put_status = NET_DELIVERY_DONE;
    alarm(30); /* the traversal once did not end */
    progress_process(0);
    alarm(0);
    EXPECT(!u->busy);
    check_and_close_world();
}

int main(void)
{
    TEST_RUN(test_final_marker_is_lost_with_its_rail);
    TEST_RUN(test_agree_is_lost_with_the_port);
    TEST_RUN(test_peer_closes_while_credits_are_missing);
    TEST_RUN(test_peer_closes_before_put_status_query);
    TEST_RUN(test_peer_closes_before_flag_is_rewritten);
    TEST_RUN(test_flag_is_not_rewritten_into_reused_memory);
    TEST_RUN(test_close_overtakes_flag);
    TEST_RUN(test_secondary_rail_fails_to_initialise);
    TEST_RUN(test_frame_follows_leave);
    TEST_RUN(test_leave_is_lost);
    TEST_RUN(test_credits_lost_before_leave);
    TEST_RUN(test_leave_arrives_late);
    TEST_RUN(test_unreported_end_of_put_releases_rails);
    TEST_RUN(test_primary_rail_changes_during_reservation);
    TEST_RUN(test_control_list_changes_during_traversal);
    return test_result();
}
