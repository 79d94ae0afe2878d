/* conflict_watch.c: FISHPLATE_DEBUG=rma: finds operations of one epoch that access the same bytes although at
 * least one changes them (MPI-5.0, 12.7). Their result is undefined and depends on how each was executed. The
 * report names both call sites.
 *
 * An origin compares its own operations on a target since their last synchronisation. Between fences, and
 * between post and wait, the target also compares those of all origins, and its own stores (stores.h): each
 * origin sends the target a description of its operations (RMA_WATCH). Only bytes that are really accessed
 * are compared, so that every report is a real conflict; operations of more than a few dozen runs are not
 * checked.
 *
 * A store of the target conflicts with an operation if no synchronisation orders the two:
 * - the operation, which ends with the epoch, had been reported to the target before the store; or
 * - the target has notified no process between the store and the end of the epoch;
 * - under a lock: the store happened between the call of the operation and its flush, by the node's clock.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#else /* musl has no backtrace(): call sites are unknown */
#define backtrace(frames, most) 0
#endif

#include "base/clock.h"
#include "base/log.h"
#include "base/tunable.h"
#include "rma/rma.h"
#include "rma/window_memory.h"
#include "rma/stores.h"

#define WATCH_RUNS 24
#define EXPOSED    (UINT32_MAX - 1) /* watched.epoch between MPI_Win_post and MPI_Win_wait */
#define PASSIVE    (UINT32_MAX - 2) /* watched.epoch under locks */

struct watched {
    struct list link;
    int32_t origin, target;
    int32_t kind;   /* enum rma_kind */
    uint32_t epoch; /* number of the fence that began the epoch, or EXPOSED or PASSIVE */
    int32_t nruns;
    uint64_t began, ended; /* PASSIVE: times of the call and of its flush, in ns of the node's clock */
    uint64_t stores;       /* at the target: number of stores recorded before the operation was reported */
    char site[96];
    struct rma_run runs[WATCH_RUNS];
};

bool watch_is_enabled(void)
{
    const struct tunable *t = tunables_find("DEBUG");
    return t && tunable_has_word(t, "rma");
}

/* Formats a call site as arguments of addr2line, with the function's name if known. */
static void format_call_site(const Dl_info *it, uintptr_t address, char *out, size_t size)
{
    const char *slash = strrchr(it->dli_fname, '/');
    snprintf(out, size, "%.40s+%#lx%s%.30s", slash ? slash + 1 : it->dli_fname,
             (unsigned long)(address - (uintptr_t)it->dli_fbase), it->dli_sname ? " in " : "",
             it->dli_sname ? it->dli_sname : "");
}

/* Finds the innermost caller outside of this library. */
static void find_call_site(char *out, size_t size)
{
    void *frames[24];
    Dl_info us = {0}, it = {0};
    const int n = backtrace(frames, COUNT_OF(frames));
    dladdr((void *)(uintptr_t)watch_is_enabled, &us);
    for (int i = 0; i < n; i++) {
        if (!dladdr(frames[i], &it) || it.dli_fbase == us.dli_fbase)
            continue;
        format_call_site(&it, (uintptr_t)frames[i], out, size);
        return;
    }
    snprintf(out, size, "an unknown place");
}

static bool piece_overlaps(uint64_t start, uint64_t end, const struct rma_run *b)
{
    for (uint64_t k = 0; k < b->count; k++) {
        const uint64_t at = b->offset + k * b->stride;
        if (at < end && start < at + b->length)
            return true;
    }
    return false;
}

static bool runs_overlap(const struct rma_run *a, const struct rma_run *b)
{
    if (a->count * b->count > 100000)
        return false;
    for (uint64_t k = 0; k < a->count; k++) {
        const uint64_t at = a->offset + k * a->stride;
        if (piece_overlaps(at, at + a->length, b))
            return true;
    }
    return false;
}

static bool changes_by_operator(int kind)
{
    return kind >= RMA_IS_ACCUMULATE;
}

static bool operations_conflict(const struct watched *a, const struct watched *b)
{
    if (a->target != b->target || a->epoch != b->epoch || (a->kind == RMA_IS_GET && b->kind == RMA_IS_GET) ||
        (changes_by_operator(a->kind) && changes_by_operator(b->kind)))
        return false;
    for (int i = 0; i < a->nruns; i++)
        for (int k = 0; k < b->nruns; k++)
            if (runs_overlap(&a->runs[i], &b->runs[k]))
                return true;
    return false;
}

static const char *operation_name(int kind)
{
    static const char *const names[] = {"put", "get", "accumulate", "get_accumulate", "compare_and_swap"};
    return names[kind];
}

static void watch_report_conflict(const struct win *w, const char *what, int origin, const char *site,
                                  const struct watched *it)
{
    log_warn("window %s: the %s by rank %d at %s and the %s by rank %d at %s touch the same bytes of rank %d "
             "in one epoch. The result is undefined: synchronise between them, or use MPI_Accumulate for "
             "both (FISHPLATE_DEBUG=rma).",
             win_label(w), what, origin, site, operation_name(it->kind), it->origin, it->site, it->target);
}

/* Reports the first of `others` that conflicts with `it`. Appends a copy of `it` to `others` if `keep`. */
static void watch_compare(struct win *w, struct list *others, const struct watched *it, bool keep)
{
    struct watched *copy = keep ? malloc(sizeof(*copy)) : NULL;
    list_foreach(pos, others)
    {
        const struct watched *o = list_entry(pos, struct watched, link);
        if (!operations_conflict(o, it))
            continue;
        watch_report_conflict(w, operation_name(o->kind), o->origin, o->site, it);
        break;
    }
    if (!copy)
        return;
    *copy = *it;
    list_append(others, &copy->link);
}

/* ---- stores of the program into its own memory ---- */

static bool store_overlaps(const struct store *s, const struct watched *it)
{
    for (int i = 0; i < it->nruns; i++)
        if (piece_overlaps(s->first, s->end, &it->runs[i]))
            return true;
    return false;
}

static void report_store(const struct win *w, const struct store *s, const struct watched *it)
{
    char site[96] = "an unknown place";
    Dl_info there;
    if (dladdr((void *)s->place, &there) && there.dli_fname)
        format_call_site(&there, s->place, site, sizeof(site));
    watch_report_conflict(w, "store", w->comm->rank, site, it);
}

/* Reports a store that overlaps an operation of a passive epoch and was made during the operation. */
static void compare_passive(const struct win *w, const struct watched *it)
{
    const uint64_t next = w->stores ? stores_next(w->stores) : 0;
    const struct store *s;
    for (uint64_t i = next; i > 0 && (s = stores_get(w->stores, i - 1)) != NULL; i--) {
        if (s->began < it->began || s->ended > it->ended || !store_overlaps(s, it))
            continue;
        report_store(w, s, it);
        return;
    }
}

/* Compares the stores since the start of the epoch with an operation. A rank whose only MPI call since a
 * store is the one that ends the epoch has not notified any process of the store. */
static void compare_stores(const struct win *w, const struct watched *it)
{
    const uint64_t next = stores_next(w->stores);
    const struct store *s;
    for (uint64_t i = next; i > w->stores_before && (s = stores_get(w->stores, i - 1)) != NULL; i--) {
        const bool reported_before = i - 1 >= it->stores,
                   notified_none = s->calls + 1 == stores_count_calls();
        if ((!reported_before && !notified_none) || !store_overlaps(s, it))
            continue;
        report_store(w, s, it);
        return;
    }
}

void watch_begin_epoch(struct win *w)
{
    if (likely(!w->stores))
        return;
    w->stores_before = stores_next(w->stores);
    stores_reset_budget(w->stores);
}

static void watch_end_epoch(struct win *w, uint32_t epoch)
{
    if (likely(!w->stores))
        return;
    list_foreach(pos, &w->seen)
    {
        const struct watched *it = list_entry(pos, struct watched, link);
        if (it->epoch == epoch)
            compare_stores(w, it);
    }
}

void watch_switch_fence_epoch(struct win *w)
{
    watch_end_epoch(w, w->fences);
    watch_begin_epoch(w);
}

void watch_end_exposure(struct win *w)
{
    watch_end_epoch(w, EXPOSED);
    watch_begin_epoch(w);
    list_foreach_safe(pos, after, &w->seen)
    {
        struct watched *o = list_entry(pos, struct watched, link);
        if (o->epoch != EXPOSED)
            continue;
        list_remove(pos);
        free(o);
    }
}

static void watch_enter_library(bool begins)
{
    if (begins)
        stores_pause();
    else
        stores_resume();
}

/* Makes every MPI call suspend the recording of stores on entry. The hook requires the big lock, so the lock
 * is enabled here. The present MPI call began without the lock, so it is also taken here. */
static void install_call_hook(struct proc *p)
{
    if (p->within)
        return;
    if (!p->threaded) {
        p->threaded = true;
        p->net->lock = &p->lock;
        biglock_lock(&p->lock);
    }
    p->within = watch_enter_library;
    watch_enter_library(true);
}

/* Starts the recording of stores into the window. Memory that MPI has allocated shares its first and last
 * page with no other data. With a progress thread no stores are recorded: its system calls on read-only pages
 * would fail. */
void watch_start_recording(struct win *w)
{
    if (!w->proc->rma->debug || w->size == 0 || w->flavor == MPI_WIN_FLAVOR_DYNAMIC || w->proc->net->thread ||
        w->mine->on_device)
        return;
    w->stores = stores_open(w->memory, (size_t)w->size, w->flavor != MPI_WIN_FLAVOR_CREATE);
    if (w->stores)
        install_call_hook(w->proc);
}

/* ---- operations ---- */

static size_t watched_message_length(const struct watched *it)
{
    return offsetof(struct watched, runs) + (size_t)it->nruns * sizeof(it->runs[0]);
}

static void send_operation_report(struct win *w, struct win_peer *to, const struct watched *it)
{
    const size_t len = watched_message_length(it);
    if (it->target == w->comm->rank)
        watch_handle_report(w, (const char *)it, len);
    else if (len <= rma_chunk(to))
        rma_send_throttled(to, RMA_WATCH, 0, 0, 0, it, len);
}

void watch_record_call(const struct rma_call *c, uint64_t offset)
{
    struct win *w = c->win;
    struct win_peer *to;
    struct dt_cursor cursor;
    struct watched it = {.origin = w->comm->rank,
                         .target = c->rank,
                         .kind = c->kind,
                         .epoch = w->access == EPOCH_FENCE   ? w->fences
                                  : w->access == EPOCH_START ? EXPOSED
                                                             : PASSIVE};
    if (w->proc->within)
        stores_call_notifies_none();
    dt_cursor_open(&cursor, c->type, c->count, (void *)(uintptr_t)offset);
    const size_t bytes = (size_t)(c->count * c->type->size);
    if (runs_collect_next(&cursor, bytes, WATCH_RUNS, it.runs, &it.nruns) < bytes)
        return;
    find_call_site(it.site, sizeof(it.site));
    it.began = clock_ns();
    /* MPI_Rget may complete before the epoch ends, so later operations are not compared with it. */
    watch_compare(w, &w->watch, &it, !(c->request && c->kind == RMA_IS_GET));
    if (it.epoch == PASSIVE || win_peer_find_or_create(w, c->rank, &to) != 0)
        return;
    if (c->rank != w->comm->rank) {
        to->dirty = true; /* the end of the epoch waits until the target has the report */
        win_peer_mark_busy(to);
    }
    send_operation_report(w, to, &it);
}

/* Reports a finished operation of a passive epoch to a target on this node, whose clock is the same. Only
 * MPI_Win_free waits for the delivery of the report: a target may compute for a long time. */
static void report_passive_operation(struct win *w, struct watched *it)
{
    struct win_peer *to;
    if (it->epoch != PASSIVE || !win_is_rank_on_node(w, it->target) ||
        win_peer_find_or_create(w, it->target, &to) != 0)
        return;
    it->ended = clock_ns();
    to->has_unconfirmed_report |= it->target != w->comm->rank;
    send_operation_report(w, to, it);
}

/* Before a window is freed: marks peers with unconfirmed reports as busy, so that the window waits for
 * them. */
void watch_mark_unconfirmed(struct win *w)
{
    for (uint32_t i = 0; i < w->table_size; i++) {
        struct win_peer *p = w->table[i];
        if (!p || !p->has_unconfirmed_report)
            continue;
        p->has_unconfirmed_report = false;
        p->dirty = true;
        win_peer_mark_busy(p);
    }
}

void watch_handle_report(struct win *w, const char *payload, size_t len)
{
    struct watched it = {0};
    CHECK(len >= offsetof(struct watched, runs) && len <= sizeof(it),
          "a frame of FISHPLATE_DEBUG=rma has a wrong length");
    memcpy(&it, payload, len);
    CHECK(it.nruns >= 0 && it.nruns <= WATCH_RUNS && it.kind >= 0 && it.kind <= RMA_IS_SWAP,
          "a frame of FISHPLATE_DEBUG=rma is inconsistent");
    it.site[sizeof(it.site) - 1] = '\0';
    if (it.epoch == PASSIVE) {
        compare_passive(w, &it);
        return;
    }
    it.stores = w->stores ? stores_next(w->stores) : 0;
    /* Moves earlier operations of the same origin aside: the origin has already compared them. */
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
    watch_compare(w, &w->seen, &it, true);
    while (!list_empty(&own)) {
        struct list *node = own.next;
        list_remove(node);
        list_append(&w->seen, node);
    }
}

static void watch_forget_epoch(struct list *all, int target, uint32_t before)
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

/* Called by MPI_Win_flush_local, which completes only gets. */
void watch_complete_gets(struct win *w, int rank)
{
    list_foreach_safe(pos, after, &w->watch)
    {
        struct watched *o = list_entry(pos, struct watched, link);
        if ((rank >= 0 && o->target != rank) || o->kind != RMA_IS_GET || o->epoch != PASSIVE)
            continue;
        report_passive_operation(w, o);
        list_remove(pos);
        free(o);
    }
}

void watch_forget_rank(struct win *w, int rank)
{
    list_foreach(pos, &w->watch)
    {
        struct watched *o = list_entry(pos, struct watched, link);
        if (rank < 0 || o->target == rank)
            report_passive_operation(w, o);
    }
    watch_forget_epoch(&w->watch, rank, UINT32_MAX);
    watch_forget_epoch(&w->seen, -1, w->fences);
}

void watch_close(struct win *w)
{
    if (w->stores)
        stores_close(w->stores);
    w->stores = NULL;
    watch_forget_epoch(&w->watch, -1, UINT32_MAX);
    watch_forget_epoch(&w->seen, -1, UINT32_MAX);
}
