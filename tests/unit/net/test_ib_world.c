/* test_ib_world.c: the InfiniBand transport as it is, in worlds where everything happens at once: connections close on both sides, ports
 * go down and come up, queue pairs fail, rails are joined and given up, acknowledgements and datagrams are lost, doubled and late. A number
 * decides what happens in what order; the same number does the same again:
 *
 *     unit_net_test_ib_world [first [count]]
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ib_judge.h"

enum { FIRST = 1, COUNT = 600, STEPS = 400 };

static uint64_t the_luck;

static uint32_t ib_world_random_choice(uint32_t n)
{
    the_luck ^= the_luck << 13;
    the_luck ^= the_luck >> 7;
    the_luck ^= the_luck << 17;
    return (uint32_t)((the_luck * 0x2545f4914f6cdd1du) >> 33) % n;
}

/* ---- the events ---- */

static struct fabric_qp *any_qp(void)
{
    uint32_t n = 0;
    list_foreach(pos, &fabric.qps) n += list_entry(pos, struct fabric_qp, link)->base.qp_type == IBV_QPT_RC;
    if (n == 0)
        return NULL;
    uint32_t pick = ib_world_random_choice(n);
    list_foreach(pos, &fabric.qps)
    {
        struct fabric_qp *qp = list_entry(pos, struct fabric_qp, link);
        if (qp->base.qp_type == IBV_QPT_RC && pick-- == 0)
            return qp;
    }
    return NULL;
}

static uint32_t a_process(void)
{
    return ib_world_random_choice(world.set.processes);
}

static uint32_t ib_world_another(uint32_t than)
{
    return (than + 1 + ib_world_random_choice(world.set.processes - 1)) % world.set.processes;
}

static void ib_world_is_working(void)
{
    net_progress(&world.processes[a_process()].net);
}

static void test_sends(void)
{
    uint32_t from = a_process(), to = ib_world_another(from);
    for (uint32_t n = 1 + ib_world_random_choice(4); n > 0; n--)
        world_send(from, to);
}

static void puts_some(void)
{
    uint32_t from = a_process();
    world_put(from, ib_world_another(from), ib_world_random_choice(WORLD_PUTS),
              ib_world_random_choice(2) ? 64 : WORLD_PUT_MOST);
}

static void test_flags(void)
{
    uint32_t from = a_process();
    world_flag(from, ib_world_another(from));
}

static void test_renews(void)
{
    world_flags_renew(a_process());
}

static void test_closes(void)
{
    uint32_t from = a_process(), to = ib_world_another(from);
    if (judge_end(from, to))
        ib_peer_part(&world.processes[from].ib->base, world.processes[from].net.peers[to], true);
}

static void test_pulses(void)
{
    world_pulse(a_process());
}

static void test_notices(void)
{
    world_notice(a_process());
}

static void port_changes(void)
{
    uint32_t rank = a_process(), port = ib_world_random_choice(world.set.ports);
    world_port(rank, port, !fabric.adapters[rank][port].up);
}

static void test_breaks(void)
{
    struct fabric_qp *qp = any_qp();
    if (qp)
        fabric_gives_up(qp, true);
}

static void ib_world_apply_arrival(void)
{
    struct fabric_qp *qp = any_qp();
    for (uint32_t n = 1 + ib_world_random_choice(4); qp && n > 0; n--)
        fabric_arrives(qp);
}

static void test_acknowledged(void)
{
    struct fabric_qp *qp = any_qp();
    for (uint32_t n = 1 + ib_world_random_choice(4); qp && n > 0; n--)
        fabric_acknowledged(qp);
}

static void gives_up(void)
{
    struct fabric_qp *qp = any_qp();
    if (qp)
        fabric_gives_up(qp, false);
}

static void test_datagram(void)
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
        fabric_datagram_arrives(d, fate == 1 && n < 50);
        return;
    }
    list_remove(&d->link);
    free(d);
}

static void time_passes(void)
{
    world_now += (UINT64_C(1) << ib_world_random_choice(7)) * 1000000;
}

static void (*const events[])(void) = {ib_world_is_working,
                                       test_sends,
                                       puts_some,
                                       test_flags,
                                       test_renews,
                                       test_closes,
                                       test_pulses,
                                       test_notices,
                                       port_changes,
                                       test_breaks,
                                       ib_world_apply_arrival,
                                       test_acknowledged,
                                       gives_up,
                                       test_datagram,
                                       time_passes};
enum {
    WORKS,
    SENDS,
    PUTS,
    FLAGS,
    RENEWS,
    CLOSES,
    PULSES,
    NOTICES,
    PORTS,
    BREAKS,
    ARRIVES,
    ACKNOWLEDGED,
    GIVES_UP,
    DATAGRAM,
    TIME
};

/* ---- a world ---- */

static struct world_settings some_settings(void)
{
    static const char *const messages[] = {"auto", "turns", "turns", "room"};
    static const char *const stripes[] = {"even", "turns", "dynamic", "adaptive"};
    return (struct world_settings){.processes = ib_world_random_choice(4) ? 2 : 3,
                                   .ports = ib_world_random_choice(4) ? 2 : 1,
                                   .lanes = ib_world_random_choice(4) ? 1 : 2,
                                   .buffers = 1 + ib_world_random_choice(4),
                                   .scheme = ib_world_random_choice(3)   ? CREDIT_DYNAMIC
                                             : ib_world_random_choice(3) ? CREDIT_STATIC
                                                                         : CREDIT_HW,
                                   .rings = ib_world_random_choice(3) ? 0 : 4,
                                   .one_network = ib_world_random_choice(2),
                                   .keeps = ib_world_random_choice(2),
                                   .lazy = ib_world_random_choice(2),
                                   .fates = ib_world_random_choice(2),
                                   .messages = messages[ib_world_random_choice(COUNT_OF(messages))],
                                   .stripe = stripes[ib_world_random_choice(COUNT_OF(stripes))]};
}

/* Some of the events are rare in this world, others do not happen at all. */
static void some_weights(uint32_t weight[COUNT_OF(events)])
{
    static const uint32_t often[] = {
        [WORKS] = 30,   [SENDS] = 8,         [PUTS] = 2,     [FLAGS] = 2,    [RENEWS] = 1,
        [CLOSES] = 3,   [PULSES] = 1,        [NOTICES] = 2,  [PORTS] = 1,    [BREAKS] = 1,
        [ARRIVES] = 30, [ACKNOWLEDGED] = 20, [GIVES_UP] = 4, [DATAGRAM] = 8, [TIME] = 2};
    for (size_t i = 0; i < COUNT_OF(events); i++)
        weight[i] = often[i] * 4 / (1u << ib_world_random_choice(4));
    static const uint8_t optional[] = {PUTS, FLAGS, CLOSES, PULSES, PORTS, BREAKS};
    for (size_t i = 0; i < COUNT_OF(optional); i++)
        if (ib_world_random_choice(3) == 0)
            weight[optional[i]] = 0;
}

static bool ib_world_live(uint64_t number)
{
    uint32_t weight[COUNT_OF(events)], sum = 0;
    int before = test_failures;
    world_number = number;
    the_luck = number * 0x9e3779b97f4a7c15u | 1;
    for (int i = 0; i < 8; i++)
        ib_world_random_choice(2);
    world_open(some_settings());
    some_weights(weight);
    for (size_t i = 0; i < COUNT_OF(events); i++)
        sum += weight[i];
    for (int step = 0; step < STEPS && test_failures == before; step++) {
        uint32_t pick = ib_world_random_choice(sum), event = 0;
        while (pick >= weight[event])
            pick -= weight[event++];
        events[event]();
    }
    if (test_failures == before)
        world_judge();
    if (test_failures != before) {
        const struct world_settings *s = &world.set;
        printf("world %llu: %u processes, %u ports, %u lanes, %u buffers, scheme %d, %u rings, messages %s, "
               "stripe %s\n",
               (unsigned long long)number, s->processes, s->ports, s->lanes, s->buffers, s->scheme, s->rings,
               s->messages, s->stripe);
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
        bad += !ib_world_live(number);
    printf("%llu worlds, %llu of them went wrong\n", (unsigned long long)count, (unsigned long long)bad);
    return test_result();
}
