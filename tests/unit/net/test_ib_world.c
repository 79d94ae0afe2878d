/* test_ib_world.c: the production InfiniBand transport under random events: connections close on both
 * sides, ports go down and come up, queue pairs fail, rails are joined and released, acknowledgements and
 * datagrams are lost, duplicated and late. The number of a world seeds the events, so a failure can be
 * repeated by its number:
 *
 *     unit_net_test_ib_world [first [count]]
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ib_judge.h"

enum { FIRST = 1, COUNT = 600, STEPS = 400 };

static uint64_t random_state;

static uint32_t ib_world_random_choice(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state * 0x2545f4914f6cdd1du) >> 33) % n;
}

/* ---- the events ---- */

static struct fabric_qp *choose_random_qp(void)
{
    uint32_t n = 0;
    list_foreach(pos, &fabric.qps) n += fabric_is_connected_type(list_entry(pos, struct fabric_qp, link));
    if (n == 0)
        return NULL;
    uint32_t pick = ib_world_random_choice(n);
    list_foreach(pos, &fabric.qps)
    {
        struct fabric_qp *qp = list_entry(pos, struct fabric_qp, link);
        if (fabric_is_connected_type(qp) && pick-- == 0)
            return qp;
    }
    return NULL;
}

static uint32_t choose_process(void)
{
    return ib_world_random_choice(world.settings.processes);
}

static uint32_t choose_other_process(uint32_t than)
{
    return (than + 1 + ib_world_random_choice(world.settings.processes - 1)) % world.settings.processes;
}

static void progress_random_process(void)
{
    struct world_process *p = &world.processes[choose_process()];
    if (!p->has_ended)
        net_progress(&p->net);
}

static void request_random_frames(void)
{
    uint32_t from = choose_process(), to = choose_other_process(from);
    for (uint32_t n = 1 + ib_world_random_choice(4); n > 0; n--)
        world_request_frame(from, to);
}

static void start_random_put(void)
{
    uint32_t from = choose_process();
    world_put(from, choose_other_process(from), ib_world_random_choice(WORLD_PUTS),
              ib_world_random_choice(2) ? 64 : WORLD_PUT_MAX);
}

static void write_random_flag(void)
{
    uint32_t from = choose_process();
    world_write_flag(from, choose_other_process(from));
}

static void renew_random_flags(void)
{
    world_renew_flags(choose_process());
}

static void close_random_connection(void)
{
    uint32_t from = choose_process(), to = choose_other_process(from);
    if (find_endpoint(from, to))
        ib_peer_close_guest(&world.processes[from].ib->base, world.processes[from].net.peers[to], true);
}

static void request_random_heartbeat(void)
{
    const uint32_t rank = choose_process();
    if (!world.processes[rank].has_ended)
        world_request_heartbeat(rank);
}

static void report_random_ports(void)
{
    const uint32_t rank = choose_process();
    if (!world.processes[rank].has_ended)
        world_report_ports(rank);
}

static void change_random_port(void)
{
    uint32_t rank = choose_process(), port = ib_world_random_choice(world.settings.ports);
    world_set_port(rank, port, !fabric.adapters[rank][port].up);
}

static void break_random_qp(void)
{
    struct fabric_qp *qp = choose_random_qp();
    if (qp)
        fabric_fail_request(qp, true);
}

static void deliver_random_request(void)
{
    struct fabric_qp *qp = choose_random_qp();
    for (uint32_t n = 1 + ib_world_random_choice(4); qp && n > 0; n--)
        fabric_deliver_request(qp);
}

static void acknowledge_random_request(void)
{
    struct fabric_qp *qp = choose_random_qp();
    for (uint32_t n = 1 + ib_world_random_choice(4); qp && n > 0; n--)
        fabric_acknowledge_request(qp);
}

static void fail_unreachable_request(void)
{
    struct fabric_qp *qp = choose_random_qp();
    if (qp)
        fabric_fail_request(qp, false);
}

static void handle_random_datagram(void)
{
    uint32_t n = 0;
    list_foreach(pos, &fabric.datagrams) n++;
    if (n == 0)
        return;
    uint32_t pick = ib_world_random_choice(2) ? 0 : ib_world_random_choice(n),
             fate = ib_world_random_choice(8);
    struct list *at = fabric.datagrams.next;
    for (; pick > 0; pick--)
        at = at->next;
    struct fabric_datagram *d = list_entry(at, struct fabric_datagram, link);
    if (fate > 0) {
        fabric_deliver_datagram(d, fate == 1 && n < 50);
        return;
    }
    list_remove(&d->link);
    free(d);
}

static void advance_time(void)
{
    world_now += (UINT64_C(1) << ib_world_random_choice(7)) * 1000000;
}

static void (*const events[])(void) = {
    progress_random_process,  request_random_frames,  start_random_put,
    write_random_flag,        renew_random_flags,     close_random_connection,
    request_random_heartbeat, report_random_ports,    change_random_port,
    break_random_qp,          deliver_random_request, acknowledge_random_request,
    fail_unreachable_request, handle_random_datagram, advance_time};
enum {
    PROGRESS,
    FRAMES,
    PUT,
    FLAG,
    RENEW_FLAGS,
    CLOSE,
    HEARTBEAT,
    REPORT_PORTS,
    CHANGE_PORT,
    BREAK_QP,
    DELIVER,
    ACKNOWLEDGE,
    FAIL_UNREACHABLE,
    DATAGRAM,
    ADVANCE_TIME
};

/* ---- one world ---- */

static struct world_settings random_settings(void)
{
    static const char *const messages[] = {"auto", "turns", "turns", "room"};
    static const char *const stripes[] = {"even", "turns", "dynamic", "adaptive"};
    struct world_settings s = {.processes = ib_world_random_choice(4) ? 2 : 3,
                               .ports = ib_world_random_choice(4) ? 2 : 1,
                               .lanes = ib_world_random_choice(4) ? 1 : 2,
                               .buffers = 1 + ib_world_random_choice(4),
                               .scheme = ib_world_random_choice(3)   ? CREDIT_DYNAMIC
                                         : ib_world_random_choice(3) ? CREDIT_STATIC
                                                                     : CREDIT_HW,
                               .rings = ib_world_random_choice(3) ? 0 : 4,
                               .one_network = ib_world_random_choice(2),
                               .keeps_completions = ib_world_random_choice(2),
                               .keeps_deregistered = ib_world_random_choice(2),
                               .puts_have_status = ib_world_random_choice(2),
                               .messages = messages[ib_world_random_choice(COUNT_OF(messages))],
                               .stripe = stripes[ib_world_random_choice(COUNT_OF(stripes))]};
    if (ib_world_random_choice(4) == 0) {
        s.xrc = true;
        s.ports = 1;
        s.lanes = 2;
        s.rings = 0;
    }
    return s;
}

/* Chooses how often each event happens in this world; some events are rare, others do not happen at all. */
static void random_weights(uint32_t weight[COUNT_OF(events)])
{
    static const uint32_t often[] = {
        [PROGRESS] = 30,        [FRAMES] = 8,   [PUT] = 2,         [FLAG] = 2,
        [RENEW_FLAGS] = 1,      [CLOSE] = 3,    [HEARTBEAT] = 1,   [REPORT_PORTS] = 2,
        [CHANGE_PORT] = 1,      [BREAK_QP] = 1, [DELIVER] = 30,    [ACKNOWLEDGE] = 20,
        [FAIL_UNREACHABLE] = 4, [DATAGRAM] = 8, [ADVANCE_TIME] = 2};
    for (size_t i = 0; i < COUNT_OF(events); i++)
        weight[i] = often[i] * 4 / (1u << ib_world_random_choice(4));
    static const uint8_t optional[] = {PUT, FLAG, CLOSE, HEARTBEAT, CHANGE_PORT, BREAK_QP};
    for (size_t i = 0; i < COUNT_OF(optional); i++)
        if (ib_world_random_choice(3) == 0)
            weight[optional[i]] = 0;
}

/* Lets `steps` events happen, each as often as its weight requires. */
static void ib_world_run(const uint32_t weight[COUNT_OF(events)], int steps, int failures)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < COUNT_OF(events); i++)
        sum += weight[i];
    for (int step = 0; step < steps && test_failures == failures; step++) {
        uint32_t pick = ib_world_random_choice(sum), event = 0;
        while (pick >= weight[event])
            pick -= weight[event++];
        events[event]();
    }
}

/* After all that was sent has arrived the processes finish, while the network still fails. */
static void ib_world_end(uint32_t weight[COUNT_OF(events)], int failures)
{
    static const uint8_t done[] = {FRAMES, PUT, FLAG, RENEW_FLAGS, CLOSE};
    EXPECT(settle_world());
    for (size_t i = 0; i < COUNT_OF(done); i++)
        weight[done[i]] = 0;
    for (uint32_t turns = 40 + ib_world_random_choice(100); turns > 0; turns--) {
        ib_world_run(weight, 2, failures);
        try_to_finalize(choose_process());
    }
    check_all_end();
}

static bool run_world(uint64_t number)
{
    uint32_t weight[COUNT_OF(events)];
    int before = test_failures;
    world_number = number;
    random_state = number * 0x9e3779b97f4a7c15u | 1;
    for (int i = 0; i < 8; i++)
        ib_world_random_choice(2);
    world_open(random_settings());
    random_weights(weight);
    ib_world_run(weight, STEPS, before);
    const bool ends = ib_world_random_choice(2);
    if (test_failures == before && ends)
        ib_world_end(weight, before);
    else if (test_failures == before)
        world_check();
    if (test_failures != before) {
        const struct world_settings *s = &world.settings;
        printf(
            "world %llu: %u processes, %u ports, %u lanes%s, %u buffers, scheme %d, %u rings, messages %s, "
            "stripe %s\n",
            (unsigned long long)number, s->processes, s->ports, s->lanes, s->xrc ? " (XRC)" : "", s->buffers,
            s->scheme, s->rings, s->messages, s->stripe);
    }
    world_close();
    return test_failures == before;
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : FIRST, count = argc > 2
                                                                                 ? strtoull(argv[2], NULL, 10)
                                                                             : argc > 1 ? 1
                                                                                        : COUNT;
    uint64_t bad = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (uint64_t number = first; number < first + count && bad < 10; number++)
        bad += !run_world(number);
    printf("%llu worlds, %llu failed\n", (unsigned long long)count, (unsigned long long)bad);
    return test_result();
}
