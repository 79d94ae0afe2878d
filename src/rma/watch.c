/* watch.c: FISHPLATE_DEBUG=rma: finds operations of one epoch that access the same bytes although at least
 * one changes them (MPI-5.0, 12.7). Their result is undefined and depends on how each was executed. Both call
 * sites are named.
 *
 * An origin compares its own operations since the last synchronisation with a target. Between fences the
 * target also compares those of all origins: each sends it a description of what it does (RMA_WATCH). Only
 * bytes that are really accessed count, so that every report is a real conflict; operations of more than a
 * few dozen runs are not checked.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#else /* musl: call sites stay unknown */
#define backtrace(frames, most) 0
#endif

#include "base/log.h"
#include "base/tunable.h"
#include "rma/engine.h"

#define WATCH_RUNS 24

struct watched {
    struct list link;
    int32_t origin, target;
    int32_t kind;   /* enum rma_kind */
    uint32_t epoch; /* number of the fence, at the target */
    int32_t nruns;
    char site[96];
    struct rma_run runs[WATCH_RUNS];
};

bool watch_wanted(void)
{
    const struct tunable *t = tunables_find("DEBUG");
    return t && t->text && strstr(t->text, "rma") != NULL;
}

/* The first caller that is not of this library: what addr2line needs, and the function if it has a name. */
static void find_site(char *out, size_t size)
{
    void *frames[24];
    Dl_info us = {0}, it = {0};
    const int n = backtrace(frames, COUNT_OF(frames));
    dladdr((void *)(uintptr_t)watch_wanted, &us);
    for (int i = 0; i < n; i++) {
        if (!dladdr(frames[i], &it) || it.dli_fbase == us.dli_fbase)
            continue;
        const char *slash = strrchr(it.dli_fname, '/');
        snprintf(out, size, "%.40s+%#lx%s%.30s", slash ? slash + 1 : it.dli_fname,
                 (unsigned long)((uintptr_t)frames[i] - (uintptr_t)it.dli_fbase), it.dli_sname ? " in " : "",
                 it.dli_sname ? it.dli_sname : "");
        return;
    }
    snprintf(out, size, "an unknown place");
}

static bool piece_meets(uint64_t start, uint64_t end, const struct rma_run *b)
{
    for (uint64_t k = 0; k < b->count; k++) {
        const uint64_t at = b->offset + k * b->stride;
        if (at < end && start < at + b->length)
            return true;
    }
    return false;
}

static bool runs_meet(const struct rma_run *a, const struct rma_run *b)
{
    if (a->count * b->count > 100000)
        return false;
    for (uint64_t k = 0; k < a->count; k++) {
        const uint64_t at = a->offset + k * a->stride;
        if (piece_meets(at, at + a->length, b))
            return true;
    }
    return false;
}

static bool changes_by_operator(int kind)
{
    return kind >= RMA_IS_ACCUMULATE;
}

static bool conflict(const struct watched *a, const struct watched *b)
{
    if (a->target != b->target || a->epoch != b->epoch || (a->kind == RMA_IS_GET && b->kind == RMA_IS_GET) ||
        (changes_by_operator(a->kind) && changes_by_operator(b->kind)))
        return false;
    for (int i = 0; i < a->nruns; i++)
        for (int k = 0; k < b->nruns; k++)
            if (runs_meet(&a->runs[i], &b->runs[k]))
                return true;
    return false;
}

static const char *name_of(int kind)
{
    static const char *const names[] = {"put", "get", "accumulate", "get_accumulate", "compare_and_swap"};
    return names[kind];
}

/* Keeps it and tells about the first one that it meets. */
static void compare(struct win *w, struct list *others, const struct watched *it)
{
    struct watched *copy = malloc(sizeof(*copy));
    list_foreach(pos, others)
    {
        const struct watched *o = list_entry(pos, struct watched, link);
        if (!conflict(o, it))
            continue;
        log_warn("window %s: the %s by rank %d at %s and the %s by rank %d at %s touch the same bytes of "
                 "rank %d in one "
                 "epoch. The result is undefined: synchronise between them, or use MPI_Accumulate for both "
                 "(FISHPLATE_DEBUG=rma).",
                 win_label(w), name_of(o->kind), o->origin, o->site, name_of(it->kind), it->origin, it->site,
                 it->target);
        break;
    }
    if (!copy)
        return;
    *copy = *it;
    list_append(others, &copy->link);
}

void watch_call(const struct rma_call *c, uint64_t offset)
{
    struct win *w = c->win;
    struct win_peer *to;
    struct dt_cursor cursor;
    struct watched it = {.origin = w->comm->rank, .target = c->rank, .kind = c->kind, .epoch = w->fences};
    dt_cursor_init(&cursor, c->type, c->count, (void *)(uintptr_t)offset);
    const size_t bytes = (size_t)(c->count * c->type->size);
    if (runs_next(&cursor, bytes, WATCH_RUNS, it.runs, &it.nruns) < bytes)
        return;
    find_site(it.site, sizeof(it.site));
    compare(w, &w->watch, &it);
    if (w->access != EPOCH_FENCE || win_peer_plain(w, c->rank, &to) != 0)
        return;
    const size_t len = offsetof(struct watched, runs) + (size_t)it.nruns * sizeof(it.runs[0]);
    if (c->rank == w->comm->rank) {
        watch_arrived(w, (const char *)&it, len);
    } else if (len <= rma_chunk(to)) {
        to->dirty = true;
        win_peer_busy(to);
        rma_send_calmly(to, RMA_WATCH, 0, 0, 0, &it, len);
    }
}

void watch_arrived(struct win *w, const char *payload, size_t len)
{
    struct watched it = {0};
    CHECK(len >= offsetof(struct watched, runs) && len <= sizeof(it),
          "a frame of FISHPLATE_DEBUG=rma has a wrong length");
    memcpy(&it, payload, len);
    CHECK(it.nruns >= 0 && it.nruns <= WATCH_RUNS && it.kind >= 0 && it.kind <= RMA_IS_SWAP,
          "a frame of FISHPLATE_DEBUG=rma is inconsistent");
    it.site[sizeof(it.site) - 1] = '\0';
    /* What one origin does itself it has compared already. */
    struct list own, *pos = w->seen.next;
    list_init(&own);
    while (pos != &w->seen) {
        struct watched *o = list_entry(pos, struct watched, link);
        pos = pos->next;
        if (o->origin != it.origin)
            continue;
        list_remove(&o->link);
        list_append(&own, &o->link);
    }
    compare(w, &w->seen, &it);
    while (!list_empty(&own)) {
        struct list *node = own.next;
        list_remove(node);
        list_append(&w->seen, node);
    }
}

static void forget(struct list *all, int target, uint32_t before)
{
    list_foreach_safe(pos, after, all)
    {
        struct watched *o = list_entry(pos, struct watched, link);
        if ((target >= 0 && o->target != target) || o->epoch >= before)
            continue;
        list_remove(pos);
        free(o);
    }
}

void watch_forget(struct win *w, int rank)
{
    forget(&w->watch, rank, UINT32_MAX);
    forget(&w->seen, -1, w->fences);
}

void watch_close(struct win *w)
{
    forget(&w->watch, -1, UINT32_MAX);
    forget(&w->seen, -1, UINT32_MAX);
}
