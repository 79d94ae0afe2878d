/* barrier_logic.c: the switch's barrier logic over a seeded random wire that loses, duplicates and delays
 * packets in both directions: no host may leave a barrier before all have entered it, and all must leave
 * it finally. Many seeds, several barriers at once, hosts that take no part.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "softib/barrier.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOSTS  24
#define GROUPS 3
#define LEAVES 5
#define ROUNDS 12
#define WIRE   4096

#define FAIL(...)                                               \
    do {                                                        \
        printf("FAILED seed %llu: ", (unsigned long long)seed); \
        printf(__VA_ARGS__);                                    \
        printf("\n");                                           \
        exit(1);                                                \
    } while (0)

static uint64_t seed, rng, now;
static struct softib_switch sw, leaf[LEAVES];
static unsigned leaves; /* number of leaf switches; 0: the hosts are connected to sw */
enum { TO_SWITCH, TO_HOST, TO_TOP, TO_LEAF, DIRECTIONS };
static struct softib_packet wire[DIRECTIONS][WIRE];
static int on_wire[DIRECTIONS];

static unsigned random_below(unsigned n)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (unsigned)(rng >> 33) % n;
}

static void send_over_lossy_wire(int direction, const struct softib_packet *p)
{
    for (unsigned copies = random_below(10) ? 1 : 2; copies; copies--)
        if (random_below(100) >= 20 && on_wire[direction] < WIRE) /* 20 % of the packets are lost */
            wire[direction][on_wire[direction]++] = *p;
}

static void send_to_host(void *arg, const struct softib_packet *p)
{
    (void)arg;
    send_over_lossy_wire(1, p);
}

static void send_to_top(void *arg, const struct softib_packet *p)
{
    (void)arg;
    send_over_lossy_wire(TO_TOP, p);
}

static void send_to_leaf(void *arg, const struct softib_packet *p)
{
    (void)arg;
    send_over_lossy_wire(TO_LEAF, p);
}

struct host {
    int id[GROUPS]; /* barrier id of each group; -1: the host is not in the group */
    uint32_t round[GROUPS];
    bool inside[GROUPS], joined[GROUPS];
    uint64_t repeat_at[GROUPS];
};

static struct host host[HOSTS];
static int group_id[GROUPS];
static unsigned entered[GROUPS][ROUNDS + 1], size[GROUPS];

static void handle_host_packet(const struct softib_packet *p)
{
    struct host *h = &host[p->port];
    for (int g = 0; g < GROUPS; g++) {
        if (h->id[g] != p->id)
            continue;
        if (p->type == SOFTIB_WANT_PARTICIPATE_ACK)
            h->joined[g] = true;
        if (p->type != SOFTIB_BARRIER_READY)
            continue;
        struct softib_packet ack = {SOFTIB_BARRIER_READY_ACK, p->id, p->port, p->round};
        send_over_lossy_wire(0, &ack);
        if (!h->inside[g] || p->round != h->round[g])
            continue;
        if (entered[g][p->round] != size[g])
            FAIL("host %u left round %u of group %d with %u of %u inside", p->port, p->round, g,
                 entered[g][p->round], size[g]);
        h->inside[g] = false;
        h->round[g]++;
    }
}

static void step_host(unsigned n)
{
    struct host *h = &host[n];
    for (int g = 0; g < GROUPS; g++) {
        if (h->id[g] < 0 || now < h->repeat_at[g])
            continue;
        struct softib_packet p = {SOFTIB_WANT_PARTICIPATE, (uint8_t)h->id[g], (uint16_t)n, h->round[g]};
        bool all_joined = true;
        for (unsigned k = 0; k < HOSTS; k++)
            all_joined &= host[k].id[g] < 0 || host[k].joined[g];
        if (h->joined[g]) {
            if (!all_joined || h->round[g] == ROUNDS || (!h->inside[g] && random_below(4)))
                continue;
            if (!h->inside[g])
                entered[g][h->round[g]]++;
            h->inside[g] = true;
            p.type = SOFTIB_BARRIER_REACHED;
        }
        send_over_lossy_wire(0, &p);
        h->repeat_at[g] = now + SOFTIB_SWITCH_REPEAT_NS;
    }
}

static void deliver_packet(int direction)
{
    if (!on_wire[direction])
        return;
    int k = (int)random_below((unsigned)on_wire[direction]); /* a random packet: the wire reorders */
    struct softib_packet p = wire[direction][k];
    wire[direction][k] = wire[direction][--on_wire[direction]];
    if (direction == TO_SWITCH && leaves)
        softib_leaf_packet(&leaf[p.port % leaves], &p, now, send_to_host, send_to_top, NULL);
    else if (direction == TO_SWITCH || direction == TO_TOP)
        softib_switch_packet(&sw, &p, now, leaves ? send_to_leaf : send_to_host, NULL);
    else if (direction == TO_LEAF)
        softib_leaf_answer(&leaf[p.port], &p, now, send_to_host, send_to_top, NULL);
    else if (p.type != SOFTIB_GET_ID_ACK)
        handle_host_packet(&p);
}

static int received_id;
static void record_id(void *arg, const struct softib_packet *p)
{
    (void)arg;
    received_id = p->id;
}

static int get_id(uint16_t port, uint32_t serial)
{
    struct softib_packet p = {SOFTIB_GET_ID, 0, port, serial};
    softib_switch_packet(&sw, &p, now, record_id, NULL);
    return received_id;
}

static bool all_hosts_have_finished(void)
{
    for (int n = 0; n < HOSTS; n++)
        for (int g = 0; g < GROUPS; g++)
            if (host[n].id[g] >= 0 && host[n].round[g] != ROUNDS)
                return false;
    return true;
}

static void run_seed(void)
{
    rng = seed * 0x9E3779B97F4A7C15ull + 1;
    softib_switch_init(&sw, SOFTIB_SWITCH_PORTS);
    memset(host, 0, sizeof(host));
    memset(entered, 0, sizeof(entered));
    memset(size, 0, sizeof(size));
    memset(on_wire, 0, sizeof(on_wire));
    for (unsigned i = 0; i < leaves; i++)
        softib_leaf_init(&leaf[i], SOFTIB_SWITCH_PORTS, (uint16_t)i);
    for (int g = 0; g < GROUPS; g++) {
        group_id[g] = get_id(0, 1000u + (uint32_t)g);
        if (get_id(0, 1000u + (uint32_t)g) != group_id[g])
            FAIL("a repeated request for an id returned another barrier");
        for (int n = 0; n < HOSTS; n++) {
            host[n].id[g] = random_below(3) ? group_id[g] : -1;
            size[g] += host[n].id[g] >= 0;
        }
    }
    for (uint64_t steps = 0; !all_hosts_have_finished(); steps++) {
        if (steps > 3000000)
            FAIL("the barrier is not complete");
        now += 2000;
        step_host(random_below(HOSTS));
        for (int direction = 0; direction < DIRECTIONS; direction++)
            deliver_packet(direction);
        if (steps % 64)
            continue;
        softib_switch_tick(&sw, now, leaves ? send_to_leaf : send_to_host, NULL);
        for (unsigned i = 0; i < leaves; i++)
            softib_leaf_tick(&leaf[i], now, send_to_host, send_to_top, NULL);
    }
}

/* While all barriers are in use the next request of an id fails; a freed barrier can be used again. */
static void test_exhaustion(void)
{
    softib_switch_init(&sw, SOFTIB_SWITCH_PORTS);
    for (unsigned i = 0; i < SOFTIB_SWITCH_BARRIERS; i++)
        if (get_id(1, i) != (int)i)
            FAIL("barrier %u is number %d", i, received_id);
    if (get_id(1, 9999) != SOFTIB_SWITCH_BARRIERS)
        FAIL("a request for one barrier more than exist succeeded");
    struct softib_packet p = {SOFTIB_FREE_BARRIER, 77, 1, 0};
    softib_switch_packet(&sw, &p, now, record_id, NULL);
    if (get_id(1, 9999) != 77)
        FAIL("the freed barrier is not reused");
    struct softib_packet junk = {SOFTIB_BARRIER_REACHED, 200, 5, 0};
    softib_switch_packet(&sw, &junk, now, record_id, NULL);
    junk = (struct softib_packet){SOFTIB_BARRIER_REACHED, 3, 60000, 0};
    softib_switch_packet(&sw, &junk, now, record_id, NULL);
}

static void leave_barrier(unsigned id, uint16_t port)
{
    struct softib_packet p = {SOFTIB_LEAVE, (uint8_t)id, port, 0};
    softib_switch_packet(&sw, &p, now, record_id, NULL);
    if (received_id != (int)id)
        FAIL("no acknowledgement that port %u has left barrier %u", port, id);
}

/* A barrier is free when the last member has left it. A leave packet that is repeated later does not free the
 * barrier when another host owns it. */
static void test_leaving(void)
{
    softib_switch_init(&sw, SOFTIB_SWITCH_PORTS);
    const unsigned id = (unsigned)get_id(1, 1);
    for (uint16_t port = 1; port <= 3; port++) {
        struct softib_packet p = {SOFTIB_WANT_PARTICIPATE, (uint8_t)id, port, 0};
        softib_switch_packet(&sw, &p, now, record_id, NULL);
    }
    leave_barrier(id, 2);
    leave_barrier(id, 2);
    leave_barrier(id, 1);
    if (!sw.used[id])
        FAIL("a barrier is free although a host is inside");
    leave_barrier(id, 3);
    if (sw.used[id])
        FAIL("a barrier is not free after all hosts have left it");
    if (get_id(7, 2) != (int)id)
        FAIL("a barrier was not reused after all hosts had left it");
    leave_barrier(id, 3);
    if (!sw.used[id])
        FAIL("a repeated leave packet freed a barrier of another host");
}

/* Two switch levels, no losses: the last host's leave is acknowledged when its switch has left the upper
 * one. */
static bool cut; /* the wire between the switches is interrupted */
static void deliver_to_leaf_switch(void *arg, const struct softib_packet *p);
static void deliver_to_top_switch(void *arg, const struct softib_packet *p)
{
    if (!cut)
        softib_switch_packet(&sw, p, now, deliver_to_leaf_switch, arg);
}
static void deliver_to_leaf_switch(void *arg, const struct softib_packet *p)
{
    softib_leaf_answer(&leaf[p->port], p, now, record_id, deliver_to_top_switch, arg);
}

static bool leave_is_acknowledged(uint8_t type, unsigned id, uint16_t port)
{
    const struct softib_packet p = {type, (uint8_t)id, port, 0};
    received_id = -1;
    now += SOFTIB_SWITCH_REPEAT_NS;
    softib_leaf_packet(&leaf[port % 2], &p, now, record_id, deliver_to_top_switch, NULL);
    return received_id == (int)id;
}

static void test_leaving_two_levels(void)
{
    softib_switch_init(&sw, SOFTIB_SWITCH_PORTS);
    for (uint16_t i = 0; i < 2; i++)
        softib_leaf_init(&leaf[i], SOFTIB_SWITCH_PORTS, i);
    const unsigned id = (unsigned)get_id(1, 1);
    cut = true;
    if (leave_is_acknowledged(SOFTIB_WANT_PARTICIPATE, id, 1))
        FAIL("a host was notified of its membership before its switch was a member");
    cut = false;
    for (uint16_t port = 1; port <= 4; port++)
        if (!leave_is_acknowledged(SOFTIB_WANT_PARTICIPATE, id, port))
            FAIL("host %u cannot take part", port);
    if (!leave_is_acknowledged(SOFTIB_LEAVE, id, 1) || !leave_is_acknowledged(SOFTIB_LEAVE, id, 2) ||
        !leave_is_acknowledged(SOFTIB_LEAVE, id, 4))
        FAIL("a host cannot leave");
    cut = true;
    if (leave_is_acknowledged(SOFTIB_LEAVE, id, 3) || !sw.used[id])
        FAIL("the last host of a switch was notified that it has left before its switch had left");
    if (leave_is_acknowledged(SOFTIB_WANT_PARTICIPATE, id, 3))
        FAIL("a host is in a barrier that its switch is leaving");
    cut = false;
    if (!leave_is_acknowledged(SOFTIB_LEAVE, id, 3) || sw.used[id])
        FAIL("a barrier is not free after all hosts have left it");
}

int main(void)
{
    for (leaves = 0; leaves <= LEAVES; leaves += LEAVES)
        for (seed = 1; seed <= 40; seed++)
            run_seed();
    leaves = 0;
    test_leaving_two_levels();
    test_exhaustion();
    test_leaving();
    printf("40 seeds, one switch and two levels, %d hosts, %d barriers at once, %d rounds: no error\n", HOSTS,
           GROUPS, ROUNDS);
    return 0;
}
