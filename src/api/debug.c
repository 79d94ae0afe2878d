/* debug.c: FISHPLATE_DEBUG=leaks: records where every object was made, and reports at MPI_Finalize
 * those that the program has not freed: communicators, datatypes, windows, files, groups, infos, operators,
 * requests that were not completed, matched messages that were not received, and messages that nobody
 * received.
 *
 * objmem_watch reports allocations of objects; requests of messages come from a pool and are reported by
 * p2p.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/debug.h"
#include "base/log.h"
#include "base/objmem.h"
#include "base/tunable.h"
#include "obj/comm.h"
#include "obj/context.h"

enum { BUCKETS = 1024, CALL = 40, LINES = 40, MESSAGES = 10 };

struct origin {
    struct origin *next;
    const void *object;
    struct code_place place;
    char call[CALL];
};

static struct {
    pthread_mutex_t lock;
    struct origin *buckets[BUCKETS];
    bool on;
} leaks = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct origin **object_bucket(const void *object)
{
    return &leaks.buckets[((uintptr_t)object >> 4) % BUCKETS];
}

static void leaks_remove_object(const void *object)
{
    pthread_mutex_lock(&leaks.lock);
    for (struct origin **at = object_bucket(object); *at; at = &(*at)->next) {
        if ((*at)->object == object) {
            struct origin *gone = *at;
            *at = gone->next;
            free(gone);
            break;
        }
    }
    pthread_mutex_unlock(&leaks.lock);
}

static void leaks_add_object(const void *object)
{
    struct origin *o = calloc(1, sizeof(*o));
    leaks_remove_object(object);
    if (!o)
        return;
    o->object = object;
    place_find_mpi_caller(&o->place, o->call, sizeof(o->call));
    pthread_mutex_lock(&leaks.lock);
    o->next = *object_bucket(object);
    *object_bucket(object) = o;
    pthread_mutex_unlock(&leaks.lock);
}

/* Records a possible object; memory that is too small for one is ignored. */
static void leaks_watch(void *object, size_t size)
{
    if (size >= sizeof(struct object))
        leaks_add_object(object);
    else
        leaks_remove_object(object);
}

static void leaks_open(void)
{
    leaks.on = true;
    objmem_watch = leaks_watch;
}

static void leaks_add_request(const struct request *r)
{
    leaks_add_object(r);
}

void debug_message_probed(const void *message)
{
    if (leaks.on)
        leaks_add_object(message);
}

void debug_message_received(const void *message)
{
    if (leaks.on)
        leaks_remove_object(message);
}

/* True if `call` creates objects for the program. Objects that the library creates for itself do not
 * count. */
static bool is_made_by(const char *call, const char *const *starts)
{
    for (; *starts; starts++)
        if (strncmp(call, *starts, strlen(*starts)) == 0)
            return true;
    return false;
}

struct kind {
    enum object_magic magic;
    const char *one, *many, *what_to_do;
    const char *starts[8];
};

static const struct kind kinds[] = {
    {MAGIC_COMM,
     "communicator",
     "communicators",
     "MPI_Comm_free",
     {"MPI_Comm_", "MPI_Cart_", "MPI_Graph_create", "MPI_Dist_graph_create", "MPI_Intercomm_"}},
    {MAGIC_DTYPE, "datatype", "datatypes", "MPI_Type_free", {"MPI_Type_"}},
    {MAGIC_WIN, "window", "windows", "MPI_Win_free", {"MPI_Win_"}},
    {MAGIC_FILE, "file", "files", "MPI_File_close", {"MPI_File_open"}},
    {MAGIC_GROUP,
     "group",
     "groups",
     "MPI_Group_free",
     {"MPI_Group_", "MPI_Comm_group", "MPI_Comm_remote_group", "MPI_Win_get_group", "MPI_File_get_group"}},
    {MAGIC_INFO,
     "info object",
     "info objects",
     "MPI_Info_free",
     {"MPI_Info_", "MPI_Comm_get_info", "MPI_Win_get_info", "MPI_File_get_info"}},
    {MAGIC_OP, "operator", "operators", "MPI_Op_free", {"MPI_Op_create"}},
    {MAGIC_ERRHANDLER,
     "error handler",
     "error handlers",
     "MPI_Errhandler_free",
     {"MPI_Comm_create_errhandler", "MPI_Win_create_errhandler", "MPI_File_create_errhandler"}},
    {MAGIC_REQUEST, "request", "requests", "MPI_Wait or MPI_Request_free", {"MPI_"}},
    {MAGIC_MESSAGE, "matched message", "matched messages", "MPI_Mrecv", {"MPI_Mprobe", "MPI_Improbe"}},
};

static const struct kind *find_object_kind(const struct origin *o)
{
    const struct object *object = o->object;
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (object->magic != kinds[i].magic || object->predefined || !is_made_by(o->call, kinds[i].starts))
            continue;
        if (object->magic == MAGIC_DTYPE && ((const struct dtype *)o->object)->handles == 0)
            return NULL; /* freed by the program, and still in use by another object */
        if (object->magic == MAGIC_REQUEST &&
            (((const struct request *)o->object)->freed || strncmp(o->call, "MPI_Start", 9) == 0))
            return NULL;
        return &kinds[i];
    }
    return NULL;
}

struct line {
    const struct kind *kind;
    const struct origin *origin;
    int count;
    char place[160];
};

static int leaks_compare_by_kind(const void *a, const void *b)
{
    const struct line *l = a, *r = b;
    return l->kind < r->kind ? -1 : l->kind > r->kind;
}

/* Groups objects into lines: one for each kind and place. */
static int leaks_gather_lines(struct line *lines, int *lost)
{
    int n = 0;
    for (int b = 0; b < BUCKETS; b++) {
        for (const struct origin *o = leaks.buckets[b]; o; o = o->next) {
            const struct kind *kind = find_object_kind(o);
            int i = 0;
            if (!kind)
                continue;
            while (i < n && (lines[i].kind != kind || lines[i].origin->place.offset != o->place.offset ||
                             strcmp(lines[i].origin->call, o->call) != 0))
                i++;
            if (i == LINES) {
                ++*lost;
                continue;
            }
            if (i == n)
                lines[n++] = (struct line){.kind = kind, .origin = o};
            lines[i].count++;
        }
    }
    qsort(lines, (size_t)n, sizeof(lines[0]), leaks_compare_by_kind);
    return n;
}

/* Merges lines with equal text, since the compiler may have inlined several calls of one source line.
 * Returns the total number of their objects; 0 if they were reported before. */
static int merge_equal_lines(struct line *lines, int n, int first)
{
    int count = 0;
    for (int i = first; i < n; i++) {
        if (lines[i].kind == lines[first].kind && strcmp(lines[i].place, lines[first].place) == 0 &&
            strcmp(lines[i].origin->call, lines[first].origin->call) == 0) {
            count += lines[i].count;
            lines[i].count = 0;
        }
    }
    return count;
}

static void leaks_report_message(void *arg, struct envelope env, const void *payload, uint64_t length)
{
    const struct proc *p = arg;
    const struct comm *c = comm_of_context(p, env.context);
    if (env.context & 1)
        return;
    log_warn("Not received at MPI_Finalize (FISHPLATE_DEBUG=leaks): a message of %llu byte%s from rank %d "
             "with tag "
             "%d on %s.",
             (unsigned long long)length, length == 1 ? "" : "s", env.source, env.tag,
             c ? comm_label(c) : "a communicator");
}

static void leaks_report(struct proc *p)
{
    struct line lines[LINES] = {0};
    int lost = 0;
    objmem_watch = NULL;
    leaks.on = false;
    const int n = leaks_gather_lines(lines, &lost);
    for (int i = 0; i < n; i++)
        place_text(&lines[i].origin->place, lines[i].place, sizeof(lines[i].place));
    for (int i = 0; i < n; i++) {
        const struct line *l = &lines[i];
        const int count = merge_equal_lines(lines, n, i);
        if (count > 0)
            log_warn("Never freed (FISHPLATE_DEBUG=leaks): %d %s from %s at %s. Call %s.", count,
                     count == 1 ? l->kind->one : l->kind->many, l->origin->call, l->place,
                     l->kind->what_to_do);
    }
    if (lost)
        log_warn("Never freed (FISHPLATE_DEBUG=leaks): %d more objects from other places.", lost);
    p2p_visit_unexpected(p->p2p, MESSAGES, leaks_report_message, p);
    for (int b = 0; b < BUCKETS; b++) {
        for (struct origin *o = leaks.buckets[b], *next; o; o = next) {
            next = o->next;
            free(o);
        }
        leaks.buckets[b] = NULL;
    }
}

/* Turns FISHPLATE_DEBUG=leaks and match on, and reports messages that are received as other types than they
 * were sent. */

enum { REPORTED_MOST = 32 }; /* limit of reported pairs of a send and a receive */

static struct {
    struct p2p_debug hooks;
    bool leaks;
    uint64_t reported[REPORTED_MOST][2];
    int nreported;
} debug;

static bool debug_is_enabled(const char *check)
{
    const struct tunable *t = tunables_find("DEBUG");
    return t && tunable_has_word(t, check);
}

/* Prints "10 of MPI_INT", or the contents of a derived type. */
static void format_note_types(const struct note *n, char *out, size_t size)
{
    size_t at = 0;
    if (n->nruns == 1 && strcmp(n->runs[0].name, n->type) == 0) {
        snprintf(out, size, "%llu x %s", (unsigned long long)n->count, n->type);
        return;
    }
    at += (size_t)snprintf(out, size, "%llu of a derived type: ", (unsigned long long)n->count);
    for (uint32_t i = 0; i < n->nruns && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%llu x %s", i ? ", " : "",
                               (unsigned long long)n->runs[i].count, n->runs[i].name);
    if (n->more && at < size)
        snprintf(out + at, size - at, ", ...");
}

/* True if this mismatch is reported for the first time: a loop makes the same mistake many times. */
static bool is_first_report(const struct note *sent, const struct note *received)
{
    for (int i = 0; i < debug.nreported; i++)
        if (debug.reported[i][0] == sent->place.offset && debug.reported[i][1] == received->place.offset)
            return false;
    if (debug.nreported == REPORTED_MOST)
        return false;
    debug.reported[debug.nreported][0] = sent->place.offset;
    debug.reported[debug.nreported++][1] = received->place.offset;
    return true;
}

static void debug_report_match(struct p2p *p, uint32_t from, struct envelope env, const struct note *sent,
                               const struct note *received)
{
    char there[128], here[128], sent_types[320], received_types[320];
    const struct comm *c = the_proc ? comm_of_context(the_proc, env.context) : NULL;
    if (!is_first_report(sent, received))
        return;
    place_text(&sent->place, there, sizeof(there));
    place_text(&received->place, here, sizeof(here));
    format_note_types(sent, sent_types, sizeof(sent_types));
    format_note_types(received, received_types, sizeof(received_types));
    log_warn(
        "The types of a message do not match (FISHPLATE_DEBUG=match): rank %u sends %s at %s, and this rank "
        "receives it as %s at %s (tag %d on %s). Use the same basic types in the same order on both sides, "
        "or MPI_PACKED.",
        from, sent_types, there, received_types, here, env.tag, c ? comm_label(c) : "a communicator");
}

static void debug_caller_place(struct code_place *out)
{
    place_find_mpi_caller(out, NULL, 0);
}

void debug_watch_open(struct proc *p)
{
    const bool match = debug_is_enabled("match");
    debug.leaks = debug_is_enabled("leaks");
    debug.nreported = 0;
    if (!match && !debug.leaks)
        return;
    debug.hooks = (struct p2p_debug){.match = match,
                                     .where = debug_caller_place,
                                     .made = debug.leaks ? leaks_add_request : NULL,
                                     .differs = debug_report_match};
    p2p_set_debug(p->p2p, &debug.hooks);
    if (debug.leaks)
        leaks_open();
}

void debug_watch_close(struct proc *p)
{
    if (debug.leaks)
        leaks_report(p);
    debug.leaks = false;
}
