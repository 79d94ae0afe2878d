/* prof_json.c: the report for programs. Times are in seconds, shares in percent.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/json.h"
#include "prof.h"

static double json_mean(uint64_t bytes, uint64_t count)
{
    return count ? (double)bytes / (double)count : 0;
}

static void put_functions(struct json *j, const struct prof_job *job)
{
    json_array(j, "functions");
    for (size_t i = 0; i < job->nfunctions; i++) {
        const struct prof_function *f = &job->functions[i];
        json_object(j, NULL);
        json_string(j, "name", f->name);
        json_string(j, "kind", prof_kind_words[f->kind]);
        json_bool(j, "nonblocking", f->nonblocking);
        json_int(j, "calls", (long long)f->all.calls);
        json_real(j, "min", f->min);
        json_real(j, "mean", f->mean);
        json_real(j, "max", f->max);
        json_int(j, "slowest_rank", f->slowest);
        json_real(j, "imbalance", prof_imbalance(f));
        json_real(j, "longest_call", (double)f->all.ns_max * 1e-9);
        json_int(j, "operations", (long long)f->all.sized);
        json_int(j, "bytes", (long long)f->all.bytes);
        json_real(j, "mean_size", json_mean(f->all.bytes, f->all.sized));
        if (f->split) {
            json_real(j, "waiting", f->waiting);
            json_real(j, "moving", f->moving);
            json_int(j, "late_rank", f->late);
            json_real(j, "late_percent", 100 * f->late_share);
        }
        json_end(j);
    }
    json_end(j);
}

static void put_sizes(struct json *j, const char *key, const struct prof_classes *c,
                      const struct prof_bin *bins)
{
    static const char *const names[4] = {"below_2k", "2k_to_16k", "16k_to_1m", "from_1m"};
    json_object(j, key);
    for (int i = 0; i < 4; i++)
        json_int(j, names[i], (long long)c->count[i]);
    json_int(j, "count", (long long)c->all);
    json_int(j, "bytes", (long long)c->bytes);
    json_array(j, "by_power_of_two");
    for (int b = 0; b < PROF_BINS; b++) {
        if (!bins[b].count)
            continue;
        json_object(j, NULL);
        json_int(j, "from", b ? 1ll << (b - 1) : 0);
        json_int(j, "count", (long long)bins[b].count);
        json_int(j, "bytes", (long long)bins[b].bytes);
        json_end(j);
    }
    json_end(j);
    json_end(j);
}

/* Calls that start or do an operation: none of a missing peer (MPI_PROC_NULL). */
static void put_rank_calls(struct json *j, const struct prof_job *job, int rank)
{
    json_object(j, "operations");
    for (size_t i = 0; i < job->nfunctions; i++) {
        const struct prof_stat *s = &job->functions[i].ranks[rank];
        if (s->sized == 0)
            continue;
        json_object(j, job->functions[i].name);
        json_int(j, "count", (long long)s->sized);
        json_int(j, "bytes", (long long)s->bytes);
        json_end(j);
    }
    json_end(j);
}

static void put_ranks(struct json *j, const struct prof_job *job)
{
    json_array(j, "ranks");
    for (int r = 0; r < job->size; r++) {
        const struct prof_rank *rank = &job->ranks[r];
        if (!rank->there)
            continue;
        json_object(j, NULL);
        json_int(j, "rank", r);
        json_string(j, "host", rank->host);
        json_real(j, "recorded", rank->on);
        json_real(j, "mpi", rank->mpi);
        json_object(j, "kinds");
        for (int k = 0; k < PROF_KINDS; k++)
            json_real(j, prof_kind_words[k], rank->kinds[k]);
        json_end(j);
        json_int(j, "messages", (long long)rank->messages);
        json_int(j, "bytes", (long long)rank->bytes);
        const struct prof_classes moved = prof_classify(rank->moved);
        put_sizes(j, "sent_and_received", &moved, rank->moved);
        put_rank_calls(j, job, r);
        json_end(j);
    }
    json_end(j);
}

static void put_peers(struct json *j, const struct prof_job *job)
{
    json_object(j, "within_node");
    json_int(j, "messages", (long long)job->within.messages);
    json_int(j, "bytes", (long long)job->within.bytes);
    json_real(j, "messages_percent", prof_share((double)job->within.messages, (double)job->sent.messages));
    json_real(j, "bytes_percent", prof_share((double)job->within.bytes, (double)job->sent.bytes));
    json_end(j);
    json_object(j, "outside");
    json_int(j, "messages", (long long)job->outside.messages);
    json_int(j, "bytes", (long long)job->outside.bytes);
    json_end(j);
    json_array(j, "peers");
    for (size_t i = 0; i < job->npairs; i++) {
        const struct prof_pair *p = &job->pairs[i];
        json_object(j, NULL);
        json_int(j, "from", p->from);
        json_int(j, "to", p->to);
        json_int(j, "messages", (long long)p->messages);
        json_int(j, "bytes", (long long)p->bytes);
        json_end(j);
    }
    json_end(j);
}

static void put_carried(struct json *j, const struct prof_job *job)
{
    json_array(j, "carried"); /* by the library, collectives among it */
    for (size_t i = 0; i < job->ncarried; i++) {
        json_object(j, NULL);
        json_int(j, "from", job->carried[i].from);
        json_int(j, "to", job->carried[i].to);
        json_int(j, "messages", (long long)job->carried[i].messages);
        json_int(j, "bytes", (long long)job->carried[i].bytes);
        json_end(j);
    }
    json_end(j);
}

static void put_run(struct json *j, const struct prof_job *job)
{
    struct prof_verdict v;
    char text[1024], date[PROF_TEXT_LONG];
    json_string(j, "date", prof_date(job, date));
    json_string(j, "library", job->library);
    json_string(j, "adapter", job->adapter);
    json_array(j, "settings");
    for (size_t i = 0; i < job->nsettings; i++)
        json_string(j, NULL, job->settings[i]);
    json_end(j);
    prof_missing(job, text, sizeof(text));
    json_string(j, "incomplete", text);
    prof_judge(job, &v);
    json_array(j, "verdict");
    for (int i = 0; i < v.n; i++) {
        json_object(j, NULL);
        json_string(j, "finding", v.list[i].text);
        json_real(j, "seconds", v.list[i].seconds);
        json_end(j);
    }
    json_end(j);
}

static void put_memory(struct json *j, const struct prof_job *job)
{
    json_object(j, "buffer_bytes");
    json_int(j, "host", (long long)job->memory[0]);
    json_int(j, "managed", (long long)job->memory[1]);
    json_int(j, "gpu", (long long)job->memory[2]);
    json_end(j);
}

static void put_reuse(struct json *j, const struct prof_reuse *u)
{
    json_object(j, "buffer_reuse");
    json_int(j, "accesses", (long long)u->accesses);
    json_int(j, "reused", (long long)u->reused);
    json_int(j, "bytes", (long long)u->bytes);
    json_int(j, "reused_bytes", (long long)u->reused_bytes);
    json_real(j, "percent", prof_share((double)u->reused, (double)u->accesses));
    json_real(j, "weighted_percent", prof_share((double)u->reused_bytes, (double)u->bytes));
    json_int(j, "dropped", (long long)u->dropped);
    json_end(j);
}

void prof_write_json(const struct prof_job *job, FILE *out)
{
    const struct prof_classes *p = &job->p2p_classes, *c = &job->coll_classes;
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_string(&j, "program", job->program);
    json_string(&j, "command", job->command ? job->command : "");
    json_int(&j, "size", job->size);
    json_int(&j, "records", job->there);
    json_int(&j, "nodes", job->nodes);
    json_bool(&j, "threaded", job->threaded);
    json_real(&j, "recorded", job->on);
    json_real(&j, "mpi", job->mpi);
    json_real(&j, "mpi_percent", prof_share(job->mpi, job->on));
    put_run(&j, job);
    put_functions(&j, job);
    put_sizes(&j, "point_to_point", p, job->p2p);
    put_sizes(&j, "collective", c, job->coll);
    json_object(&j, "collective_share");
    json_real(&j, "calls_percent", prof_share((double)c->all, (double)(p->all + c->all)));
    json_real(&j, "bytes_percent", prof_share((double)c->bytes, (double)(p->bytes + c->bytes)));
    json_real(&j, "time_percent", prof_share(job->kinds[PROF_COLL], job->mpi));
    json_end(&j);
    put_memory(&j, job);
    put_reuse(&j, &job->reuse);
    put_peers(&j, job);
    put_carried(&j, job);
    prof_json_links(&j, job);
    prof_json_sites(&j, job);
    put_ranks(&j, job);
    json_end(&j);
}
