/* validate.c: compares the simulator with closed forms for a network with simple times, and with runs that
 * must be equal.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate.h"

#include <math.h>
#include <string.h>

#include "job.h"

struct probe {
    struct network net;
    sim_time last;
    double waited; /* wait in a Poisson stream, in addition to the time of a message alone */
    double bytes, alone;
    uint32_t left, sent;
    double rate, at;
    uint64_t random;
};

static void on_arrived(void *ctx, uint32_t message)
{
    struct probe *p = ctx;
    (void)message;
    p->last = p->net.now;
}

static void on_delivered(void *ctx, uint32_t message, uint32_t node)
{
    (void)node;
    on_arrived(ctx, message);
}

static bool validate_begin(struct probe *p, const struct machine *m, uint32_t nodes)
{
    memset(p, 0, sizeof(*p));
    if (!network_make(&p->net, m, nodes))
        return false;
    p->net.arrived = on_arrived;
    p->net.delivered = on_delivered;
    p->net.ctx = p;
    return true;
}

static double probe_run_ns(struct probe *p)
{
    network_run(&p->net);
    double ns = p->net.failed ? NAN : (double)p->last / SIM_NS;
    network_free(&p->net);
    return ns;
}

static double validate_measure_message_ns(uint32_t nodes, uint32_t to, bool multicast)
{
    struct probe p;
    if (!validate_begin(&p, &machine_simple, nodes))
        return NAN;
    if (multicast)
        network_multicast(&p.net, 0, 500, 0);
    else
        network_send(&p.net, 0, to, 500, 0);
    return probe_run_ns(&p);
}

/* Measures the rate in bytes per nanosecond at a receiver to whose link many nodes send. */
static double validate_measure_incast_rate(uint32_t senders, uint32_t nodes)
{
    struct probe p;
    if (!validate_begin(&p, &machine_simple, nodes))
        return NAN;
    for (uint32_t k = 0; k < 100; k++)
        for (uint32_t s = 1; s <= senders; s++)
            network_send(&p.net, s * (nodes - 1) / senders, 0, 10000, 0);
    return 100.0 * senders * 10000 / probe_run_ns(&p);
}

/* Measures the bandwidth into each node if both directions are used over buses that carry one direction at
 * a time. */
static double validate_measure_bus_bandwidth(void)
{
    struct machine m = machine_simple;
    struct probe p;
    m.bus_rate = 1;
    m.bus_shared = 1;
    if (!validate_begin(&p, &m, 8))
        return NAN;
    for (int k = 0; k < 100; k++) {
        network_send(&p.net, 0, 1, 10000, 0);
        network_send(&p.net, 1, 0, 10000, 0);
    }
    return 100.0 * 10000 / probe_run_ns(&p);
}

static void probe_schedule_next(struct probe *p)
{
    if (p->left == 0)
        return;
    p->left--;
    p->at += -log(sim_random_uniform(&p->random)) / p->rate;
    p->net.failed |= !event_insert(&p->net.events, (sim_time)(p->at * SIM_NS), EVENT_OTHER, 0);
}

/* A message's tag is its send time in units of 16 ps, modulo 32 bits: only the difference is used. */
static void probe_send_poisson_message(void *ctx, const struct event *e)
{
    struct probe *p = ctx;
    (void)e;
    network_send(&p->net, 0, 1, (uint64_t)p->bytes, (uint32_t)(p->net.now >> 4));
    p->sent++;
    probe_schedule_next(p);
}

static void probe_add_wait(void *ctx, uint32_t message)
{
    struct probe *p = ctx;
    uint32_t took = (uint32_t)(p->net.now >> 4) - p->net.messages[message].tag;
    p->waited += took * 16.0 / SIM_NS - p->alone;
}

/* The mean wait in units of a message's own time. */
static double validate_measure_queue_wait(double load)
{
    struct probe p;
    if (!validate_begin(&p, &machine_simple, 2))
        return NAN;
    p.net.arrived = probe_add_wait;
    p.net.other = probe_send_poisson_message;
    p.bytes = 1000;
    p.alone = 1120;
    p.rate = load / p.bytes;
    p.left = 200000;
    p.random = 42;
    probe_schedule_next(&p);
    network_run(&p.net);
    bool failed = p.net.failed;
    network_free(&p.net);
    return failed || !p.sent ? NAN : p.waited / p.sent / p.bytes;
}

/* Time of an allreduce or all-to-all on a machine whose times are multiplied by `slower`, with ranks on the
 * nodes `place`. */
static double validate_measure_job_us(enum coll_kind kind, const char *name, int ranks, double slower,
                                      const uint32_t *place)
{
    struct machine m = machine_preset;
    struct job_report r = {.failed = ""};
    double *times[] = {&m.send_ns, &m.receive_ns, &m.message_ns, &m.local_ns,
                       &m.link_ns, &m.switch_ns,  &m.bus_ns};
    double *rates[] = {&m.copy_rate, &m.reduce_rate, &m.link_rate};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        *times[i] *= slower;
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
        *rates[i] /= slower;
    struct job_order o = {.machine = &m,
                          .algorithm = algorithm_find(kind, name),
                          .ranks = ranks,
                          .per_node = 1,
                          .bytes = 65536,
                          .most_steps = 1 << 24,
                          .place = place};
    if (o.algorithm)
        job_simulate(&o, &r);
    return r.failed ? NAN : r.us;
}

/* Places ranks on other nodes of the same switch: rotated or in reverse order. */
static void validate_rotate_placement(uint32_t *place, uint32_t ranks, uint32_t leaf, uint32_t by)
{
    for (uint32_t r = 0; r < ranks; r++)
        place[r] = r / leaf * leaf + (r % leaf + by) % leaf;
}

static struct validate_row *validate_add_row(struct validate_row *r, const char *against, const char *what,
                                             const char *unit, double expected, double found, double bound)
{
    *r = (struct validate_row){against, what, unit, expected, found, bound};
    return r + 1;
}

static struct validate_row *validate_add_closed_forms(struct validate_row *r)
{
    static const char *const form = "closed form";
    r = validate_add_row(r, form, "500 bytes through one switch", "ns", 620,
                         validate_measure_message_ns(8, 1, false), 0);
    r = validate_add_row(r, form, "500 bytes through three switches", "ns", 840,
                         validate_measure_message_ns(32, 31, false), 0);
    r = validate_add_row(r, form, "a multicast to 128 nodes takes one message", "ns",
                         validate_measure_message_ns(128, 127, false),
                         validate_measure_message_ns(128, 0, true), 0);
    r = validate_add_row(r, form, "one link saturates at its rate", "GB/s", 1,
                         validate_measure_incast_rate(1, 8), 0.001);
    r = validate_add_row(r, form, "seven senders share the receiver's link", "GB/s", 1,
                         validate_measure_incast_rate(7, 128), 0.01);
    r = validate_add_row(r, form, "a bus for both directions gives each half", "GB/s", 0.5,
                         validate_measure_bus_bandwidth(), 0.01);
    r = validate_add_row(r, form, "M/D/1 queue, load 0.3: mean wait / service", "", 0.3 / 1.4,
                         validate_measure_queue_wait(0.3), 0.04);
    r = validate_add_row(r, form, "M/D/1 queue, load 0.55", "", 0.55 / 0.9, validate_measure_queue_wait(0.55),
                         0.04);
    return validate_add_row(r, form, "M/D/1 queue, load 0.8", "", 0.8 / 0.4, validate_measure_queue_wait(0.8),
                            0.04);
}

static struct validate_row *validate_add_self_checks(struct validate_row *r)
{
    static const char *const self = "itself";
    static uint32_t place[324];
    double one = validate_measure_job_us(COLL_ALLTOALL, "pairwise", 36, 1, NULL);
    validate_rotate_placement(place, 36, 36, 7);
    r = validate_add_row(r, self, "alltoall on one switch, ranks on other nodes", "us", one,
                         validate_measure_job_us(COLL_ALLTOALL, "pairwise", 36, 1, place), 0.001);
    double many = validate_measure_job_us(COLL_ALLREDUCE, "recursive_doubling", 324, 1, NULL);
    validate_rotate_placement(place, 324, 18, 5);
    r = validate_add_row(r, self, "allreduce of 324 nodes, turned within each leaf", "us", many,
                         validate_measure_job_us(COLL_ALLREDUCE, "recursive_doubling", 324, 1, place), 0.1);
    double fine = validate_measure_job_us(COLL_ALLREDUCE, "rabenseifner", 64, 1, NULL);
    return validate_add_row(r, self, "every time twice as long: half the time step", "us", 2 * fine,
                            validate_measure_job_us(COLL_ALLREDUCE, "rabenseifner", 64, 2, NULL), 1e-5);
}

int validate_all(struct validate_row rows[VALIDATE_ROWS])
{
    return (int)(validate_add_self_checks(validate_add_closed_forms(rows)) - rows);
}

double validate_relative_error(const struct validate_row *r)
{
    return r->found / r->expected - 1;
}

bool validate_row_is_within_bound(const struct validate_row *r)
{
    return fabs(validate_relative_error(r)) <= (r->bound > 0 ? r->bound : 1e-9);
}
