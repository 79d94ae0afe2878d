/* prof_json.c: writes the report as JSON, and as a web page that renders the JSON. Times are in seconds, shares in percent.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/json.h"
#include "prof.h"
#include "web_page.h"

static const char page_script[] =
#include "prof_page.js.inc"
    ;

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
        json_members(j, "name=%s kind=%s", f->name, prof_kind_words[f->kind]);
        json_bool(j, "nonblocking", f->nonblocking);
        json_bool(j, "startup", f->startup);
        json_members(j, "calls=%lld min=%g mean=%g max=%g slowest_rank=%d imbalance=%g",
                     (long long)f->all.calls, f->min, f->mean, f->max, f->slowest, prof_imbalance(f));
        json_members(j, "longest_call=%g operations=%lld bytes=%lld mean_size=%g",
                     (double)f->all.ns_max * 1e-9, (long long)f->all.sized, (long long)f->all.bytes,
                     json_mean(f->all.bytes, f->all.sized));
        if (f->split) {
            json_members(j, "waiting=%g moving=%g late_rank=%d late_percent=%g", f->waiting, f->moving,
                         f->late, 100 * f->late_share);
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
    json_members(j, "count=%lld bytes=%lld", (long long)c->all, (long long)c->bytes);
    json_array(j, "by_power_of_two");
    for (int b = 0; b < PROF_BINS; b++) {
        if (!bins[b].count)
            continue;
        json_record(j, NULL, "from=%lld count=%lld bytes=%lld", b ? 1ll << (b - 1) : 0,
                    (long long)bins[b].count, (long long)bins[b].bytes);
    }
    json_end(j);
    json_end(j);
}

/* Writes the operations of a rank by function; calls to MPI_PROC_NULL are not operations. */
static void put_rank_calls(struct json *j, const struct prof_job *job, int rank)
{
    json_object(j, "operations");
    for (size_t i = 0; i < job->nfunctions; i++) {
        const struct prof_stat *s = &job->functions[i].ranks[rank];
        if (s->sized == 0)
            continue;
        json_object(j, job->functions[i].name);
        json_members(j, "count=%lld bytes=%lld", (long long)s->sized, (long long)s->bytes);
        json_end(j);
    }
    json_end(j);
}

static void put_ranks(struct json *j, const struct prof_job *job)
{
    json_array(j, "ranks");
    for (int r = 0; r < job->size; r++) {
        const struct prof_rank *rank = &job->ranks[r];
        if (!rank->has_record)
            continue;
        json_object(j, NULL);
        json_members(j, "rank=%d host=%s recorded=%g mpi=%g", r, rank->host, rank->on, rank->mpi);
        json_object(j, "kinds");
        for (int k = 0; k < PROF_KINDS; k++)
            json_real(j, prof_kind_words[k], rank->kinds[k]);
        json_end(j);
        json_members(j, "messages=%lld bytes=%lld", (long long)rank->messages, (long long)rank->bytes);
        const struct prof_classes moved = prof_classify(rank->moved);
        put_sizes(j, "sent_and_received", &moved, rank->moved);
        put_rank_calls(j, job, r);
        json_end(j);
    }
    json_end(j);
}

static void put_peers(struct json *j, const struct prof_job *job)
{
    json_record(j, "within_node", "messages=%lld bytes=%lld messages_percent=%g bytes_percent=%g",
                (long long)job->within.messages, (long long)job->within.bytes,
                prof_compute_percent((double)job->within.messages, (double)job->sent.messages),
                prof_compute_percent((double)job->within.bytes, (double)job->sent.bytes));
    json_record(j, "outside", "messages=%lld bytes=%lld", (long long)job->outside.messages,
                (long long)job->outside.bytes);
    json_array(j, "peers");
    for (size_t i = 0; i < job->npairs; i++) {
        const struct prof_pair *p = &job->pairs[i];
        json_record(j, NULL, "from=%d to=%d messages=%lld bytes=%lld", p->from, p->to, (long long)p->messages,
                    (long long)p->bytes);
    }
    json_end(j);
}

static void put_carried(struct json *j, const struct prof_job *job)
{
    json_array(j, "carried"); /* messages that the library sent, including those of collectives */
    for (size_t i = 0; i < job->ncarried; i++) {
        json_record(j, NULL, "from=%d to=%d messages=%lld bytes=%lld", job->carried[i].from,
                    job->carried[i].to, (long long)job->carried[i].messages,
                    (long long)job->carried[i].bytes);
    }
    json_end(j);
}

static void put_run(struct json *j, const struct prof_job *job)
{
    struct prof_verdict v;
    char text[1024], date[PROF_TEXT_LONG];
    json_members(j, "date=%s library=%s adapter=%s", prof_format_date(job, date), job->library, job->adapter);
    json_array(j, "settings");
    for (size_t i = 0; i < job->nsettings; i++)
        json_string(j, NULL, job->settings[i]);
    json_end(j);
    prof_describe_missing_data(job, text, sizeof(text));
    json_string(j, "incomplete", text);
    prof_judge(job, &v);
    json_array(j, "verdict");
    for (int i = 0; i < v.n; i++) {
        json_record(j, NULL, "finding=%s seconds=%g", v.list[i].text, v.list[i].seconds);
    }
    json_end(j);
}

static void put_memory(struct json *j, const struct prof_job *job)
{
    json_record(j, "buffer_bytes", "host=%lld managed=%lld gpu=%lld", (long long)job->memory[0],
                (long long)job->memory[1], (long long)job->memory[2]);
}

static void put_reuse(struct json *j, const struct prof_reuse *u)
{
    json_object(j, "buffer_reuse");
    json_members(j, "accesses=%lld reused=%lld bytes=%lld reused_bytes=%lld percent=%g weighted_percent=%g",
                 (long long)u->accesses, (long long)u->reused, (long long)u->bytes,
                 (long long)u->reused_bytes, prof_compute_percent((double)u->reused, (double)u->accesses),
                 prof_compute_percent((double)u->reused_bytes, (double)u->bytes));
    json_int(j, "dropped", (long long)u->dropped);
    json_end(j);
}

void prof_write_json(const struct prof_job *job, FILE *out)
{
    const struct prof_classes *p = &job->p2p_classes, *c = &job->coll_classes;
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_members(&j, "program=%s command=%s size=%d records=%d nodes=%d", job->program,
                 job->command ? job->command : "", job->size, job->nrecords, job->nodes);
    json_bool(&j, "threaded", job->threaded);
    json_members(&j, "recorded=%g mpi=%g mpi_percent=%g", job->on, job->mpi,
                 prof_compute_percent(job->mpi, job->on));
    put_run(&j, job);
    put_functions(&j, job);
    put_sizes(&j, "point_to_point", p, job->p2p);
    put_sizes(&j, "collective", c, job->coll);
    json_record(&j, "collective_share", "calls_percent=%g bytes_percent=%g time_percent=%g",
                prof_compute_percent((double)c->all, (double)(p->all + c->all)),
                prof_compute_percent((double)c->bytes, (double)(p->bytes + c->bytes)),
                prof_compute_percent(job->kinds[PROF_COLL], job->mpi));
    put_memory(&j, job);
    put_reuse(&j, &job->reuse);
    put_peers(&j, job);
    put_carried(&j, job);
    prof_json_links(&j, job);
    prof_json_sites(&j, job);
    put_ranks(&j, job);
    json_end(&j);
}

void prof_write_html(const struct prof_job *job, FILE *out)
{
    web_page_begin(out);
    prof_write_json(job, out);
    web_page_end(out, page_script);
}
