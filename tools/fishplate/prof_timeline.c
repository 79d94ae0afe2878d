/* prof_timeline.c: writes the calls of all ranks as a trace for Perfetto and Chrome: a process for each host,
 * a track for each thread of a rank. Format: "Trace Event Format", complete events, microseconds.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "prof.h"

enum { THREADS = 64 }; /* tracks per rank, one for each thread */

/* Parses `timeline WALL_NS DROPPED`. */
bool prof_timeline_read(struct prof_job *job, struct prof_rank *rank, const char *rest)
{
    uint64_t dropped;
    if (sscanf(rest, "%" SCNd64 " %" SCNu64, &rank->wall_ns, &dropped) != 2 || rank->wall_ns < 0)
        return false;
    job->dropped += dropped;
    return true;
}

/* Parses `event NAME START_NS NS THREAD`, and ` TO FROM BYTES_OUT BYTES_IN` if the call moves data. */
bool prof_event_read(struct prof_event *out, const char *rest, char name[64])
{
    const int64_t most = (int64_t)1 << 60;
    int words = sscanf(rest, "%63s %" SCNu64 " %" SCNu64 " %d %d %d %" SCNd64 " %" SCNd64, name, &out->start,
                       &out->ns, &out->thread, &out->to, &out->from, &out->out, &out->in);
    out->moved = words == 8;
    if (out->moved && (out->out < -1 || out->out > most || out->in < -1 || out->in > most))
        return false;
    return (words == 4 || words == 8) && out->thread >= 1 && out->start < (uint64_t)most &&
           out->ns < (uint64_t)most;
}

static int64_t find_earliest_start(const struct prof_job *job)
{
    int64_t first = INT64_MAX;
    for (int r = 0; r < job->size; r++)
        if (job->ranks[r].has_record && job->ranks[r].wall_ns > 0 && job->ranks[r].wall_ns < first)
            first = job->ranks[r].wall_ns;
    return first == INT64_MAX ? 0 : first;
}

/* Numbers tracks from 1: to Perfetto, thread 0 is the idle thread of a processor. */
static int timeline_track_number(int rank, int thread)
{
    return rank * THREADS + (thread - 1) % THREADS + 1;
}

/* Writes a metadata event: the name or the position of a process or track. */
static void timeline_name_track(struct json *j, const char *what, int pid, int tid, const char *key,
                                const char *text, int number)
{
    json_object(j, NULL);
    json_members(j, "name=%s ph=%s pid=%d", what, "M", pid);
    if (tid >= 0)
        json_int(j, "tid", tid);
    json_object(j, "args");
    if (text)
        json_string(j, key, text);
    else
        json_int(j, key, number);
    json_end(j);
    json_end(j);
}

static void name_tracks(struct json *j, const struct prof_job *job)
{
    char text[300];
    for (int r = 0; r < job->size; r++) {
        const struct prof_rank *rank = &job->ranks[r];
        if (!rank->has_record)
            continue;
        if (rank->node == r)
            timeline_name_track(j, "process_name", r + 1, -1, "name", rank->host, 0);
        snprintf(text, sizeof(text), "rank %d", r);
        timeline_name_track(j, "thread_name", rank->node + 1, timeline_track_number(r, 1), "name", text, 0);
        timeline_name_track(j, "thread_sort_index", rank->node + 1, timeline_track_number(r, 1), "sort_index",
                            NULL, r);
    }
}

void prof_write_timeline(const struct prof_job *job, FILE *out)
{
    struct json j = {.out = out};
    const int64_t first = find_earliest_start(job);
    const struct prof_function **by_id = calloc(job->nfunctions + 1, sizeof(*by_id));
    if (!by_id)
        return;
    for (size_t i = 0; i < job->nfunctions; i++)
        by_id[job->functions[i].id] = &job->functions[i];
    json_object(&j, NULL);
    json_string(&j, "displayTimeUnit", "ms");
    json_array(&j, "traceEvents");
    name_tracks(&j, job);
    for (size_t i = 0; i < job->nevents; i++) {
        const struct prof_event *e = &job->events[i];
        const struct prof_rank *rank = &job->ranks[e->rank];
        const struct prof_function *f = by_id[e->function];
        json_object(&j, NULL);
        json_members(&j, "name=%s cat=%s ph=%s", f->name, prof_kind_words[f->kind], "X");
        json_thousandths(&j, "ts", rank->wall_ns - first + (int64_t)e->start);
        json_thousandths(&j, "dur", (int64_t)e->ns);
        json_members(&j, "pid=%d tid=%d", rank->node + 1, timeline_track_number(e->rank, e->thread));
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    fputc('\n', out);
    free(by_id);
}
