/* test_jobs.c: every algorithm of the library completes on the simulated machine, and small cases take the
 * computed time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "job.h"
#include "test.h"

static enum job_rails rails; /* use of rails for the next jobs_simulate */

static struct job_report jobs_simulate(const char *name, enum coll_kind kind, int ranks, int per_node,
                                       int root, uint64_t bytes, const struct machine *m)
{
    struct job_report report;
    struct job_order order = {.machine = m,
                              .algorithm = algorithm_find(kind, name),
                              .ranks = ranks,
                              .per_node = per_node,
                              .root = root,
                              .bytes = bytes,
                              .segment = 8192,
                              .most_steps = 10000000,
                              .rails = rails};
    EXPECT(order.algorithm);
    job_simulate(&order, &report);
    return report;
}

/* A dissemination barrier of two ranks takes one message time, a central barrier two, because its second
 * message depends on the first. */
static void test_barrier_of_two_takes_one_message_time(void)
{
    const struct machine *m = &machine_preset;
    double cross = m->message_ns + 2 * m->link_ns + m->switch_ns, one = m->send_ns + cross + m->receive_ns;
    struct job_report r = jobs_simulate("dissemination", COLL_BARRIER, 2, 1, 0, 0, m);
    EXPECT(!r.failed && fabs(r.us * 1000 - one) < 0.01);
    EXPECT_EQ(r.messages, 2);
    r = jobs_simulate("central", COLL_BARRIER, 2, 1, 0, 0, m);
    EXPECT(!r.failed && fabs(r.us * 1000 - 2 * one) < 0.01);
    r = jobs_simulate("dissemination", COLL_BARRIER, 2, 2, 0, 0, m);
    EXPECT(!r.failed && fabs(r.us * 1000 - (m->send_ns + m->local_ns + m->receive_ns)) < 0.01);
}

static void test_long_message_uses_rendezvous(void)
{
    struct machine m = machine_preset;
    m.header_bytes = 0;
    m.message_ns = 0;
    m.mtu = 1 << 20;
    double way = 2 * m.link_ns + m.switch_ns, control = m.send_ns + way + 64 / m.link_rate;
    /* Request, answer and data are each started, cross the wire and are received. The receiver already
     * waits when the request arrives, so a request costs the receiver no time but that of the answer. */
    double expected =
        control + control + m.receive_ns + m.send_ns + way + 100000 / m.link_rate + m.receive_ns;
    struct job_report r = jobs_simulate("linear", COLL_BCAST, 2, 1, 0, 100000, &m);
    EXPECT(!r.failed && fabs(r.us * 1000 - expected) < 0.01);
}

/* Two rails: the data of a long message takes half the time, everything else the same time. Short messages
 * are not striped. */
static void test_long_messages_are_striped(void)
{
    struct machine m = machine_preset;
    m.header_bytes = 0;
    m.message_ns = 0;
    m.mtu = 1 << 20;
    double one = jobs_simulate("linear", COLL_BCAST, 2, 1, 0, 128000, &m).us;
    double one_short = jobs_simulate("linear", COLL_BCAST, 2, 1, 0, 10000, &m).us;
    double one_local = jobs_simulate("linear", COLL_BCAST, 2, 2, 0, 128000, &m).us;
    m.rails = 2;
    struct job_report two = jobs_simulate("linear", COLL_BCAST, 2, 1, 0, 128000, &m);
    EXPECT(!two.failed && fabs((one - two.us) * 1000 - 64000 / m.link_rate) < 0.01);
    EXPECT(jobs_simulate("linear", COLL_BCAST, 2, 1, 0, 10000, &m).us == one_short);
    EXPECT(jobs_simulate("linear", COLL_BCAST, 2, 2, 0, 128000, &m).us == one_local); /* no rail is used */
}

/* The two ranks of a node send 128000 bytes each to the other node [Liu04 11.2]. With a rail for each rank
 * both messages take the time of one message. With a rail for each stage both messages are in the first
 * stage and share a rail; a second stage uses the other rail. */
static void test_rails_for_stages_and_ranks(void)
{
    struct machine m = machine_preset;
    m.header_bytes = m.message_ns = 0;
    m.rails = 2;
    const double data = 128000 / m.link_rate;
    double us[JOB_RAILS];
    for (rails = 0; rails < JOB_RAILS; rails++) {
        struct sched scheds[4];
        struct job_report report;
        for (int r = 0; r < 4; r++) {
            sched_init(&scheds[r]);
            if (r < 2)
                sched_send(&scheds[r], r + 2, loc_make(BUF_SEND, 0), 128000);
            else
                sched_recv(&scheds[r], r - 2, loc_make(BUF_RECV, 0), 128000);
        }
        const struct job_order order = {
            .machine = &m, .ranks = 4, .per_node = 2, .most_steps = 100, .rails = rails, .given = scheds};
        job_simulate(&order, &report);
        EXPECT(!report.failed);
        us[rails] = report.us * 1000;
        for (int r = 0; r < 4; r++)
            sched_free(&scheds[r]);
    }
    rails = JOB_RAILS_STRIPE;
    EXPECT(fabs(us[JOB_RAILS_STAGES] - us[JOB_RAILS_RANKS] - data) < 0.05 * data);
    EXPECT(fabs(us[JOB_RAILS_STRIPE] - us[JOB_RAILS_RANKS]) < 0.05 * data);
}

/* Two ranks on one core: the core changes once, from the sender to the receiver. On two cores no core
 * changes, whichever rank is first. */
static void test_shared_core_adds_turn_ns(void)
{
    struct machine m = machine_preset;
    double without = jobs_simulate("linear", COLL_BCAST, 2, 1, 0, 8, &m).us;
    m.turn_ns = 700;
    for (int cores = 1; cores <= 2; cores++) {
        m.cores = cores;
        struct job_report r = jobs_simulate("linear", COLL_BCAST, 2, 1, 0, 8, &m);
        EXPECT(!r.failed && fabs((r.us - without) * 1000 - (cores == 1 ? m.turn_ns : 0)) < 0.01);
    }
}

/* All nodes are at one switch, so the time is the same for every root. */
static void test_bcast_time_is_equal_for_all_roots(void)
{
    struct job_report first = jobs_simulate("binomial", COLL_BCAST, 16, 1, 0, 5000, &machine_preset);
    for (int root = 1; root < 16; root++) {
        struct job_report r = jobs_simulate("binomial", COLL_BCAST, 16, 1, root, 5000, &machine_preset);
        EXPECT(!r.failed && r.us == first.us && r.events == first.events);
    }
}

static void test_every_algorithm_completes(void)
{
    static const int ranks[] = {1, 2, 3, 7, 16, 40};
    static const uint64_t sizes[] = {0, 8, 3000, 40000};
    int cases = 0;
    for (size_t i = 0; i < algorithms_count(); i++) {
        const struct coll_algorithm *a = algorithms_get(i);
        if (!a->generate || a->kind >= COLL_NEIGHBOR_ALLGATHER || (a->needs & NEED_INTER))
            continue;
        for (size_t n = 0; n < 6; n++)
            for (size_t s = 0; s < 4; s++) {
                struct coll_shape shape = {
                    .kind = a->kind, .size = ranks[n], .commutative = true, .adjacent = true};
                if (!algorithm_fits(a, &shape))
                    continue;
                struct machine m = machine_preset;
                m.radix = 8;
                m.buffers = 1 + (double)(s % 2) * 3;
                m.bus_rate = n % 2 ? 8 : 0;
                m.bus_shared = s % 2;
                struct job_report r =
                    jobs_simulate(a->name, a->kind, ranks[n], n % 3 ? 1 : 2, ranks[n] / 2, sizes[s], &m);
                EXPECT(!r.failed && r.us >= r.first_us);
                EXPECT(ranks[n] == 1 || sizes[s] == 0 || a->kind == COLL_BARRIER || r.us > 0);
                cases++;
            }
    }
    EXPECT(cases > 500);
}

static void test_too_many_steps_are_refused(void)
{
    struct job_report r;
    struct job_order order = {.machine = &machine_preset,
                              .algorithm = algorithm_find(COLL_ALLREDUCE, "ring"),
                              .ranks = 64,
                              .per_node = 1,
                              .bytes = 65536,
                              .most_steps = 100};
    job_simulate(&order, &r);
    EXPECT(r.failed && strstr(r.failed, "--most-steps"));
    /* The limit of steps must not refuse a schedule in which only the root has many steps. */
    order.algorithm = algorithm_find(COLL_BARRIER, "central");
    order.ranks = 4096;
    order.bytes = 0;
    order.most_steps = 1 << 20;
    job_simulate(&order, &r);
    EXPECT(!r.failed && r.messages == 2 * 4095);
}

int main(void)
{
    TEST_RUN(test_barrier_of_two_takes_one_message_time);
    TEST_RUN(test_long_message_uses_rendezvous);
    TEST_RUN(test_long_messages_are_striped);
    TEST_RUN(test_rails_for_stages_and_ranks);
    TEST_RUN(test_shared_core_adds_turn_ns);
    TEST_RUN(test_bcast_time_is_equal_for_all_roots);
    TEST_RUN(test_every_algorithm_completes);
    TEST_RUN(test_too_many_steps_are_refused);
    return test_result();
}
