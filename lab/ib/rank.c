/* rank.c: functions that every rank of a job needs: arguments, counters of the library, reports of
 * figures.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ib.h"

/* The counters include the connections that MPI_Init opens, because reading starts before MPI_Init. */
static struct counter {
    const char *name;
    MPI_T_pvar_handle handle;
    bool there;
} counters[] = {
    {.name = "coll_bcast_multicast"},
    {.name = "coll_bytes"},
    {.name = "coll_barrier_switch"},
    {.name = "coll_barrier_wires"},
    {.name = "ib_buffer_bytes"},
    {.name = "ib_connections_opened"},
    {.name = "ib_queue_pairs"},
    {.name = "ib_xrc_initiators"},
    {.name = "ib_xrc_targets"},
    {.name = "ib_credit_messages"},
    {.name = "ib_credit_waits"},
    {.name = "ib_frames_received"},
    {.name = "ib_frames_sent"},
    {.name = "ib_receives_posted_max"},
    {.name = "ib_reserve_answer_ns"},
    {.name = "ib_reserve_answers"},
    {.name = "ib_reserve_frames"},
    {.name = "ib_ring_frames_received"},
    {.name = "ib_ring_frames_sent"},
    {.name = "ib_put_bytes"},
    {.name = "ib_rail0_bytes"},
    {.name = "ib_rail1_bytes"},
    {.name = "ib_rings_added"},
    {.name = "mcast_resent_to_all"},
    {.name = "mcast_resent_to_one"},
    {.name = "mcast_window_waits"},
    {.name = "mcast_packets"},
    {.name = "p2p_eager_sent"},
    {.name = "p2p_offer_notifications"},
    {.name = "p2p_rendezvous_put"},
    {.name = "p2p_rendezvous_putnr"},
    {.name = "p2p_starved_rendezvous"},
    {.name = "reg_hits"},
    {.name = "reg_misses"},
};
enum { NCOUNTERS = sizeof(counters) / sizeof(counters[0]) };
static MPI_T_pvar_session session;

void ib_counters_start(void)
{
    int provided, index, count;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    for (int i = 0; i < NCOUNTERS; i++) {
        struct counter *c = &counters[i];
        c->there = MPI_T_pvar_get_index(c->name, MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS &&
                   MPI_T_pvar_handle_alloc(session, index, NULL, &c->handle, &count) == MPI_SUCCESS &&
                   MPI_T_pvar_start(session, c->handle) == MPI_SUCCESS;
    }
}

/* The session is freed before MPI_Finalize because some libraries crash if it is freed later. */
void ib_counters_stop(void)
{
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
}

/* Reports the adapter of the job (read by MPI_T); figures mean little without the name of the adapter. */
static void rank_report_adapter(const struct ib_rank *r)
{
    MPI_T_pvar_handle handle;
    int index, count;
    if (r->bench.rank != 0 ||
        MPI_T_pvar_get_index("net_adapter", MPI_T_PVAR_CLASS_GENERIC, &index) != MPI_SUCCESS ||
        MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) != MPI_SUCCESS)
        return;
    char *text = calloc((size_t)count + 1, 1);
    if (text && MPI_T_pvar_read(session, handle, text) == MPI_SUCCESS)
        printf("adapter %s\n", text);
    free(text);
    MPI_T_pvar_handle_free(session, &handle);
}

double ib_counter(const char *name)
{
    unsigned long long value = 0;
    for (int i = 0; i < NCOUNTERS; i++)
        if (strcmp(counters[i].name, name) == 0 && counters[i].there &&
            MPI_T_pvar_read(session, counters[i].handle, &value) == MPI_SUCCESS)
            return (double)value;
    return -1;
}

double ib_resident_bytes(void)
{
    long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f) {
        if (fscanf(f, "%ld %ld", &pages, &resident) != 2)
            resident = 0;
        fclose(f);
    }
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

double ib_max_over_ranks(const struct ib_rank *r, double x)
{
    double all = x;
    MPI_Allreduce(&x, &all, 1, MPI_DOUBLE, MPI_MAX, r->bench.comm);
    return all;
}

double ib_sum_over_ranks(const struct ib_rank *r, double x)
{
    double all = x;
    MPI_Allreduce(&x, &all, 1, MPI_DOUBLE, MPI_SUM, r->bench.comm);
    return all;
}

long ib_read_argument(const struct ib_rank *r, const char *name, long otherwise)
{
    size_t len = strlen(name);
    for (int i = 0; i < r->argc; i++)
        if (strncmp(r->argv[i], name, len) == 0 && r->argv[i][len] == '=')
            return strtol(r->argv[i] + len + 1, NULL, 10);
    return otherwise;
}

void ib_report_figure(const struct ib_rank *r, enum ib_kind kind, double value, const char *name, ...)
{
    va_list ap;
    if (r->bench.rank != 0)
        return;
    printf("figure %c ", kind);
    va_start(ap, name);
    vprintf(name, ap);
    va_end(ap);
    printf(" %.9g\n", value);
    fflush(stdout);
}

int ib_run_rank(const struct bench_host *host, const struct ib_topic *topic, int argc, char **argv)
{
    struct ib_rank r = {.bench.host = host, .argc = argc, .argv = argv};
    if (topic->before)
        topic->before(&r);
    ib_counters_start();
    MPI_Init(NULL, NULL);
    r.bench.comm = MPI_COMM_WORLD;
    MPI_Comm_rank(MPI_COMM_WORLD, &r.bench.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &r.bench.size);
    r.quick = ib_read_argument(&r, "quick", 0) != 0;
    r.bench.options.seconds = r.quick ? 0.01 : 0.1;
    rank_report_adapter(&r);
    topic->rank(&r);
    double wrong = ib_sum_over_ranks(&r, (double)r.bench.errors);
    if (wrong > 0 && r.bench.rank == 0)
        fprintf(stderr, "fishplate-lab: %.0f bytes differ from what was sent\n", wrong);
    ib_report_figure(&r, IB_COUNT, wrong, "wrong");
    ib_counters_stop();
    MPI_Finalize();
    return wrong > 0;
}

/* argv: the topic, then name=value. */
int ib_rank_main(const struct ib_command *command, int argc, char **argv)
{
    for (int i = 0; i < command->ntopics && argc > 0; i++)
        if (strcmp(command->topics[i]->name, argv[0]) == 0)
            return ib_run_rank(NULL, command->topics[i], argc - 1, argv + 1);
    return 2;
}
