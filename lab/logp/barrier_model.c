/* barrier_model.c: predicts barriers by phases. Every algorithm consists of a few phases; in each round of
 * a phase a rank sends to its partners one after the other or receives from them one after the other. The
 * two models differ only in the cost of such a round. The equations differ from print in two places. The
 * broadcast that releases the ranks (t_bc) is printed with one message more than a binomial tree of P
 * ranks has; and the combining tree and MCS release their ranks down their own tree here, not down a
 * binomial one. For n-way rounds the paper prints an equation with n latencies, which assumes one message
 * in flight at a time. The equation used here has one latency: the paper's equation for n links.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/logp/barrier_model.h"

#include <math.h>
#include <string.h>

#define ROUNDS_MAX 3

/* `rounds` rounds; in each round one rank sends `out` messages, and a rank on the critical path receives
 * `in` messages. */
struct phase {
    int rounds, out, in;
};
struct phases {
    int count;
    struct phase phase[ROUNDS_MAX];
};

const struct model_lop model_paper_inline = {
    .send = {.a = 0.5417, .b = 0.5003, .c = -0.4951},
    .trip = {.l1 = 14.9630, .l2 = 0.0446, .l3 = 3.0074, .l4 = 6.1891, .l5 = -0.0531, .l6 = 8.2665},
    .max_in_flight = 1e9};

int model_log_up(int base, int size)
{
    int k = 0;
    for (int64_t reach = 1; reach < size && base > 1; reach *= base)
        k++;
    return k;
}

int model_log_down(int base, int size)
{
    int k = 0;
    for (int64_t reach = base; reach <= size && base > 1; reach *= base)
        k++;
    return k;
}

/* Levels below the root of a tree in which every rank has `fan` children. */
static int model_tree_depth(int fan, int size)
{
    int depth = 0;
    int64_t level = 1;
    for (int64_t ranks = 1; ranks < size; ranks += level) {
        level *= fan;
        depth++;
    }
    return depth;
}

static bool model_is_power_of(int base, int size)
{
    return model_log_up(base, size) == model_log_down(base, size);
}

static void phases_add(struct phases *c, int rounds, int out, int in)
{
    c->phase[c->count++] = (struct phase){rounds, out, in};
}

static void phases_central(struct phases *c, int size, const int *n)
{
    (void)n;
    phases_add(c, 1, 1, size - 1);
    phases_add(c, 1, size - 1, 1);
}

static void phases_combining(struct phases *c, int size, const int *n)
{
    const int fan = n[0] < size ? n[0] : size;
    phases_add(c, model_log_up(n[0], size), 1, fan - 1);
    phases_add(c, model_log_up(n[0], size), fan - 1, 1);
}

static void phases_fway(struct phases *c, int size, const int *n)
{
    phases_add(c, model_log_up(n[0], size), 1, (n[0] < size ? n[0] : size) - 1);
    phases_add(c, model_log_up(2, size), 1, 1);
}

static void phases_tournament(struct phases *c, int size, const int *n)
{
    (void)n;
    phases_add(c, model_log_up(2, size), 1, 1);
    phases_add(c, model_log_up(2, size), 1, 1);
}

static void phases_mcs(struct phases *c, int size, const int *n)
{
    phases_add(c, model_tree_depth(n[0], size), 1, n[0] < size ? n[0] : size - 1);
    phases_add(c, model_tree_depth(n[1], size), n[1] < size ? n[1] : size - 1, 1);
}

/* If size is no power of two, a link of the tree may be used twice in a round. */
static void phases_bst(struct phases *c, int size, const int *n)
{
    (void)n;
    phases_add(c, model_log_up(2, size), 1, model_is_power_of(2, size) ? 1 : 2);
    phases_add(c, model_log_up(2, size), 1, 1);
}

static void phases_butterfly(struct phases *c, int size, const int *n)
{
    (void)n;
    const int both = model_is_power_of(2, size) ? 1 : 2;
    phases_add(c, model_log_up(2, size), both, both);
}

static void phases_exchange(struct phases *c, int size, int n)
{
    phases_add(c, model_log_down(n + 1, size), n, n);
    if (!model_is_power_of(n + 1, size))
        phases_add(c, 2, 1, 1);
}

static void phases_pairwise(struct phases *c, int size, const int *n)
{
    (void)n;
    phases_exchange(c, size, 1);
}

static void phases_nwise(struct phases *c, int size, const int *n)
{
    phases_exchange(c, size, n[0]);
}

static void phases_dissemination(struct phases *c, int size, const int *n)
{
    (void)n;
    phases_add(c, model_log_up(2, size), 1, 1);
}

static void phases_nway(struct phases *c, int size, const int *n)
{
    const int most = n[0] < size ? n[0] : size - 1; /* at most one message to each other rank */
    phases_add(c, model_log_up(n[0] + 1, size), most, most);
}

static const struct {
    const char *name;
    void (*describe)(struct phases *c, int size, const int *n);
} known[] = {{"central", phases_central},
             {"combining", phases_combining},
             {"tournament", phases_tournament},
             {"fway", phases_fway},
             {"mcs", phases_mcs},
             {"bst", phases_bst},
             {"butterfly", phases_butterfly},
             {"pairwise", phases_pairwise},
             {"dissemination", phases_dissemination},
             {"nway", phases_nway},
             {"nwise", phases_nwise},
             {"rdma", phases_nway}};

static bool phases_describe(struct phases *c, const struct coll_algorithm *a, const int *parameter, int size)
{
    int n[COLL_PARAMETERS];
    c->count = 0;
    for (int i = 0; i < COLL_PARAMETERS; i++)
        n[i] = parameter && parameter[i] ? parameter[i] : a->parameter[i].preset;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (a->kind == COLL_BARRIER && strcmp(known[i].name, a->name) == 0) {
            if (size > 1)
                known[i].describe(c, size, n);
            return true;
        }
    return false;
}

/* Time of a round: o_s + L + o_r for the first message, and max(o, g) for each following message on the
 * side with more messages. */
static double model_round_logp(const struct model_logp *m, const struct phase *p)
{
    const double sends = (p->out - 1) * fmax(m->send, m->gap),
                 receives = (p->in - 1) * fmax(m->receive, m->gap);
    /* A rank that both sends and receives in a round uses one processor for sends and receives. */
    const double more =
        p->out > 1 && p->in > 1 ? fmax(sends + (p->in - 1) * m->receive, receives) : sends + receives;
    return m->send + m->latency + m->receive + more;
}

double model_barrier_logp(const struct model_logp *m, const struct coll_algorithm *a, const int *parameter,
                          int size)
{
    struct phases c;
    if (!phases_describe(&c, a, parameter, size))
        return -1;
    double us = 0;
    for (int i = 0; i < c.count; i++)
        us += c.phase[i].rounds * model_round_logp(m, &c.phase[i]);
    return us;
}

double model_overhead_at(const struct model_overhead *o, double p)
{
    return o->a + o->b / (o->c + p);
}

double model_trip_at(const struct model_trip *t, double p)
{
    return t->l1 / (t->l2 + p) + t->l3 + t->l4 * (1 - exp(t->l5 * (p - t->l6)));
}

double model_latency_at(const struct model_lop *m, double p)
{
    const double one = model_overhead_at(&m->send, 1), each = model_overhead_at(&m->send, p);
    const double left = model_trip_at(&m->trip, p) / 2 - one - (m->list ? p * each : each);
    return left > 0 ? left : 0;
}

/* Time of a round by [Hoefler05 2.3.7]: 1:n messages o(n) + n L(n), n:1 messages o(1) + n L(n), n:n
 * messages n o(n) + n L(n). The number of preceding messages (cnt barriers of `rounds` rounds) determines
 * how full the pipeline is. */
static double model_round_lop(const struct model_lop *m, const struct phase *p, int times)
{
    const int n = p->out > p->in ? p->out : p->in;
    const double filled = fmin((double)n * p->rounds * times, m->max_in_flight);
    const double posted = fmin((double)p->out * p->rounds * times, m->max_in_flight);
    const double posts = p->out > 1 && p->in > 1 ? n : 1;
    return posts * model_overhead_at(&m->send, posted) + n * model_latency_at(m, filled);
}

double model_barrier_lop(const struct model_lop *m, const struct coll_algorithm *a, const int *parameter,
                         int size, int times)
{
    struct phases c;
    if (!phases_describe(&c, a, parameter, size))
        return -1;
    double us = 0;
    for (int i = 0; i < c.count; i++)
        us += c.phase[i].rounds * model_round_lop(m, &c.phase[i], times);
    return us;
}
