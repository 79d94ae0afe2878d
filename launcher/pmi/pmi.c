/* pmi.c: handles the PMI-1 commands of this library, of MPICH and of others. A table maps each command to its
 * handler. A request with `quiet=1` (only this library sends it) gets no reply.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "pmi/pmi.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boot/pmi_line.h"
#include "core/util.h"
#include "cli/number.h"

/* The key-value store of the PMI server: text to text, kept until the job ends. A chained hash table that
 * doubles when it is full. */

struct kvs_entry {
    struct kvs_entry *next;
    char *key, *value;
};

struct kvs {
    struct kvs_entry **bucket;
    size_t nbuckets, n;
};

static uint64_t kvs_hash(const char *key)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (; *key; key++)
        h = (h ^ (unsigned char)*key) * 1099511628211u;
    return h;
}

static struct kvs_entry **kvs_find_slot(const struct kvs *s, const char *key)
{
    struct kvs_entry **p = &s->bucket[kvs_hash(key) & (s->nbuckets - 1)];
    while (*p && strcmp((*p)->key, key) != 0)
        p = &(*p)->next;
    return p;
}

static void kvs_grow(struct kvs *s)
{
    struct kvs old = *s;
    s->nbuckets = old.nbuckets ? old.nbuckets * 2 : 64;
    s->bucket = xcalloc(s->nbuckets, sizeof(*s->bucket));
    for (size_t i = 0; i < old.nbuckets; i++)
        for (struct kvs_entry *e = old.bucket[i], *next; e; e = next) {
            struct kvs_entry **at = &s->bucket[kvs_hash(e->key) & (s->nbuckets - 1)];
            next = e->next;
            e->next = *at;
            *at = e;
        }
    free(old.bucket);
}

/* Replaces an existing value. */
static void kvs_put(struct kvs *s, const char *key, const char *value)
{
    if (s->n >= s->nbuckets)
        kvs_grow(s);
    struct kvs_entry **p = kvs_find_slot(s, key);
    if (*p) {
        free((*p)->value);
        (*p)->value = xstrdup(value);
        return;
    }
    struct kvs_entry *e = xcalloc(1, sizeof(*e));
    e->key = xstrdup(key);
    e->value = xstrdup(value);
    *p = e;
    s->n++;
}

static const char *kvs_get(const struct kvs *s, const char *key)
{
    struct kvs_entry *e = s->nbuckets ? *kvs_find_slot(s, key) : NULL;
    return e ? e->value : NULL;
}

static bool kvs_remove(struct kvs *s, const char *key)
{
    struct kvs_entry **p = s->nbuckets ? kvs_find_slot(s, key) : NULL;
    if (!p || !*p)
        return false;
    struct kvs_entry *e = *p;
    *p = e->next;
    free(e->key);
    free(e->value);
    free(e);
    s->n--;
    return true;
}

static void kvs_free(struct kvs *s)
{
    for (size_t i = 0; i < s->nbuckets; i++)
        while (s->bucket[i])
            kvs_remove(s, s->bucket[i]->key);
    free(s->bucket);
    *s = (struct kvs){0};
}

#define REQUEST_MAX 65536
#define SPAWN_MAX   (1u << 22)

struct client {
    struct buf in;
    bool inited, finalized, broken, ready;
    bool in_spawn;    /* between mcmd=spawn and endcmd */
    struct buf spawn; /* lines of the spawn request in progress */
    long left;        /* programs of the request whose endcmd has not arrived */
};

struct pmi {
    uint32_t size, universe, arrived;
    uint32_t inited, finalized; /* number of ranks */
    const char *job;
    const uint32_t *app_of;
    const struct pmi_events *ev;
    void *ctx;
    struct kvs values, names;
    struct client *clients;
    bool *waiting;
};

struct request {
    struct pmi *s;
    uint32_t rank;
    const struct pmi_line *line;
};

static void pmi_reply(const struct request *r, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void pmi_reply(const struct request *r, const char *fmt, ...)
{
    if (pmi_line_get(r->line, "quiet"))
        return;
    va_list args;
    va_start(args, fmt);
    char *text = xvstrf(fmt, args);
    va_end(args);
    const size_t len = strlen(text);
    text[len] = '\n'; /* replaces the zero terminator */
    r->s->ev->reply(r->s->ctx, r->rank, text, len + 1);
    free(text);
}

static void do_init(const struct request *r)
{
    long version = 0;
    bool ok = pmi_line_int(r->line, "pmi_version", 0, 100, &version) && version == 1;
    bool first = !r->s->clients[r->rank].inited;
    r->s->clients[r->rank].inited = true;
    r->s->inited += first;
    pmi_reply(r, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=%d", ok ? 0 : -1);
    if (first)
        r->s->ev->inited(r->s->ctx, r->rank);
}

static void do_get_maxes(const struct request *r)
{
    pmi_reply(r, "cmd=maxes kvsname_max=256 keylen_max=%d vallen_max=%d rc=0", PMI_KEY_MAX, PMI_VALUE_MAX);
}

static void do_get_appnum(const struct request *r)
{
    pmi_reply(r, "cmd=appnum appnum=%u rc=0", r->s->app_of ? r->s->app_of[r->rank] : 0);
}

static void do_get_my_kvsname(const struct request *r)
{
    pmi_reply(r, "cmd=my_kvsname kvsname=%s rc=0", r->s->job);
}

static void do_get_universe_size(const struct request *r)
{
    pmi_reply(r, "cmd=universe_size size=%u rc=0", r->s->universe);
}

static bool is_own_kvs(const struct request *r)
{
    const char *name = pmi_line_get(r->line, "kvsname");
    return name && strcmp(name, r->s->job) == 0;
}

static void do_put(const struct request *r)
{
    const char *key = pmi_line_get(r->line, "key"), *value = pmi_line_get(r->line, "value");
    if (!is_own_kvs(r)) {
        pmi_reply(r, "cmd=put_result rc=-1 msg=no_such_kvsname");
    } else if (!key || !*key || !value || strlen(key) >= PMI_KEY_MAX || strlen(value) >= PMI_VALUE_MAX) {
        pmi_reply(r, "cmd=put_result rc=-1 msg=key_or_value_missing_or_too_long");
    } else {
        kvs_put(&r->s->values, key, value);
        pmi_reply(r, "cmd=put_result rc=0 msg=success");
    }
}

static void do_get(const struct request *r)
{
    const char *key = pmi_line_get(r->line, "key");
    const char *value = key && is_own_kvs(r) ? kvs_get(&r->s->values, key) : NULL;
    if (value)
        pmi_reply(r, "cmd=get_result rc=0 msg=success value=%s", value);
    else
        pmi_reply(r, "cmd=get_result rc=-1 msg=%s value=unknown",
                  is_own_kvs(r) ? "key_not_found" : "no_such_kvsname");
}

static void pmi_handle_barrier(const struct request *r)
{
    static const char out[] = "cmd=barrier_out rc=0\n";
    struct pmi *s = r->s;
    if (s->waiting[r->rank])
        return;
    s->waiting[r->rank] = true;
    if (++s->arrived == 1)
        s->ev->barrier(s->ctx, true);
    if (s->arrived < s->size)
        return;
    s->arrived = 0;
    memset(s->waiting, 0, s->size * sizeof(*s->waiting));
    s->ev->barrier(s->ctx, false);
    for (uint32_t i = 0; i < s->size; i++)
        s->ev->reply(s->ctx, i, out, sizeof(out) - 1);
}

static void do_report_missing(const struct request *r)
{
    char who[1024] = "all ranks have arrived", text[3 * sizeof(who)];
    if (r->s->arrived > 0)
        r->s->ev->describe(r->s->ctx, r->s->waiting, who, sizeof(who));
    pmi_escape(who, text, sizeof(text));
    pmi_reply(r, "cmd=missing_result msg=%s", text);
}

static void do_finalize(const struct request *r)
{
    r->s->finalized += r->s->clients[r->rank].inited && !r->s->clients[r->rank].finalized;
    r->s->clients[r->rank].finalized = true;
    pmi_reply(r, "cmd=finalize_ack rc=0");
}

static void do_abort(const struct request *r)
{
    long code = 1;
    const char *msg = pmi_line_get(r->line, "msg");
    if (!msg)
        msg = pmi_line_get(r->line, "error_msg");
    pmi_line_int(r->line, "exitcode", INT32_MIN, INT32_MAX, &code);
    char *text = xstrdup(msg ? msg : "");
    pmi_unescape(text);
    r->s->ev->aborted(r->s->ctx, r->rank, (int)code, text);
    free(text);
}

static void do_publish(const struct request *r)
{
    const char *service = pmi_line_get(r->line, "service"), *port = pmi_line_get(r->line, "port");
    bool ok = service && port && !kvs_get(&r->s->names, service);
    if (ok)
        kvs_put(&r->s->names, service, port);
    pmi_reply(r, "cmd=publish_result info=%s rc=%d", ok ? "ok" : "duplicate_or_incomplete", ok ? 0 : -1);
}

static void do_unpublish(const struct request *r)
{
    const char *service = pmi_line_get(r->line, "service");
    bool ok = service && kvs_remove(&r->s->names, service);
    pmi_reply(r, "cmd=unpublish_result info=%s rc=%d", ok ? "ok" : "not_published", ok ? 0 : -1);
}

static void do_lookup(const struct request *r)
{
    const char *service = pmi_line_get(r->line, "service");
    const char *port = service ? kvs_get(&r->s->names, service) : NULL;
    if (port)
        pmi_reply(r, "cmd=lookup_result info=ok port=%s rc=0", port);
    else
        pmi_reply(r, "cmd=lookup_result info=not_published rc=-1");
}

/* Runs a spawn request after the lines of all its programs have arrived. */
static void pmi_run_spawn_request(struct pmi *s, uint32_t rank)
{
    struct client *c = &s->clients[rank];
    struct pmi_line none = {0};
    char *why = NULL, text[1500];
    buf_add(&c->spawn, "", 1);
    unsigned number = s->ev->spawn(s->ctx, rank, xstrdup(buf_head(&c->spawn)), &why);
    buf_free(&c->spawn);
    pmi_escape(why ? why : "", text, sizeof(text));
    free(why);
    if (number)
        pmi_reply(&(struct request){s, rank, &none}, "cmd=spawn_result rc=0 jobid=%u", number);
    else
        pmi_reply(&(struct request){s, rank, &none}, "cmd=spawn_result rc=-1 msg=%s", text);
}

/* Stores a line of a spawn request. A client sends all programs, then waits for one reply. */
static bool handle_spawn_line(struct pmi *s, uint32_t rank, const char *text)
{
    struct client *c = &s->clients[rank];
    if (strcmp(text, "endcmd") != 0) {
        if (strncmp(text, "totspawns=", 10) == 0 && c->left <= 0 &&
            !number_parse_integer(text + 10, 1, 65536, &c->left))
            return false;
        buf_add(&c->spawn, text, strlen(text));
        buf_add(&c->spawn, "\n", 1);
        return buf_size(&c->spawn) <= SPAWN_MAX;
    }
    c->in_spawn = false;
    if (--c->left <= 0)
        pmi_run_spawn_request(s, rank);
    return true;
}

static void do_spawn_state(const struct request *r)
{
    char text[1500];
    long number = 0;
    pmi_line_int(r->line, "jobid", 0, INT32_MAX, &number);
    const char *why = r->s->ev->spawn_state(r->s->ctx, (unsigned)number);
    pmi_escape(why ? why : "", text, sizeof(text));
    pmi_reply(r, "cmd=spawn_state_result rc=%d msg=%s", why ? -1 : 0, text);
}

static void do_mark_ready(const struct request *r)
{
    r->s->clients[r->rank].ready = true;
}

static void do_report_unreachable(const struct request *r)
{
    long rank = -1;
    if (pmi_line_int(r->line, "rank", 0, (long)r->s->size - 1, &rank) && r->s->ev->unreachable)
        r->s->ev->unreachable(r->s->ctx, (uint32_t)rank, r->rank);
}

static const struct {
    const char *name;
    void (*fn)(const struct request *r);
} commands[] = {
    {"init", do_init},
    {"get_maxes", do_get_maxes},
    {"get_appnum", do_get_appnum},
    {"get_my_kvsname", do_get_my_kvsname},
    {"get_universe_size", do_get_universe_size},
    {"put", do_put},
    {"get", do_get},
    {"barrier_in", pmi_handle_barrier},
    {"missing", do_report_missing},
    {"finalize", do_finalize},
    {"abort", do_abort},
    {"publish_name", do_publish},
    {"unpublish_name", do_unpublish},
    {"lookup_name", do_lookup},
    {"spawn_state", do_spawn_state},
    {"ready", do_mark_ready},
    {"accuse", do_report_unreachable},
};

/* Returns false if the line is not a PMI-1 command. */
static bool handle_line(struct pmi *s, uint32_t rank, char *text)
{
    struct client *c = &s->clients[rank];
    struct pmi_line line;
    /* A spawn request has many lines of free text, and ends with the line "endcmd". */
    if (c->in_spawn)
        return handle_spawn_line(s, rank, text);
    if (strcmp(text, "mcmd=spawn") == 0) {
        c->in_spawn = true;
        return handle_spawn_line(s, rank, text);
    }
    if (!pmi_line_parse(text, &line))
        return false;
    const char *name = pmi_line_get(&line, "cmd");
    for (size_t i = 0; name && i < COUNT_OF(commands); i++)
        if (strcmp(name, commands[i].name) == 0) {
            commands[i].fn(&(struct request){s, rank, &line});
            return true;
        }
    return false;
}

static void pmi_reject_client(struct pmi *s, uint32_t rank, const char *why)
{
    s->clients[rank].broken = true;
    buf_free(&s->clients[rank].in);
    s->ev->bad(s->ctx, rank, why);
}

void pmi_input(struct pmi *s, uint32_t rank, const char *data, size_t len)
{
    struct client *c = &s->clients[rank];
    if (c->broken)
        return;
    buf_add(&c->in, data, len);
    for (;;) {
        size_t n = buf_size(&c->in);
        char *start = buf_head(&c->in), *newline = n ? memchr(start, '\n', n) : NULL;
        if (!newline) {
            if (n > REQUEST_MAX)
                pmi_reject_client(s, rank, "a request longer than 65536 bytes");
            return;
        }
        *newline = '\0';
        size_t line_len = (size_t)(newline - start);
        bool ok = strlen(start) == line_len && handle_line(s, rank, start);
        if (!ok) {
            pmi_reject_client(s, rank, "a request that is not one of PMI version 1");
            return;
        }
        buf_consume(&c->in, line_len + 1);
    }
}

bool pmi_inited(const struct pmi *s, uint32_t rank)
{
    return s->clients[rank].inited;
}

bool pmi_finalized(const struct pmi *s, uint32_t rank)
{
    return s->clients[rank].finalized;
}

bool pmi_ready(const struct pmi *s, uint32_t rank)
{
    return s->clients[rank].ready;
}

void pmi_count_as_finalized(struct pmi *s, uint32_t rank)
{
    s->finalized += s->clients[rank].inited && !s->clients[rank].finalized;
}

uint32_t pmi_inited_count(const struct pmi *s)
{
    return s->inited;
}

uint32_t pmi_active_count(const struct pmi *s)
{
    return s->inited - s->finalized;
}

const bool *pmi_get_waiting(const struct pmi *s)
{
    return s->arrived ? s->waiting : NULL;
}

struct pmi *pmi_new(uint32_t size, uint32_t universe, const char *job, const char *node_map,
                    const uint32_t *app_of, const struct pmi_events *ev, void *ctx)
{
    struct pmi *s = xcalloc(1, sizeof(*s));
    *s = (struct pmi){.size = size, .universe = universe, .job = job, .app_of = app_of, .ev = ev, .ctx = ctx};
    s->clients = xcalloc(size, sizeof(*s->clients));
    s->waiting = xcalloc(size, sizeof(*s->waiting));
    kvs_put(&s->values, "PMI_process_mapping", node_map);
    return s;
}

void pmi_put_initial(struct pmi *s, const char *entry)
{
    const char *eq = strchr(entry, '=');
    char *key = eq ? xstrf("%.*s", (int)(eq - entry), entry) : NULL;
    if (key && *key && strlen(key) < PMI_KEY_MAX)
        kvs_put(&s->values, key, eq + 1);
    free(key);
}

void pmi_free(struct pmi *s)
{
    for (uint32_t i = 0; i < s->size; i++) {
        buf_free(&s->clients[i].in);
        buf_free(&s->clients[i].spawn);
    }
    kvs_free(&s->values);
    kvs_free(&s->names);
    free(s->clients);
    free(s->waiting);
    free(s);
}
