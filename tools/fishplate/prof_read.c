/* prof_read.c: parses records written by tools/prof and sums them up by job.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "prof.h"

/* Limits of the numbers in a record: a short invalid record must not cause huge allocations. CELLS_MAX:
 * functions times ranks of a job. */
enum {
    RANKS_MAX = 1 << 20,
    JOBS_MAX = 1024,
    FUNCTIONS_MAX = 2048,
    SETTINGS_MAX = 1024,
    CELLS_MAX = 1 << 26,
    EVENTS_MAX = 1 << 28
};

struct reader {
    const char *path;
    struct prof_job **jobs, *job;
    struct prof_rank *rank;
    char name[256];
    int number;  /* number of the rank */
    bool inside; /* inside a record: its end line has not been read */
};

static void *array_grow(void *array, size_t n, size_t size)
{
    if (n & (n - 1)) /* the capacity doubles when n is a power of two */
        return array;
    void *more = realloc(array, (n ? 2 * n : 1) * size);
    if (!more) {
        fprintf(stderr, "fishplate prof: out of memory.\n");
        exit(1);
    }
    return more;
}

static void *array_allocate(size_t n, size_t size)
{
    void *made = calloc(n + 1, size);
    if (!made) {
        fprintf(stderr, "fishplate prof: out of memory.\n");
        exit(1);
    }
    return made;
}

/* Handles `rank 2 4` (rank, size): finds or creates the job named by the preceding `job` line. */
static bool begin_rank(struct reader *r, const char *rest)
{
    int rank, size;
    if (sscanf(rest, "%d %d", &rank, &size) != 2 || size < 1 || size > RANKS_MAX || rank < 0 || rank >= size)
        return false;
    struct prof_job **at = r->jobs;
    int before = 0;
    for (; *at && strcmp((*at)->name, r->name) != 0; before++)
        at = &(*at)->next;
    if (before == JOBS_MAX)
        return false;
    if (!*at) {
        *at = array_allocate(1, sizeof(**at));
        snprintf((*at)->name, sizeof((*at)->name), "%s", r->name);
        (*at)->size = size;
        (*at)->ranks = array_allocate((size_t)size, sizeof(*(*at)->ranks));
    }
    r->job = *at;
    if (r->job->size != size || r->job->ranks[rank].has_record)
        return false;
    r->number = rank;
    r->rank = &r->job->ranks[rank];
    r->rank->has_record = true;
    r->job->nrecords++;
    return true;
}

/* Finds or adds a function; NULL if there are too many. */
static struct prof_function *read_find_function(struct prof_job *job, const char *name)
{
    for (size_t i = 0; i < job->nfunctions; i++)
        if (strcmp(job->functions[i].name, name) == 0)
            return &job->functions[i];
    if (job->nfunctions == FUNCTIONS_MAX || (job->nfunctions + 1) * (size_t)job->size > CELLS_MAX)
        return NULL;
    job->functions = array_grow(job->functions, job->nfunctions, sizeof(*job->functions));
    struct prof_function *f = &job->functions[job->nfunctions++];
    memset(f, 0, sizeof(*f));
    f->id = (int)job->nfunctions - 1;
    snprintf(f->name, sizeof(f->name), "%s", name);
    f->ranks = array_allocate((size_t)job->size, sizeof(*f->ranks));
    f->waits = array_allocate((size_t)job->size, sizeof(*f->waits));
    f->startup = strcmp(name, "MPI_Init") == 0 || strcmp(name, "MPI_Init_thread") == 0 ||
                 strcmp(name, "MPI_Finalize") == 0;
    return f;
}

static bool read_call(struct reader *r, const char *rest)
{
    char name[64], kind[16];
    int nonblocking, k = 0;
    struct prof_stat s;
    if (sscanf(rest, "%63s %15s %d %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, name, kind,
               &nonblocking, &s.calls, &s.ns, &s.ns_max, &s.sized, &s.bytes) != 8)
        return false;
    while (k < PROF_KINDS && strcmp(prof_kind_words[k], kind) != 0)
        k++;
    if (k == PROF_KINDS)
        return false;
    struct prof_function *f = read_find_function(r->job, name);
    if (!f)
        return false;
    f->kind = (enum prof_kind)k;
    f->nonblocking = nonblocking != 0;
    f->ranks[r->number] = s;
    return true;
}

static bool read_bin(struct prof_bin *bins, const char *rest)
{
    int bin;
    uint64_t count, bytes;
    if (sscanf(rest, "%d %" SCNu64 " %" SCNu64, &bin, &count, &bytes) != 3 || bin < 0 || bin >= PROF_BINS)
        return false;
    bins[bin].count += count;
    bins[bin].bytes += bytes;
    return true;
}

static bool read_pair(const struct reader *r, const char *rest, struct prof_pair **list, size_t *n,
                      struct prof_pair *out)
{
    struct prof_pair p = {.from = r->number};
    if (sscanf(rest, "%d %" SCNu64 " %" SCNu64, &p.to, &p.messages, &p.bytes) != 3 || p.to < 0 ||
        p.to >= r->job->size)
        return false;
    *list = array_grow(*list, *n, sizeof(**list));
    (*list)[(*n)++] = *out = p;
    return true;
}

static bool read_peer(struct reader *r, const char *rest)
{
    struct prof_pair p;
    if (!read_pair(r, rest, &r->job->pairs, &r->job->npairs, &p))
        return false;
    r->rank->messages += p.messages;
    r->rank->bytes += p.bytes;
    return true;
}

static bool read_waits(struct reader *r, const char *rest)
{
    char name[64];
    int used = 0;
    struct prof_function *f =
        sscanf(rest, "%63s%n", name, &used) == 1 ? read_find_function(r->job, name) : NULL;
    return f && prof_waits_read(&f->waits[r->number], rest + used);
}

static bool read_link(struct reader *r, const char *rest)
{
    struct prof_job *job = r->job;
    struct link_seen l;
    if (!prof_link_read(job, r->number, rest, &l))
        return false;
    if (l.messages == 0 || l.ns == 0 || l.bytes == 0)
        return true;
    job->links = array_grow(job->links, job->nlinks, sizeof(l));
    job->links[job->nlinks++] = l;
    return true;
}

static bool read_event(struct reader *r, const char *rest)
{
    char name[64];
    struct prof_event e = {.rank = r->number};
    if (!prof_event_read(&e, rest, name) || r->job->nevents == EVENTS_MAX)
        return false;
    const struct prof_function *f = read_find_function(r->job, name);
    if (!f)
        return false;
    e.function = f->id;
    r->job->events = array_grow(r->job->events, r->job->nevents, sizeof(e));
    r->job->events[r->job->nevents++] = e;
    return true;
}

static bool read_site(struct reader *r, const char *rest)
{
    char name[64];
    int used = 0;
    const struct prof_function *f =
        sscanf(rest, "%63s %n", name, &used) == 1 ? read_find_function(r->job, name) : NULL;
    return f && prof_site_read(r->job, f->id, rest + used);
}

static bool read_cut(struct prof_rank *rank, const char *rest)
{
    uint64_t ns;
    if (sscanf(rest, "%d %63s %" SCNu64, &rank->cut, rank->cut_in, &ns) != 3)
        return false;
    rank->cut_after = (double)ns * 1e-9;
    return true;
}

/* Reads a fact about the job; every rank reports it. */
static bool read_about(struct reader *r, const char *word, const char *rest)
{
    struct prof_job *job = r->job;
    if (strcmp(word, "date") == 0) {
        job->date = job->date ? job->date : atoll(rest);
    } else if (strcmp(word, "library") == 0) {
        snprintf(job->library, sizeof(job->library), "%s", rest);
    } else if (strcmp(word, "adapter") == 0) {
        snprintf(job->adapter, sizeof(job->adapter), "%s", rest);
    } else {
        for (size_t i = 0; i < job->nsettings; i++)
            if (strcmp(job->settings[i], rest) == 0)
                return true;
        if (job->nsettings == SETTINGS_MAX)
            return false;
        job->settings = array_grow(job->settings, job->nsettings, sizeof(*job->settings));
        job->settings[job->nsettings++] = strdup(rest);
    }
    return true;
}

static bool read_outside(struct prof_job *job, const char *rest)
{
    uint64_t messages, bytes;
    if (sscanf(rest, "%" SCNu64 " %" SCNu64, &messages, &bytes) != 2)
        return false;
    job->outside.messages += messages;
    job->outside.bytes += bytes;
    return true;
}

static bool read_reuse(struct prof_reuse *all, const char *rest)
{
    struct prof_reuse u;
    if (sscanf(rest, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &u.accesses, &u.reused,
               &u.bytes, &u.reused_bytes, &u.dropped) != 5)
        return false;
    all->accesses += u.accesses;
    all->reused += u.reused;
    all->bytes += u.bytes;
    all->reused_bytes += u.reused_bytes;
    all->dropped += u.dropped;
    return true;
}

static bool read_memory(struct prof_job *job, const char *rest)
{
    int kind;
    uint64_t bytes;
    if (sscanf(rest, "%d %" SCNu64, &kind, &bytes) != 2 || kind < 0 || kind >= PROF_MEMORY_KINDS)
        return false;
    job->memory[kind] += bytes;
    return true;
}

static bool read_time(struct prof_rank *rank, const char *rest)
{
    uint64_t on, mpi;
    int threaded;
    if (sscanf(rest, "%" SCNu64 " %" SCNu64 " %d", &on, &mpi, &threaded) != 3)
        return false;
    rank->on = (double)on * 1e-9;
    rank->mpi = (double)mpi * 1e-9;
    rank->threaded = threaded != 0;
    return true;
}

static bool read_line(struct reader *r, const char *word, const char *rest)
{
    if (strcmp(word, "record") == 0) {
        const bool cut = r->inside;
        r->rank = NULL;
        r->inside = true;
        return !cut && strcmp(rest, "1") == 0;
    }
    if (strcmp(word, "job") == 0)
        return snprintf(r->name, sizeof(r->name), "%s", rest) > 0;
    if (strcmp(word, "rank") == 0)
        return !r->rank && r->name[0] && begin_rank(r, rest);
    if (!r->rank)
        return false;
    if (strcmp(word, "host") == 0)
        return snprintf(r->rank->host, sizeof(r->rank->host), "%s", rest) >= 0;
    if (strcmp(word, "program") == 0)
        return snprintf(r->job->program, sizeof(r->job->program), "%s", rest) >= 0;
    if (strcmp(word, "time") == 0)
        return read_time(r->rank, rest);
    if (strcmp(word, "call") == 0)
        return read_call(r, rest);
    if (strcmp(word, "p2p") == 0)
        return read_bin(r->job->p2p, rest) && read_bin(r->rank->moved, rest);
    if (strcmp(word, "received") == 0)
        return read_bin(r->rank->moved, rest);
    if (strcmp(word, "coll") == 0)
        return read_bin(r->job->coll, rest) && read_bin(r->rank->moved, rest);
    if (strcmp(word, "peer") == 0)
        return read_peer(r, rest);
    if (strcmp(word, "outside") == 0)
        return read_outside(r->job, rest);
    if (strcmp(word, "memory") == 0)
        return read_memory(r->job, rest);
    if (strcmp(word, "reuse") == 0)
        return read_reuse(&r->job->reuse, rest);
    if (strcmp(word, "waits") == 0)
        return read_waits(r, rest);
    if (strcmp(word, "sent") == 0)
        return read_pair(r, rest, &r->job->carried, &r->job->ncarried, &(struct prof_pair){0});
    if (strcmp(word, "link") == 0)
        return read_link(r, rest);
    if (strcmp(word, "site") == 0)
        return read_site(r, rest);
    if (strcmp(word, "processors") == 0)
        return prof_processors_read(r->job, r->rank->host, rest);
    if (strcmp(word, "event") == 0)
        return read_event(r, rest);
    if (strcmp(word, "timeline") == 0)
        return prof_timeline_read(r->job, r->rank, rest);
    if (strcmp(word, "cut") == 0)
        return read_cut(r->rank, rest);
    if (strcmp(word, "date") == 0 || strcmp(word, "library") == 0 || strcmp(word, "adapter") == 0 ||
        strcmp(word, "setting") == 0)
        return read_about(r, word, rest);
    r->inside = false;
    return strcmp(word, "end") == 0;
}

bool prof_read_file(const char *path, struct prof_job **jobs)
{
    struct reader r = {.path = path, .jobs = jobs};
    char *line = NULL;
    size_t room_of_line = 0;
    ssize_t length;
    int number = 0;
    bool good = true;
    FILE *in = fopen(path, "r");
    if (!in) {
        fprintf(stderr, "fishplate prof: %s cannot be read: %s.\n", path, strerror(errno));
        return false;
    }
    while (good && (length = getline(&line, &room_of_line, in)) > 0) {
        number++;
        line[strcspn(line, "\n")] = '\0';
        char *rest = strchr(line, ' ');
        if (rest)
            *rest++ = '\0';
        good = read_line(&r, line, rest ? rest : "");
    }
    free(line);
    fclose(in);
    if (!good)
        fprintf(stderr,
                "fishplate prof: line %d of %s is not what the profiler of this version writes, or describes "
                "a rank twice, or more functions than a job calls. Give the files of one run.\n",
                number, path);
    else if (r.inside)
        fprintf(stderr,
                "fishplate prof: %s ends in the middle of a record: its process was killed while it wrote.\n",
                path);
    return good && !r.inside;
}

static void sum_up_function(struct prof_job *job, struct prof_function *f)
{
    f->min = -1;
    f->slowest = -1;
    for (int r = 0; r < job->size; r++) {
        if (!job->ranks[r].has_record)
            continue;
        const struct prof_stat *s = &f->ranks[r];
        const double seconds = (double)s->ns * 1e-9;
        f->all.calls += s->calls;
        f->all.ns += s->ns;
        f->all.sized += s->sized;
        f->all.bytes += s->bytes;
        if (s->ns_max > f->all.ns_max)
            f->all.ns_max = s->ns_max;
        if (f->min < 0 || seconds < f->min)
            f->min = seconds;
        if (f->slowest < 0 || seconds > f->max) {
            f->max = seconds;
            f->slowest = r;
        }
        if (!f->startup)
            job->ranks[r].kinds[f->kind] += seconds;
    }
    f->mean = (double)f->all.ns * 1e-9 / job->nrecords;
}

static int prof_read_compare_by_time(const void *a, const void *b)
{
    const struct prof_function *f = a, *g = b;
    if (f->all.ns != g->all.ns)
        return f->all.ns < g->all.ns ? 1 : -1;
    return strcmp(f->name, g->name);
}

struct placed {
    const char *host;
    int rank;
};

static int prof_read_compare_by_host(const void *a, const void *b)
{
    const struct placed *p = a, *q = b;
    const int order = strcmp(p->host, q->host);
    return order ? order : p->rank - q->rank;
}

/* Assigns nodes: ranks with the same host name form a node, identified by its first rank. */
static void find_nodes(struct prof_job *job)
{
    struct placed *all = array_allocate((size_t)job->nrecords, sizeof(*all));
    int n = 0;
    for (int r = 0; r < job->size; r++)
        if (job->ranks[r].has_record)
            all[n++] = (struct placed){job->ranks[r].host, r};
    qsort(all, (size_t)n, sizeof(*all), prof_read_compare_by_host);
    for (int i = 0, first = 0; i < n; i++) {
        if (strcmp(all[i].host, all[first].host) != 0)
            first = i;
        job->ranks[all[i].rank].node = all[first].rank;
        job->nodes += first == i;
    }
    free(all);
}

/* Counts messages below 2 KiB, 16 KiB, 1 MiB, and above: bins 0 to 11, 12 to 14, 15 to 20, the rest. */
struct prof_classes prof_classify(const struct prof_bin *bins)
{
    struct prof_classes c = {0};
    for (int b = 0; b < PROF_BINS; b++) {
        c.count[b <= 11 ? 0 : b <= 14 ? 1 : b <= 20 ? 2 : 3] += bins[b].count;
        c.all += bins[b].count;
        c.bytes += bins[b].bytes;
    }
    return c;
}

void prof_job_sum_up(struct prof_job *job)
{
    for (size_t i = 0; i < job->nfunctions; i++)
        sum_up_function(job, &job->functions[i]);
    if (job->nfunctions)
        qsort(job->functions, job->nfunctions, sizeof(*job->functions), prof_read_compare_by_time);
    find_nodes(job);
    for (int r = 0; r < job->size; r++) {
        struct prof_rank *rank = &job->ranks[r];
        /* do not touch the memory of the other ranks: an invalid record may claim a million of them */
        if (!rank->has_record)
            continue;
        double known = 0;
        for (int k = 0; k < PROF_OTHER; k++)
            known += rank->kinds[k];
        /* PROF_OTHER is the remainder: a call made in a callback counts for its own function and for the
         * call that invoked the callback. */
        rank->kinds[PROF_OTHER] = rank->mpi > known ? rank->mpi - known : 0;
        job->on += rank->on;
        job->mpi += rank->mpi;
        job->threaded |= rank->threaded;
        for (int k = 0; k < PROF_KINDS; k++)
            job->kinds[k] += rank->kinds[k];
    }
    for (size_t i = 0; i < job->npairs; i++) {
        const struct prof_pair *p = &job->pairs[i];
        const struct prof_rank *to = &job->ranks[p->to];
        job->sent.messages += p->messages;
        job->sent.bytes += p->bytes;
        if (to->has_record && to->node == job->ranks[p->from].node) {
            job->within.messages += p->messages;
            job->within.bytes += p->bytes;
        }
    }
    prof_waits_sum_up(job);
    prof_links_sum_up(job);
    prof_sites_sum_up(job);
    job->p2p_classes = prof_classify(job->p2p);
    job->coll_classes = prof_classify(job->coll);
}

void prof_jobs_free(struct prof_job *jobs)
{
    while (jobs) {
        struct prof_job *next = jobs->next;
        for (size_t i = 0; i < jobs->nfunctions; i++) {
            for (int r = 0; r < jobs->size; r++)
                free(jobs->functions[i].waits[r].seconds);
            free(jobs->functions[i].waits);
            free(jobs->functions[i].ranks);
        }
        for (size_t i = 0; i < jobs->nsettings; i++)
            free(jobs->settings[i]);
        free(jobs->settings);
        free(jobs->sites);
        free(jobs->machines);
        free(jobs->carried);
        free(jobs->links);
        free(jobs->events);
        free(jobs->functions);
        free(jobs->pairs);
        free(jobs->ranks);
        free(jobs);
        jobs = next;
    }
}
