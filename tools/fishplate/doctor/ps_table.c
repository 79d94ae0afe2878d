/* ps_table.c: prints the tables of `fishplate ps`, as text and as JSON.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/json.h"
#include "base/util.h"
#include "ps.h"
#include "why.h"
#include "words.h"

static const char *table_rank_state(const struct sample *s, const struct sample *before)
{
    if (s->state == 'T' || s->state == 't')
        return "stopped";
    if (s->state == 'Z')
        return "ended";
    if (s->page.life == PAGE_FINALIZED)
        return "finished";
    if (page_first_wait(&s->page))
        return "waits";
    return s->state != 'R' && before && before != s && before->cpu_ns == s->cpu_ns ? "asleep" : "runs";
}

static double rate_per_second(uint64_t now, uint64_t before, uint64_t ns)
{
    return ns > 0 && now > before ? (double)(now - before) * 1e9 / (double)ns : 0;
}

struct rates {
    double messages, bytes, cpu;
};

/* Computes the rates of a rank. Message counts are as old as `ticked`, the last update of its page. */
static struct rates table_rank_rates(const struct sample *s, const struct sample *before)
{
    if (!before || before == s)
        return (struct rates){0};
    const uint64_t ticks = s->page.ticked - before->page.ticked;
    return (struct rates){.messages = rate_per_second(s->page.messages, before->page.messages, ticks),
                          .bytes = rate_per_second(s->page.bytes, before->page.bytes, ticks),
                          .cpu = rate_per_second(s->cpu_ns, before->cpu_ns, s->now - before->now) * 1e-9};
}

/* Prints a number with at most four digits before a decimal unit: "1234", "12.3k", "4.5M". */
static void table_print_number(FILE *out, double value)
{
    static const char units[] = " kMGT";
    size_t u = 0;
    while (value >= 9999.5 && u + 2 < sizeof(units)) {
        value /= 1000;
        u++;
    }
    if (u == 0)
        fprintf(out, "%6.0f ", value);
    else
        fprintf(out, "%6.1f%c", value, units[u]);
}

static void rank_line(FILE *out, const struct sample *s, const struct sample *before)
{
    const struct page_wait *wait = page_first_wait(&s->page);
    const struct rates rate = table_rank_rates(s, before);
    fprintf(out, "%5u  %-12.12s %-8s ", s->page.rank, s->page.host, table_rank_state(s, before));
    fprintf(out, "%4.0f%% ", 100 * rate.cpu);
    table_print_number(out, (double)s->memory);
    table_print_number(out, rate.messages);
    table_print_number(out, rate.bytes);
    fprintf(out, "%5u  ", s->page.nunexpected);
    if (wait) {
        words_print_wait(out, wait, -1);
        fprintf(out, " for ");
        words_print_time(out, s->now > wait->since ? s->now - wait->since : 0);
    } else if (s->page.nlinks > 0) {
        fprintf(out, "sends by %.28s", s->page.links[0].how);
    }
    fprintf(out, "\n");
}

/* Returns the number of sampled hosts. It is fast if the ranks of a host are consecutive. */
static uint32_t table_count_hosts(const struct snapshot *l)
{
    const char **names = calloc(l->ranks, sizeof(*names)), *last = "";
    uint32_t n = 0;
    for (uint32_t r = 0; names && r < l->ranks; r++) {
        const char *host = l->samples[r] ? l->samples[r]->page.host : last;
        uint32_t i = 0;
        if (strcmp(host, last) == 0)
            continue;
        last = host;
        while (i < n && strcmp(names[i], host) != 0)
            i++;
        if (i == n)
            names[n++] = host;
    }
    free(names);
    return n;
}

/* Prints the ranks that have not entered a collective call in which others wait, and the longest wait. */
static void table_print_late_ranks(FILE *out, const struct snapshot *now, const struct snapshot *before)
{
    struct diagnosis a;
    const bool known = diagnosis_make(before, now, 0, &a);
    for (size_t i = 0; known && i < a.why.nmeetings; i++) {
        const struct why_meeting *m = &a.why.meetings[i];
        uint64_t longest = 0;
        if (m->unknown || m->nmissing == 0)
            continue;
        for (uint32_t k = 0; k < m->nwaiting; k++)
            longest = MAX(longest, a.waited_ns[m->waiting[k]]);
        fprintf(out, "Late: ");
        words_print_ranks(out, m->missing, m->nmissing);
        fprintf(out, " for %s on %s; ", m->wait->call, m->group ? m->group->label : "a communicator");
        words_print_ranks(out, m->waiting, m->nwaiting);
        fprintf(out, " %s, the first for ", m->nwaiting == 1 ? "waits" : "wait");
        words_print_time(out, longest);
        fprintf(out, "\n");
    }
    diagnosis_free(&a);
}

/* Program, user and age of a rank on this machine; "-" if all ranks are on other hosts. */
struct owner {
    char pid[16], user[33], age[24], program[64];
};

static void format_age(long seconds, char *out, size_t size)
{
    if (seconds < 3600)
        snprintf(out, size, "%ld:%02ld", seconds / 60, seconds % 60);
    else if (seconds < 86400)
        snprintf(out, size, "%ld:%02ld h", seconds / 3600, seconds / 60 % 60);
    else
        snprintf(out, size, "%ld d %ld h", seconds / 86400, seconds / 3600 % 24);
}

static void describe_owner(const struct sample *s, struct owner *out)
{
    char path[64];
    struct stat status;
    struct timespec now;
    snprintf(out->pid, sizeof(out->pid), "%d", s->pid);
    snprintf(path, sizeof(path), "/proc/%d/comm", s->pid);
    FILE *comm = fopen(path, "re");
    if (comm && fgets(out->program, sizeof(out->program), comm)) {
        out->program[strcspn(out->program, "\n")] = '\0';
        sample_sanitise_text(out->program, sizeof(out->program)); /* a process can choose any name */
    }
    if (comm)
        fclose(comm);
    snprintf(path, sizeof(path), "/proc/%d", s->pid);
    if (stat(path, &status) != 0)
        return;
    const struct passwd *user = getpwuid(status.st_uid);
    if (user)
        snprintf(out->user, sizeof(out->user), "%.32s", user->pw_name);
    else
        snprintf(out->user, sizeof(out->user), "%u", (unsigned)status.st_uid);
    clock_gettime(CLOCK_BOOTTIME, &now);
    const double started = process_started(s->pid);
    const double age = (double)now.tv_sec + (double)now.tv_nsec * 1e-9 - started;
    if (started >= 0)
        format_age(age > 0 ? (long)age : 0, out->age, sizeof(out->age));
}

static struct owner table_find_owner(const struct snapshot *l)
{
    struct owner out = {"-", "-", "-", "-"};
    for (uint32_t r = 0; r < l->ranks; r++)
        if (l->samples[r] && !l->samples[r]->away) {
            describe_owner(l->samples[r], &out);
            break;
        }
    return out;
}

void ps_job(FILE *out, const struct snapshot *now, const struct snapshot *before, int lines)
{
    uint32_t shown = 0;
    const uint32_t most = lines > 7 ? (uint32_t)lines - 6 : now->ranks;
    fprintf(out, "Job %s: %u rank%s", now->job, now->ranks, now->ranks == 1 ? "" : "s");
    if (now->seen < now->ranks)
        fprintf(out, ", of which %u are seen", now->seen);
    fprintf(out, " on %u host%s", table_count_hosts(now), table_count_hosts(now) == 1 ? "" : "s");
    const struct owner owner = table_find_owner(now);
    if (owner.pid[0] != '-')
        fprintf(out, ": %s of user %s, since %s", owner.program, owner.user, owner.age);
    fprintf(out, "\n\n");
    fprintf(out, " rank  host         state      cpu memory  msg/s  byte/s early  what\n");
    for (uint32_t r = 0; r < now->ranks; r++) {
        if (!now->samples[r])
            continue;
        if (shown++ < most)
            rank_line(out, now->samples[r], before->samples[r]);
    }
    if (shown > most)
        fprintf(out, "... and %u more ranks\n", shown - most);
    table_print_late_ranks(out, now, before);
    ps_links(out, now);
}

void ps_jobs(FILE *out, const struct snapshots *now)
{
    fprintf(out, "%-28s %6s %6s %6s %8s %8s %-8s %8s  %-16s %s\n", "job", "ranks", "seen", "hosts", "waiting",
            "pid", "user", "age", "program", "started by");
    for (size_t i = 0; i < now->count; i++) {
        const struct snapshot *l = &now->jobs[i];
        const char *launcher = "";
        uint32_t waiting = 0;
        for (uint32_t r = 0; r < l->ranks; r++) {
            if (!l->samples[r])
                continue;
            waiting += page_first_wait(&l->samples[r]->page) != NULL;
            launcher = l->samples[r]->page.launcher;
        }
        const struct owner owner = table_find_owner(l);
        fprintf(out, "%-28s %6u %6u %6u %8u %8s %-8s %8s  %-16s %s\n", l->job, l->ranks, l->seen,
                table_count_hosts(l), waiting, owner.pid, owner.user, owner.age, owner.program, launcher);
    }
    if (now->is_incomplete)
        fprintf(out, "\nThe pages of other users take more than %d MiB; some of their ranks are not shown.\n",
                FOREIGN_MAX >> 20);
    fprintf(out, "\n`fishplate ps JOB` shows its ranks, `fishplate why JOB` what they wait for.\n");
}

static void json_rank(struct json *j, const struct sample *s, const struct sample *before)
{
    const struct page_wait *wait = page_first_wait(&s->page);
    const struct rates rate = table_rank_rates(s, before);
    json_object(j, NULL);
    json_members(j, "rank=%d pid=%d host=%s state=%s memory=%lld cpu_seconds=%g", s->page.rank, s->pid,
                 s->page.host, table_rank_state(s, before), (long long)s->memory, (double)s->cpu_ns * 1e-9);
    json_members(j,
                 "messages=%lld bytes=%lld messages_per_second=%g bytes_per_second=%g counted_seconds_ago=%g "
                 "unexpected=%d",
                 (long long)s->page.messages, (long long)s->page.bytes, rate.messages, rate.bytes,
                 s->page.ticked && s->now > s->page.ticked ? (double)(s->now - s->page.ticked) * 1e-9 : 0,
                 s->page.nunexpected);
    json_members(j, "posted=%d peers=%d links_known=%d waited_seconds=%g", s->page.nposted, s->page.npeers,
                 s->page.paces_known, (double)s->page.waited_ns * 1e-9);
    if (wait) {
        json_members(j, "call=%s seconds=%g", wait->call,
                     s->now > wait->since ? (double)(s->now - wait->since) * 1e-9 : 0);
    }
    json_array(j, "links");
    for (uint32_t i = 0; i < s->page.nlinks; i++) {
        json_record(j, NULL, "peer=%d messages=%lld bytes=%lld how=%s", s->page.links[i].peer,
                    (long long)s->page.links[i].messages, (long long)s->page.links[i].bytes,
                    s->page.links[i].how);
    }
    json_end(j);
    json_end(j);
}

void ps_json(FILE *out, const struct snapshots *now, const struct snapshots *before)
{
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_array(&j, "jobs");
    for (size_t i = 0; i < now->count; i++) {
        const struct snapshot *l = &now->jobs[i], *earlier = snapshots_find_same(before, l);
        json_object(&j, NULL);
        json_members(&j, "job=%s size=%d seen=%d", l->job, l->ranks, l->seen);
        ps_links_json(&j, l);
        json_array(&j, "ranks");
        for (uint32_t r = 0; r < l->ranks; r++)
            if (l->samples[r])
                json_rank(&j, l->samples[r], earlier ? earlier->samples[r] : NULL);
        json_end(&j);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    fputc('\n', out);
}
