/* replay.c: `fishplate-lab sim replay`: simulates, on another machine, a job that `fishplate prof` recorded.
 * Every rank computes between its calls for the recorded time and sends the recorded messages; collectives
 * use the library's algorithms. Assumptions about information that a record lacks: messages between two ranks
 * match in order, whatever their tags; a wait waits for every started operation; an early receive takes
 * effect at the next wait.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab/sim/job.h"

#include "tools/fishplate/command.h"
#include "cli/json.h"
#include "tools/fishplate/prof.h"
#include "simulate.h"
#include "cli/number.h"
#include "cli/options.h"

static const char *const usage_text =
    "Usage: fishplate-lab sim replay RECORD [options]\n"
    "\n"
    "Takes a job that was recorded with its calls and prints how long it would take on another machine:\n"
    "  fishplate prof --record job.prof --timeline job.json mpiexec -n 8 -vnodes 8 ./program\n"
    "  fishplate-lab sim replay job.prof --from here --machine ib100 --set rails=2\n"
    "\n"
    "Options:\n"
    "  --machine ib100      the machine to replay on: a preset or a file, see fishplate-lab sim --help\n"
    "  --set NAME=VALUE     one of its parameters\n"
    "  --per-node 1         ranks per node\n"
    "  --from MACHINE       also replay on the machine it was recorded on and print the error; here: "
    "parameters are measured now on two virtual nodes of this machine\n"
    "  --compute 1          multiply the time between calls: 0.5 is a processor twice as fast\n"
    "  --json\n"
    "  --help\n";

struct options {
    const char *record;
    struct machine machine, from;
    bool has_from, json, help;
    int per_node;
    double compute;
};

/* Converts the recorded calls of one rank into steps of its schedule. */
struct builder {
    const struct prof_job *job;
    struct sched *scheds;
    int rank;
    bool tested;        /* only test calls since the last operation was started */
    struct step *later; /* early receives, which take effect at the next wait */
    size_t later_count, later_capacity;
    char why[200];
};

static bool replay_set_error(struct builder *b, const char *what, const char *name)
{
    snprintf(b->why, sizeof(b->why), "rank %d, %.60s: %s", b->rank, name, what);
    return false;
}

static void replay_add_computation(struct sched *s, double ns)
{
    if (ns >= 1) {
        sched_fence(s);
        sched_copy(s, loc_make(BUF_SEND, 0), loc_make(BUF_RECV, 0), (int64_t)ns);
        if (!s->failed)
            s->steps[s->count - 1].kind = JOB_COMPUTE;
    }
}

/* Adds a computation during which started operations continue. */
static void replay_add_background_computation(struct sched *s, double ns)
{
    if (ns < 1)
        return;
    sched_copy(s, loc_make(BUF_SEND, 0), loc_make(BUF_RECV, 0), (int64_t)ns);
    if (!s->failed)
        s->steps[s->count - 1].kind = JOB_COMPUTE;
}

static void replay_add_message(struct sched *s, bool send, int peer, int64_t bytes)
{
    struct loc at = loc_make(BUF_SEND, 0);
    if (bytes <= 0 && send)
        sched_signal(s, peer);
    else if (bytes <= 0)
        sched_await(s, peer);
    else if (send)
        sched_send(s, peer, at, bytes);
    else
        sched_recv(s, peer, at, bytes);
}

static bool builder_defer_receive(struct builder *b, int peer, int64_t bytes)
{
    if (b->later_count == b->later_capacity) {
        size_t room = b->later_capacity ? 2 * b->later_capacity : 64;
        struct step *larger = realloc(b->later, room * sizeof(*larger));
        if (!larger)
            return false;
        b->later = larger;
        b->later_capacity = room;
    }
    b->later[b->later_count++] = (struct step){.peer = peer, .count = bytes};
    return true;
}

static void builder_wait_all(struct builder *b)
{
    struct sched *s = &b->scheds[b->rank];
    for (size_t i = 0; i < b->later_count; i++)
        replay_add_message(s, false, b->later[i].peer, b->later[i].count);
    b->later_count = 0;
    b->tested = false;
    sched_fence(s);
}

static bool builder_add_point_to_point(struct builder *b, const struct prof_event *e,
                                       const struct prof_function *f)
{
    struct sched *s = &b->scheds[b->rank];
    if (e->to == -1 || e->from == -1)
        return replay_set_error(b, "it does not say to whom or from whom (any source, or outside the job)",
                                f->name);
    if (e->to >= b->job->size || e->from >= b->job->size)
        return replay_set_error(b, "there is no such rank", f->name);
    if (e->to >= 0 && e->to != b->rank)
        replay_add_message(s, true, e->to, e->out);
    if (e->from >= 0 && e->from != b->rank) {
        if (!f->nonblocking)
            replay_add_message(s, false, e->from, e->in);
        else if (!builder_defer_receive(b, e->from, e->in))
            return replay_set_error(b, "out of memory", f->name);
    }
    if (!f->nonblocking)
        sched_fence(s);
    return true;
}

static const struct {
    const char *name;
    enum coll_kind kind;
} kinds[] = {
    {"MPI_Barrier", COLL_BARRIER}, {"MPI_Bcast", COLL_BCAST},          {"MPI_Gather", COLL_GATHER},
    {"MPI_Scatter", COLL_SCATTER}, {"MPI_Allgather", COLL_ALLGATHER},  {"MPI_Alltoall", COLL_ALLTOALL},
    {"MPI_Reduce", COLL_REDUCE},   {"MPI_Allreduce", COLL_ALLREDUCE},  {"MPI_Scan", COLL_SCAN},
    {"MPI_Exscan", COLL_EXSCAN},   {"MPI_Allgatherv", COLL_ALLGATHER}, {"MPI_Alltoallv", COLL_ALLTOALL},
    {"MPI_Gatherv", COLL_GATHER},  {"MPI_Scatterv", COLL_SCATTER}};

static int collective_find_kind(const char *name)
{
    const char *plain = strncmp(name, "MPI_", 4) == 0 ? name + 4 : name;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kinds[i].name + 4, plain) == 0)
            return (int)kinds[i].kind;
    return -1;
}

/* One collective call of the job. `root` is the rank whose record shows the buffer that only the root
 * passes. */
struct collective {
    int kind, root;
    int64_t bytes; /* bytes of the vector, or of one block */
};

static const struct prof_function *record_find_function(const struct prof_job *job, int id)
{
    for (size_t i = 0; i < job->nfunctions; i++)
        if (job->functions[i].id == id)
            return &job->functions[i];
    return NULL;
}

/* Collectives with the same position in each rank's record must be the same operation. */
static bool builder_find_collectives(struct builder *b, struct collective **all, int *count)
{
    const struct prof_job *job = b->job;
    int *seen = calloc((size_t)job->size, sizeof(*seen)), room = 0;
    *all = NULL;
    *count = 0;
    for (size_t i = 0; seen && i < job->nevents; i++) {
        const struct prof_event *e = &job->events[i];
        const struct prof_function *f = record_find_function(job, e->function);
        int kind = f ? collective_find_kind(f->name) : -1;
        if (kind < 0 || e->rank < 0 || e->rank >= job->size)
            continue;
        int at = seen[e->rank]++;
        if (at >= room) {
            room = room ? 2 * room : 64;
            struct collective *larger = realloc(*all, (size_t)room * sizeof(*larger));
            if (!larger)
                break;
            *all = larger;
        }
        struct collective *c = &(*all)[at];
        if (at == *count) {
            *c = (struct collective){.kind = kind, .root = 0};
            ++*count;
        }
        b->rank = e->rank;
        if (c->kind != kind) {
            free(seen);
            return replay_set_error(
                b,
                "other ranks called another collective: communicators smaller than the world "
                "cannot be replayed",
                f->name);
        }
        bool out_root = kind == COLL_BCAST || kind == COLL_SCATTER,
             in_root = kind == COLL_REDUCE || kind == COLL_GATHER;
        int64_t own = e->out >= 0 ? e->out : e->in;
        bool many = kind == COLL_ALLTOALL || (kind == COLL_SCATTER && e->out >= 0);
        if ((out_root && e->out >= 0) || (in_root && e->in >= 0))
            c->root = e->rank;
        if (kind == COLL_GATHER && e->out < 0)
            many = true;
        own = e->moved && own > 0 ? (many ? own / job->size : own) : 0;
        c->bytes = own > c->bytes ? own : c->bytes;
    }
    free(seen);
    return seen != NULL;
}

static bool builder_add_collective(struct builder *b, const struct collective *c, const char *name)
{
    struct sched steps, *s = &b->scheds[b->rank];
    bool vector = c->kind == COLL_BCAST || c->kind == COLL_REDUCE || c->kind == COLL_ALLREDUCE ||
                  c->kind == COLL_SCAN || c->kind == COLL_EXSCAN;
    const struct coll_algorithm *a =
        sim_find_selected((enum coll_kind)c->kind, b->job->size, (size_t)c->bytes);
    struct coll_shape shape = {.kind = (enum coll_kind)c->kind,
                               .size = b->job->size,
                               .rank = b->rank,
                               .root = c->root,
                               .count = vector ? c->bytes : 1,
                               .commutative = true,
                               .adjacent = true};
    if (b->job->size == 1)
        return true;
    if (!a)
        return replay_set_error(b, "no algorithm for it", name);
    for (int i = 0; i < COLL_PARAMETERS; i++)
        shape.parameter[i] = a->parameter[i].preset;
    sched_init(&steps);
    a->generate(&shape, &steps);
    sched_fence(s);
    for (uint32_t i = 0; i < steps.count && !steps.failed; i++) {
        struct step one = steps.steps[i];
        if (!vector)
            one.count *= c->bytes;
        /* reserves a step, which is set later */
        sched_copy(s, loc_make(BUF_SEND, 0), loc_make(BUF_RECV, 0), 1);
        if (!s->failed)
            s->steps[s->count - 1] = one;
    }
    bool good = !steps.failed;
    sched_free(&steps);
    sched_copy(s, loc_make(BUF_SEND, 0), loc_make(BUF_RECV, 0), 1);
    if (!s->failed)
        s->steps[s->count - 1] = (struct step){.kind = STEP_FENCE};
    return good || replay_set_error(b, "out of memory", name);
}

static bool builder_add_event(struct builder *b, const struct prof_event *e, const struct collective *all,
                              int *at)
{
    const struct prof_function *f = record_find_function(b->job, e->function);
    const char *name = f && strncmp(f->name, "MPI_", 4) == 0 ? f->name + 4 : f ? f->name : "";
    if (!f || f->startup)
        return true;
    if (f->kind == PROF_WAIT) {
        bool test = strncmp(name, "Wait", 4) != 0;
        if (test)
            b->tested = true;
        else
            builder_wait_all(b);
        return true;
    }
    if (b->tested)
        builder_wait_all(b);
    if (collective_find_kind(f->name) >= 0)
        return builder_add_collective(b, &all[(*at)++], name);
    if (f->kind == PROF_COLL && e->moved)
        return replay_set_error(b, "this collective cannot be replayed", name);
    if (strncmp(name, "Start", 5) == 0 || f->kind == PROF_RMA)
        return replay_set_error(b, "persistent and one-sided operations cannot be replayed", name);
    if (f->kind == PROF_P2P && e->moved)
        return builder_add_point_to_point(b, e, f);
    replay_add_background_computation(&b->scheds[b->rank], (double)e->ns); /* the call moves no data */
    return true;
}

/* Makes the steps of one rank from the end of MPI_Init on: computing and calls. */
static bool builder_build_rank(struct builder *b, int rank, double scale, const struct collective *all)
{
    struct sched *s = &b->scheds[rank];
    const struct prof_event *before = NULL;
    int at = 0;
    b->rank = rank;
    b->later_count = 0;
    b->tested = false;
    for (size_t i = 0; i < b->job->nevents; i++) {
        const struct prof_event *e = &b->job->events[i];
        if (e->rank != rank)
            continue;
        if (e->thread != 1)
            return replay_set_error(b, "several threads cannot be replayed", "a call");
        double gap = before && e->start > before->start + before->ns
                         ? (double)(e->start - before->start - before->ns)
                         : 0;
        if (b->later_count || b->tested)
            replay_add_background_computation(s, gap * scale);
        else
            replay_add_computation(s, gap * scale);
        if (!builder_add_event(b, e, all, &at))
            return false;
        before = e;
    }
    builder_wait_all(b);
    return !s->failed || replay_set_error(b, "out of memory", "a call");
}

/* Seconds from the end of MPI_Init to the end of the last call before MPI_Finalize, maximum over all
 * ranks. */
static double record_duration_seconds(const struct prof_job *job)
{
    double most = 0;
    for (int r = 0; r < job->size; r++) {
        uint64_t first = UINT64_MAX, last = 0;
        for (size_t i = 0; i < job->nevents; i++) {
            const struct prof_event *e = &job->events[i];
            const struct prof_function *f = e->rank == r ? record_find_function(job, e->function) : NULL;
            if (f && f->startup && last == 0)
                first = e->start + e->ns;
            if (!f || f->startup)
                continue;
            first = e->start < first ? e->start : first;
            last = e->start + e->ns > last ? e->start + e->ns : last;
        }
        if (last > first && (double)(last - first) * 1e-9 > most)
            most = (double)(last - first) * 1e-9;
    }
    return most;
}

/* Simulated seconds of the job on a machine; NAN: failed, and an error was printed. */
static double replay_simulate_record(const struct prof_job *job, const struct machine *m, int per_node,
                                     double scale, uint64_t *messages)
{
    struct builder b = {.job = job, .scheds = calloc((size_t)job->size, sizeof(*b.scheds))};
    struct collective *all = NULL;
    struct job_report r = {.failed = "out of memory"};
    int count;
    bool good = b.scheds && builder_find_collectives(&b, &all, &count);
    for (int i = 0; good && i < job->size; i++) {
        sched_init(&b.scheds[i]);
        good = builder_build_rank(&b, i, scale, all);
    }
    struct job_order o = {
        .machine = m, .ranks = job->size, .per_node = per_node, .given = b.scheds, .most_steps = UINT64_MAX};
    if (good)
        job_simulate(&o, &r);
    if (!good || r.failed)
        fprintf(
            stderr, "fishplate-lab sim replay: %s.%s\n", good || !b.why[0] ? r.failed : b.why,
            good
                ? " A record does not say which requests a call waited for: a program that waits for some of "
                  "those it has started cannot be replayed."
                : "");
    for (int i = 0; b.scheds && i < job->size; i++)
        sched_free(&b.scheds[i]);
    free(b.scheds);
    free(b.later);
    free(all);
    *messages = r.messages;
    return good && !r.failed ? r.us * 1e-6 : NAN;
}

static bool parse_value(void *options, const char *name, const char *value)
{
    struct options *o = options;
    long number;
    if (strcmp(name, "--machine") == 0)
        return sim_read_machine(&o->machine, value);
    if (strcmp(name, "--set") == 0)
        return machine_set_pair(&o->machine, value);
    if (strcmp(name, "--from") == 0) {
        o->has_from = true;
        return strcmp(value, "here") == 0 ? sim_fit_here(&o->from) : sim_read_machine(&o->from, value);
    }
    if (strcmp(name, "--per-node") == 0 && number_parse_integer(value, 1, 4096, &number)) {
        o->per_node = (int)number;
        return true;
    }
    return strcmp(name, "--compute") == 0 && number_parse_real(value, 0, 1000, &o->compute);
}

static bool parse_record(void *options, const char *text)
{
    struct options *o = options;
    if (text[0] == '-' || o->record)
        return false;
    o->record = text;
    return true;
}

static int replay_parse(struct options *o, int argc, char **argv)
{
    *o = (struct options){.machine = machine_preset, .from = machine_preset, .per_node = 1, .compute = 1};
    const struct sim_command c = {"sim replay", o, &o->help, &o->json, parse_record, parse_value, NULL};
    int status = sim_parse(&c, argc, argv);
    if (status)
        return status;
    return o->record || o->help ? 0 : sim_report_misuse("sim replay", "is missing", "RECORD");
}

static int replay_run(const struct options *o, const struct prof_job *job)
{
    struct json j = {.out = stdout};
    uint64_t messages = 0, ignored;
    double recorded = record_duration_seconds(job), there = NAN, back = NAN;
    if (job->nevents == 0 || job->dropped) {
        fprintf(stderr,
                "fishplate-lab sim replay: the record has %s; record with --timeline and a large enough "
                "FISHPLATE_PROF_TIMELINE.\n",
                job->nevents ? "lost some calls" : "no calls");
        return 1;
    }
    if (o->has_from)
        back = replay_simulate_record(job, &o->from, o->per_node, 1, &ignored);
    there = replay_simulate_record(job, &o->machine, o->per_node, o->compute, &messages);
    if (isnan(there) || (o->has_from && isnan(back)))
        return 1;
    if (o->json) {
        json_object(&j, NULL);
        json_string(&j, "program", "fishplate-lab sim replay");
        json_string(&j, "carrier", "simulated");
        json_int(&j, "ranks", job->size);
        json_int(&j, "messages", (long long)messages);
        json_real(&j, "recorded_s", recorded);
        json_real(&j, "replayed_s", there);
        if (o->has_from)
            json_real(&j, "own_machine_s", back);
        json_end(&j);
        putchar('\n');
        return 0;
    }
    printf("fishplate-lab sim replay: %d ranks, %zu calls, %llu messages (simulated)\n\n", job->size,
           job->nevents, (unsigned long long)messages);
    printf("  recorded                          %12.6f s\n", recorded);
    if (o->has_from)
        printf("  replayed on the machine it is from %11.6f s   error %+.1f %%\n", back,
               100 * (back / recorded - 1));
    printf("  replayed on the machine given      %11.6f s   %.2f times as fast\n", there, recorded / there);
    return 0;
}

int command_sim_replay(int argc, char **argv)
{
    struct options o;
    struct prof_job *jobs = NULL;
    int status = replay_parse(&o, argc, argv);
    if (status)
        return status;
    if (o.help) {
        cli_print_page(usage_text, stdout);
        return 0;
    }
    if (!prof_read_file(o.record, &jobs) || !jobs)
        return 1;
    prof_job_sum_up(jobs);
    status = replay_run(&o, jobs);
    prof_jobs_free(jobs);
    return status;
}
