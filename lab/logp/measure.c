/* measure.c: the measurements. The hub and its peers run the same list of steps, each a function with a part
 * for either side, so that no messages are needed to coordinate them while the clock runs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "net.h"

const struct logp_verb logp_verbs[] = {
    {"send", LOGP_RC, LOGP_SEND, false},    {"send_inline", LOGP_RC, LOGP_SEND, true},
    {"write", LOGP_RC, LOGP_WRITE, false},  {"write_inline", LOGP_RC, LOGP_WRITE, true},
    {"read", LOGP_RC, LOGP_READ, false},    {"atomic", LOGP_RC, LOGP_ATOMIC, false},
    {"uc_send", LOGP_UC, LOGP_SEND, false}, {"uc_write_inline", LOGP_UC, LOGP_WRITE, true},
    {"ud_send", LOGP_UD, LOGP_SEND, false}, {"ud_send_inline", LOGP_UD, LOGP_SEND, true},
};
const int logp_nverbs = (int)(sizeof(logp_verbs) / sizeof(logp_verbs[0]));
_Static_assert(sizeof(logp_verbs) / sizeof(logp_verbs[0]) <= LOGP_VERBS_MAX, "more verbs than places");
const int logp_counts[LOGP_COUNTS] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
const size_t logp_sizes[LOGP_SIZES] = {8, 64, 512, 4096, 32768};

enum { REPEAT_MAX = 2000, STREAM = 512, WINDOW = 64, BURST = 32 };

struct job {
    struct ib_rank *r;
    struct logp_net *n;
    int repeat;
    double samples[REPEAT_MAX];
};

static double measure_clock_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int compare_by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure_report(struct job *j, const char *what, const char *verb, int at)
{
    if (!j->n->hub)
        return;
    qsort(j->samples, (size_t)j->repeat, sizeof(double), compare_by_value);
    ib_report_figure(j->r, IB_TIME, j->samples[0], "%s/%s/%d", what, verb, at);
    ib_report_figure(j->r, IB_TIME, j->samples[j->repeat / 2], "%s_median/%s/%d", what, verb, at);
}

/* Waits until no message of the preceding step is in flight, then synchronises. */
static void measure_begin(struct job *j)
{
    static const struct logp_verb any = {"", LOGP_RC, LOGP_SEND, false};
    struct logp_net *n = j->n;
    MPI_Barrier(j->r->bench.comm);
    while (logp_poll_message(n, &any, LOGP_BYTES))
        ;
    for (int i = 0; i < n->links; i++) {
        memset(n->link[i].slot, 0, LOGP_SLOT);
        n->link[i].last_received = 0;
    }
    n->step++;
    MPI_Barrier(j->r->bench.comm);
}

static struct logp_link *measure_await_arrival(struct logp_net *n, const struct logp_verb *v, size_t bytes)
{
    struct logp_link *l;
    struct logp_polling patience = {0};
    while (!(l = logp_poll_message(n, v, bytes)))
        logp_pause_polling(&patience);
    return l;
}

static bool verb_is_one_sided(const struct logp_verb *v) /* no work for the peer's CPU */
{
    return v->how == LOGP_READ || v->how == LOGP_ATOMIC;
}

/* ---- RTT(p): to p peers and back [Hoefler05 listing 2.12] ---- */

static void trip_run_hub(struct job *j, const struct logp_verb *v, size_t bytes, int p)
{
    struct logp_net *n = j->n;
    struct logp_request request[LOGP_PEERS];
    for (int i = 0; i < p; i++)
        logp_prepare_request(n, &n->link[i], v, bytes, &request[i]);
    for (int k = 0; k < j->repeat; k++) {
        logp_store_number(n, bytes, (uint64_t)k + 1);
        const double start = measure_clock_us();
        for (int i = 0; i < p; i++)
            logp_post_requests(n, &n->link[i], v, &request[i]);
        if (verb_is_one_sided(v))
            logp_await_completions(n, p);
        for (int i = 0; i < p && !verb_is_one_sided(v); i++)
            measure_await_arrival(n, v, bytes);
        j->samples[k] = (measure_clock_us() - start) / p;
        if (!verb_is_one_sided(v))
            logp_await_completions(n, p);
    }
}

static void trip_run_peer(struct job *j, const struct logp_verb *v, size_t bytes, int p)
{
    struct logp_net *n = j->n;
    struct logp_request request;
    int mine = 0;
    for (int i = 0; i < n->links; i++)
        mine += n->link[i].peer < p;
    for (long k = (long)mine * j->repeat; k > 0; k--) {
        struct logp_link *l = measure_await_arrival(n, v, bytes);
        logp_store_number(n, bytes, l->last_received);
        logp_prepare_request(n, l, v, bytes, &request);
        logp_post_requests(n, l, v, &request);
        logp_await_completions(n, 1);
    }
}

static void measure_trip(struct job *j, const struct logp_verb *v, size_t bytes, int p)
{
    measure_begin(j);
    if (j->n->hub)
        trip_run_hub(j, v, bytes, p);
    else if (!verb_is_one_sided(v))
        trip_run_peer(j, v, bytes, p);
}

/* ---- o_s(p): p requests to one peer [listing 2.11] ---- */

static void measure_await_completion(struct logp_net *n, uint64_t number)
{
    struct logp_polling patience = {0};
    while (!logp_is_done(&n->link[0], number))
        logp_pause_polling(&patience);
}

static double measure_post_requests(struct logp_net *n, const struct logp_verb *v,
                                    struct logp_request *request, int p, bool list)
{
    struct logp_link *l = &n->link[0];
    for (int i = 0; i < p; i++)
        request[i].wr.sg_list = &request[i].sge;
    for (int i = 0; i + 1 < p && list; i++)
        request[i].wr.next = &request[i + 1].wr;
    const double start = measure_clock_us();
    for (int i = 0; i < (list ? 1 : p); i++)
        logp_post_requests(n, l, v, &request[i]);
    return (measure_clock_us() - start) / p;
}

static void measure_post_overhead(struct job *j, const struct logp_verb *v, size_t bytes, int p, bool list)
{
    struct logp_net *n = j->n;
    struct logp_request request[BURST];
    measure_begin(j);
    const uint64_t first = n->step << 32;
    for (int k = 0; k < j->repeat && n->links > 0 && n->link[0].peer == 0; k++) {
        if (!n->hub) {
            for (int i = 0; i < p && v->how == LOGP_SEND; i++)
                measure_await_arrival(n, v, bytes);
            if (v->how == LOGP_SEND)
                logp_report_done(n, &n->link[0], first + (uint64_t)k);
            continue;
        }
        for (int i = 0; i < p; i++)
            logp_prepare_request(n, &n->link[0], v, bytes, &request[i]);
        j->samples[k] = measure_post_requests(n, v, request, p, list);
        logp_await_completions(n, p);
        if (v->how == LOGP_SEND)
            measure_await_completion(n, first + (uint64_t)k);
    }
}

/* ---- o_r(p): p receives posted to a queue that no peer sends to ---- */

static void measure_receive_overhead(struct job *j, int p, bool list)
{
    struct logp_net *n = j->n;
    struct ibv_recv_wr wr[BURST] = {0}, *bad;
    struct ibv_sge sge = {.addr = (uintptr_t)n->sink, .length = LOGP_BYTES, .lkey = n->mr->lkey};
    struct ibv_qp_init_attr a = {.send_cq = n->sent,
                                 .recv_cq = n->received,
                                 .cap = {.max_send_wr = 1, .max_recv_wr = 1024, .max_recv_sge = 1},
                                 .qp_type = IBV_QPT_RC};
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET},
                       init = {.qp_state = IBV_QPS_INIT, .port_num = n->port.port};
    struct ibv_qp *qp = n->verbs.create_qp(n->pd, &a);
    int posted = 1024;
    if (!qp)
        logp_abort_job("a queue pair cannot be made");
    for (int i = 0; i < p; i++)
        wr[i] = (struct ibv_recv_wr){
            .sg_list = &sge, .num_sge = 1, .next = list && i + 1 < p ? &wr[i + 1] : NULL};
    for (int k = 0; k < j->repeat; k++) {
        if (posted + p > 1024) {
            if (n->verbs.modify_qp(qp, &reset, IBV_QP_STATE) != 0 ||
                n->verbs.modify_qp(qp, &init,
                                   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0)
                logp_abort_job("a queue pair cannot be reset");
            posted = 0;
        }
        const double start = measure_clock_us();
        for (int i = 0; i < (list ? 1 : p); i++)
            if (ibv_post_recv(qp, &wr[i], &bad) != 0)
                logp_abort_job("the adapter refused a receive request");
        j->samples[k] = (measure_clock_us() - start) / p;
        posted += p;
    }
    n->verbs.destroy_qp(qp);
}

/* ---- LogP: g, the time between messages of a stream; o of receiving a message ---- */

static double stream_run_hub(struct logp_net *n, const struct logp_verb *v, size_t bytes)
{
    struct logp_request request;
    int under_way = 0;
    logp_prepare_request(n, &n->link[0], v, bytes, &request);
    const double start = measure_clock_us();
    for (int i = 0; i < STREAM; i++) {
        if (under_way == WINDOW) {
            logp_await_completions(n, WINDOW / 2);
            under_way -= WINDOW / 2;
        }
        logp_post_requests(n, &n->link[0], v, &request);
        under_way++;
    }
    logp_await_completions(n, under_way);
    return (measure_clock_us() - start) / STREAM;
}

static void measure_stream(struct job *j, const struct logp_verb *v, size_t bytes)
{
    struct logp_net *n = j->n;
    const int rounds = j->r->quick ? 1 : 15;
    measure_begin(j);
    const uint64_t done = n->step << 32;
    if (n->hub) {
        j->repeat = rounds;
        for (int k = 0; k < rounds; k++)
            j->samples[k] = stream_run_hub(n, v, bytes);
        logp_report_done(n, &n->link[0], done);
    } else if (n->links > 0 && n->link[0].peer == 0) {
        /* datagrams may be lost, so arrivals are not counted */
        struct logp_polling patience = {0};
        while (!logp_is_done(&n->link[0], done))
            if (v->how != LOGP_SEND || !logp_poll_message(n, v, bytes))
                logp_pause_polling(&patience);
            else
                patience = (struct logp_polling){0};
    }
}

/* Measures the time to receive a message that has already arrived. */
static void measure_receive_times(struct job *j, const struct logp_verb *v, size_t bytes)
{
    struct logp_net *n = j->n;
    struct logp_request request;
    measure_begin(j);
    const uint64_t first = n->step << 32;
    const int messages = v->how == LOGP_SEND ? BURST : 1;
    for (int k = 0; k < j->repeat && n->links > 0 && n->link[0].peer == 0; k++) {
        if (n->hub) {
            measure_await_completion(n, first + (uint64_t)k);
            const double start = measure_clock_us();
            for (int i = 0; i < messages; i++)
                measure_await_arrival(n, v, bytes);
            j->samples[k] = (measure_clock_us() - start) / messages;
            logp_report_done(n, &n->link[0], first + (uint64_t)k);
            continue;
        }
        for (int i = 0; i < messages; i++) {
            logp_store_number(n, bytes, (uint64_t)k + 1);
            logp_prepare_request(n, &n->link[0], v, bytes, &request);
            logp_post_requests(n, &n->link[0], v, &request);
        }
        logp_await_completions(n, messages);
        logp_report_done(n, &n->link[0], first + (uint64_t)k);
        measure_await_completion(n, first + (uint64_t)k);
    }
}

static void measure_sizes(struct job *j, const struct logp_verb *v, int repeat)
{
    for (int s = 0; s < LOGP_SIZES && !verb_is_one_sided(v); s++) {
        const size_t bytes = logp_sizes[s];
        if (j->r->quick && bytes != 8 && bytes != 4096)
            continue;
        if ((v->is_inline && bytes > 64) || (v->type == LOGP_UD && bytes > j->n->port.mtu))
            continue;
        j->repeat = repeat;
        measure_trip(j, v, bytes, 1);
        measure_report(j, "size_trip", v->name, (int)bytes);
        measure_post_overhead(j, v, bytes, 8, false);
        measure_report(j, "size_send", v->name, (int)bytes);
        measure_receive_times(j, v, bytes);
        measure_report(j, "size_receive", v->name, (int)bytes);
        measure_stream(j, v, bytes);
        measure_report(j, "size_gap", v->name, (int)bytes);
    }
}

static void measure_counts(struct job *j, const struct logp_verb *v, int repeat)
{
    for (int i = 0; i < LOGP_COUNTS && logp_counts[i] <= j->n->peers; i++) {
        const int p = logp_counts[i];
        j->repeat = repeat;
        measure_trip(j, v, LOGP_BYTES, p);
        measure_report(j, "trip", v->name, p);
        measure_post_overhead(j, v, LOGP_BYTES, p, false);
        measure_report(j, "single", v->name, p);
        measure_post_overhead(j, v, LOGP_BYTES, p, true);
        measure_report(j, "list", v->name, p);
    }
}

/* ---- a barrier of two nodes by RDMA writes, and one such write in each direction ---- */

static double measure_median(double *samples, int n)
{
    qsort(samples, (size_t)n, sizeof(double), compare_by_value);
    return samples[n / 2];
}

static double measure_clock_cost(struct job *j)
{
    for (int k = 0; k < j->repeat; k++) {
        const double start = measure_clock_us();
        j->samples[k] = measure_clock_us() - start;
    }
    return measure_median(j->samples, j->repeat);
}

/* Barriers and writes alternate within one job because a machine's speed drifts. Each repetition reports
 * its median; the time to read the clock, once for each round trip and once for a hundred barriers, is
 * subtracted. */
static void measure_barrier_and_write(struct job *j)
{
    enum { TURNS = 25, BARRIERS = 100 };
    const struct logp_verb *v = &logp_verbs[logp_find_verb("write_inline")];
    double write[TURNS], barrier[TURNS], ratio[TURNS];
    const int turns = j->r->quick ? 3 : TURNS;
    j->repeat = j->r->quick ? 20 : REPEAT_MAX;
    for (int t = 0; t < turns; t++) {
        const double looks = measure_clock_cost(j);
        measure_trip(j, v, LOGP_BYTES, 1);
        write[t] = (measure_median(j->samples, j->repeat) - looks) / 2;
        const int batches = j->repeat / 10;
        for (int k = 0; k < batches; k++) {
            const double start = measure_clock_us();
            for (int i = 0; i < BARRIERS; i++)
                MPI_Barrier(j->r->bench.comm);
            j->samples[k] = (measure_clock_us() - start - looks) / BARRIERS;
        }
        barrier[t] = measure_median(j->samples, batches);
        ratio[t] = barrier[t] / write[t];
    }
    if (!j->n->hub)
        return;
    ib_report_figure(j->r, IB_TIME, measure_median(write, turns), "beside/write");
    ib_report_figure(j->r, IB_TIME, measure_median(barrier, turns), "beside/barrier");
    ib_report_figure(j->r, IB_TIME, measure_median(ratio, turns), "beside/ratio");
    ib_report_figure(j->r, IB_TIME, write[0], "beside/write_best");
    ib_report_figure(j->r, IB_TIME, barrier[0], "beside/barrier_best");
}

static void measure_run_rank(struct ib_rank *r)
{
    struct job *j = calloc(1, sizeof(*j));
    struct logp_net *n = calloc(1, sizeof(*n));
    if (!j || !n) {
        logp_abort_job("out of memory");
        return;
    }
    *j = (struct job){.r = r, .n = n};
    const int repeat = r->quick ? 8 : (int)ib_read_argument(r, "repeat", 300);
    logp_net_open(n, r, (int)ib_read_argument(r, "peers", 8));
    for (int i = 0; i < LOGP_COUNTS && logp_counts[i] <= n->peers; i++)
        for (int list = 0; list < 2; list++) {
            j->repeat = repeat;
            measure_receive_overhead(j, logp_counts[i], list != 0);
            measure_report(j, "receive", list ? "list" : "single", logp_counts[i]);
        }
    for (int v = 0; v < logp_nverbs; v++) {
        /* A verb is measured only if all adapters support it. */
        int can = n->links == 0 || logp_adapter_supports(n, &logp_verbs[v]);
        MPI_Allreduce(MPI_IN_PLACE, &can, 1, MPI_INT, MPI_MIN, r->bench.comm);
        if (!can)
            continue;
        measure_counts(j, &logp_verbs[v], repeat);
        measure_sizes(j, &logp_verbs[v], repeat);
    }
    if (r->bench.size == 2)
        measure_barrier_and_write(j);
    logp_net_close(n);
    free(n);
    free(j);
}

const struct ib_topic logp_topic = {
    .name = "logp", .doc = "LogP and LoP parameters", .rank = measure_run_rank};
