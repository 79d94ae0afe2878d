/* words.c: prints ranks, times and waits as words.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "words.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

enum { PIECES_MAX = 12 };

void words_print_ranks(FILE *out, const uint32_t *ranks, uint32_t n)
{
    fprintf(out, n == 1 ? "rank " : "ranks ");
    uint32_t pieces = 0;
    for (uint32_t i = 0; i < n;) {
        uint32_t end = i + 1;
        while (end < n && ranks[end] == ranks[end - 1] + 1)
            end++;
        if (++pieces > PIECES_MAX) {
            fprintf(out, " and %u more", n - i);
            return;
        }
        fprintf(out, "%s%u", i == 0 ? "" : end == n ? " and " : ", ", ranks[i]);
        if (end - i == 2 && end == n && i == 0)
            fprintf(out, " and %u", ranks[end - 1]);
        else if (end - i > 1)
            fprintf(out, "-%u", ranks[end - 1]);
        i = end;
    }
}

void words_print_time(FILE *out, uint64_t ns)
{
    const uint64_t s = ns / 1000000000u;
    if (s < 10)
        fprintf(out, "%.1f s", (double)ns * 1e-9);
    else if (s < 120)
        fprintf(out, "%llu s", (unsigned long long)s);
    else if (s < 7200)
        fprintf(out, "%llu min", (unsigned long long)(s / 60));
    else
        fprintf(out, "%.1f h", (double)s / 3600);
}

void words_print_bytes(FILE *out, uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t u = 0;
    while (value >= 10240 && u + 1 < COUNT_OF(units)) {
        value /= 1024;
        u++;
    }
    fprintf(out, u ? "%.1f %s" : "%.0f %s", value, bytes == 1 ? "byte" : units[u]);
}

static const char *words_comm_label(const struct page_wait *wait, const struct page_item *item)
{
    return item->group < PAGE_GROUPS && wait->groups[item->group].label[0] ? wait->groups[item->group].label
                                                                           : "a communicator without a name";
}

static void words_print_peer(FILE *out, const struct page_wait *wait, const struct page_item *item,
                             const char *way)
{
    if (item->peer == PAGE_ANY)
        fprintf(out, "%s any rank", way);
    else if (item->peer < 0)
        fprintf(out, "%s a rank that is not known", way);
    else if (item->rank >= 0 && item->rank != item->peer)
        fprintf(out, "%s %d (rank %d of %s)", way, item->peer, item->rank, words_comm_label(wait, item));
    else
        fprintf(out, "%s %d", way, item->peer);
}

static void words_print_message(FILE *out, const struct page_wait *wait, const struct page_item *item)
{
    words_print_peer(out, wait, item, item->kind == PAGE_SEND ? "to" : "from");
    if (item->tag == PAGE_ANY)
        fprintf(out, ", any tag, ");
    else
        fprintf(out, ", tag %d, ", item->tag);
    if (item->kind == PAGE_SEND) {
        words_print_bytes(out, item->bytes);
        fprintf(out, ", ");
    }
    fprintf(out, "%s", words_comm_label(wait, item));
}

static void words_print_item(FILE *out, const struct page_wait *wait, const struct page_item *item)
{
    switch (item->kind) {
    case PAGE_RECV:
    case PAGE_PROBE:
    case PAGE_SEND:
        words_print_message(out, wait, item);
        break;
    case PAGE_COLL:
        fprintf(out, "%s", words_comm_label(wait, item));
        if (item->rank >= 0)
            fprintf(out, ", root %d", item->rank);
        if (item->number)
            fprintf(out, ", collective number %llu", (unsigned long long)item->number);
        break;
    case PAGE_CREATION:
        fprintf(out, "%s", words_comm_label(wait, item));
        break;
    case PAGE_STALLED_SEND:
        fprintf(out, "room for messages to %d", item->peer);
        break;
    case PAGE_LOCK:
        fprintf(out, "the %s", words_comm_label(wait, item));
        if (item->peer >= 0)
            fprintf(out, ", which rank %d holds", item->peer);
        break;
    case PAGE_NAMED:
        fprintf(out, "the %s", words_comm_label(wait, item));
        if (item->peer >= 0)
            fprintf(out, ", from rank %d", item->peer);
        break;
    default:
        fprintf(out, "something that is not known here");
    }
}

static const char *item_kind_name(const struct page_item *item)
{
    static const char *const words[] = {"receive", "send", "probe", "collective", "collective", "",
                                        "lock",    "",     ""};
    return words[item->kind];
}

void words_print_wait(FILE *out, const struct page_wait *wait, int only)
{
    const char *call = wait->call[0] ? wait->call : "an MPI call";
    const bool one = only >= 0 && (uint32_t)only < wait->nitems;
    const uint32_t shown = one || wait->nitems == 1 ? 1 : MIN(wait->nitems, 4);
    fprintf(out, "%s(", call);
    if (wait->total > 1)
        fprintf(out, "%s %u requests: ", wait->any ? "any of" : one ? "one of" : "all of", wait->total);
    for (uint32_t i = 0; i < shown; i++) {
        const struct page_item *item = &wait->items[one ? (uint32_t)only : i];
        fprintf(out, "%s", i ? "; " : "");
        if (wait->total > 1 || strstr(call, "MPI_Wait") == call)
            fprintf(out, "%s%s", item_kind_name(item), *item_kind_name(item) ? " " : "");
        words_print_item(out, wait, item);
    }
    if (!one && wait->total > shown && wait->nitems > 0)
        fprintf(out, "; ...");
    fprintf(out, ")");
}

/* Prints what a rank does, without the duration: "waits in MPI_Recv(...) at solver.c:210", "is stopped". */
static void words_print_rank_activity(FILE *out, const struct wording *t, uint32_t rank, int item)
{
    const struct why_rank *r = &t->why->rank[rank];
    const struct page_wait *wait = why_get_first_wait(r);
    const char *place = wait ? place_text(t->places, &wait->caller) : "";
    switch (r->state) {
    case WHY_WAITS:
        fprintf(out, "waits in ");
        words_print_wait(out, wait, item);
        if (*place)
            fprintf(out, " at %s", place);
        break;
    case WHY_STOPPED:
        fprintf(out, "is stopped");
        if (wait || (r->page && r->page->waits[0].id))
            fprintf(out, " while it waits in %s", r->page->waits[0].call);
        break;
    case WHY_FINISHED:
        fprintf(out, "has left MPI_Finalize");
        break;
    case WHY_GONE:
        fprintf(out, "has ended");
        break;
    case WHY_RUNS:
        if (r->asleep)
            fprintf(out, "is outside MPI and asleep: it sleeps, or waits for a file or another process");
        else
            fprintf(out, "computes: it does not wait in MPI");
        break;
    default:
        fprintf(out, "was not seen: it is not in MPI yet, has ended, or its host did not answer");
    }
}

/* Describes a finding in a few lines: what is wrong, what each rank does, and what nearly matches. Ranks that
 * do the same are described together. */

enum { LINES_MAX = 10, NEAR_MAX = 3 };

struct line {
    uint32_t rank;
    char *text;
};

static int words_finding_compare_by_text(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    const int order = strcmp(x->text, y->text);
    return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

/* Orders groups by their first rank: ordering by size would hide the order of a cycle. */
static int words_finding_compare_by_first(const void *a, const void *b)
{
    const uint32_t x = (*(const struct line *const *)a)->rank, y = (*(const struct line *const *)b)->rank;
    return (x > y) - (x < y);
}

static char *finding_rank_activity(const struct wording *t, uint32_t rank, int item)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    words_print_rank_activity(out, t, rank, item);
    fclose(out);
    return text;
}

static void finding_print_durations(FILE *out, const struct wording *t, const uint32_t *ranks, uint32_t n)
{
    uint64_t longest = 0;
    for (uint32_t i = 0; i < n; i++)
        longest = MAX(longest, t->waited_ns[ranks[i]]);
    if (longest == 0)
        return;
    fprintf(out, " for ");
    words_print_time(out, longest);
}

/* Prints one line such as "rank 3 waits in ... for 12 s" for all ranks that do the same. */
static void finding_print_group(FILE *out, const struct wording *t, const struct line *lines, uint32_t n)
{
    uint32_t *ranks = malloc(n * sizeof(*ranks));
    if (!ranks)
        return;
    for (uint32_t i = 0; i < n; i++)
        ranks[i] = lines[i].rank;
    fprintf(out, "    ");
    words_print_ranks(out, ranks, n);
    const char *text = lines[0].text;
    if (n > 1 && strncmp(text, "waits ", 6) == 0)
        fprintf(out, " wait %s", text + 6);
    else if (n > 1 && strncmp(text, "is ", 3) == 0)
        fprintf(out, " are %s", text + 3);
    else if (n > 1 && strncmp(text, "has ", 4) == 0)
        fprintf(out, " have %s", text + 4);
    else if (n > 1 && strncmp(text, "computes: it does", 17) == 0)
        fprintf(out, " compute: they do%s", text + 17);
    else
        fprintf(out, " %s", text);
    finding_print_durations(out, t, ranks, n);
    fprintf(out, "\n");
    free(ranks);
}

static void finding_print_ranks(FILE *out, const struct wording *t, const uint32_t *ranks, uint32_t n)
{
    struct line *lines = calloc(n ? n : 1, sizeof(*lines));
    struct line **groups = calloc((size_t)n + 1, sizeof(struct line *));
    uint32_t ngroups = 0;
    for (uint32_t i = 0; lines && groups && i < n; i++) {
        lines[i].rank = ranks[i];
        lines[i].text = finding_rank_activity(t, ranks[i], t->why->rank[ranks[i]].item);
        if (!lines[i].text)
            lines[i].text = strdup("");
    }
    if (lines && groups) {
        qsort(lines, n, sizeof(*lines), words_finding_compare_by_text);
        for (uint32_t i = 0; i < n; i++)
            if (i == 0 || strcmp(lines[i].text, lines[i - 1].text) != 0)
                groups[ngroups++] = &lines[i];
        struct line *end = lines + n;
        qsort(groups, ngroups, sizeof(struct line *), words_finding_compare_by_first);
        for (uint32_t g = 0; g < ngroups; g++) {
            uint32_t count = 1;
            while (groups[g] + count < end && strcmp(groups[g][count].text, groups[g]->text) == 0)
                count++;
            if (g < LINES_MAX)
                finding_print_group(out, t, groups[g], count);
        }
        if (ngroups > LINES_MAX)
            fprintf(out, "    ... and %u more lines like these (--json has them all)\n", ngroups - LINES_MAX);
        for (uint32_t i = 0; i < n; i++)
            free(lines[i].text);
    }
    free(lines);
    free(groups);
}

static const char *context_label(const struct page *page, uint32_t context)
{
    for (int i = 0; i < PAGE_WAITS; i++)
        for (int g = 0; page->waits[i].id && g < PAGE_GROUPS; g++)
            if (page->waits[i].groups[g].size > 0 && page->waits[i].groups[g].context == context)
                return page->waits[i].groups[g].label;
    for (int i = 0; i < PAGE_COMMS; i++)
        if (atomic_load_explicit(&page->comms[i].used, memory_order_relaxed) &&
            page->comms[i].context == context)
            return page->comms[i].label;
    return context == 0 ? "MPI_COMM_WORLD" : "another communicator";
}

static void finding_print_mismatch(FILE *out, const struct page_item *item, int tag, uint32_t context,
                                   const char *label)
{
    if (context != item->context)
        fprintf(out, " is on %s, not on the communicator of the receive", label);
    else
        fprintf(out, " has tag %d, not %d", tag, item->tag);
    fprintf(out, "\n");
}

/* Prints unexpected messages and pending sends that nearly match the item, each prefixed with `before`. */
static void words_print_near_misses(FILE *out, const struct wording *t, uint32_t rank,
                                    const struct page_item *item, const char *before)
{
    const struct page *page = t->why->rank[rank].page;
    int shown = 0;
    if (item->kind != PAGE_RECV && item->kind != PAGE_PROBE)
        return;
    for (uint32_t i = 0; i < page->nmessages && shown < NEAR_MAX; i++) {
        const struct page_message *m = &page->messages_waiting[i];
        if (item->peer != PAGE_ANY && m->peer != item->peer)
            continue;
        fprintf(out, "%sa message of ", before);
        words_print_bytes(out, m->bytes);
        fprintf(out, " from %d has arrived, but it", m->peer);
        finding_print_mismatch(out, item, m->tag, m->context, context_label(page, m->context));
        shown++;
    }
    if (item->peer < 0 || (uint32_t)item->peer >= t->why->n)
        return;
    const struct page_wait *theirs = why_get_first_wait(&t->why->rank[item->peer]);
    for (uint32_t k = 0; theirs && k < theirs->nitems && shown < NEAR_MAX; k++) {
        const struct page_item *send = &theirs->items[k];
        if (send->kind != PAGE_SEND || send->peer != (int32_t)rank)
            continue;
        fprintf(out, "%sthe message that %d is sending", before, item->peer);
        finding_print_mismatch(out, item, send->tag, send->context,
                               context_label(t->why->rank[item->peer].page, send->context));
        shown++;
    }
    if (shown == 0 && t->why->rank[item->peer].page && item->tag >= 0)
        fprintf(out, "%srank %d has sent nothing that fits, or it has been received already\n", before,
                item->peer);
}

static void finding_print_cycle(FILE *out, const struct wording *t, const struct why_finding *f)
{
    for (uint32_t i = 0; i < f->nranks && i < LINES_MAX; i++) {
        const struct why_rank *r = &t->why->rank[f->ranks[i]];
        const struct page_wait *wait = why_get_first_wait(r);
        finding_print_ranks(out, t, &f->ranks[i], 1);
        if (wait && r->item >= 0) {
            const struct page_item *item = &wait->items[r->item];
            if (item->kind == PAGE_COLL || item->kind == PAGE_CREATION)
                fprintf(out, "        rank %d has not come to it\n", r->next);
            else if (item->kind == PAGE_SEND)
                fprintf(out, "        rank %d has posted no receive that takes it\n", r->next);
            words_print_near_misses(out, t, f->ranks[i], item, "        ");
        }
    }
    if (f->nranks > LINES_MAX)
        fprintf(out, "    ... and %u more ranks of the cycle\n", f->nranks - LINES_MAX);
}

static void finding_print_collective(FILE *out, const struct wording *t, const struct why_meeting *m)
{
    if (m->nwaiting)
        finding_print_ranks(out, t, m->waiting, m->nwaiting);
    if (m->nmissing) {
        fprintf(out, "  Not there:\n");
        finding_print_ranks(out, t, m->missing, m->nmissing);
    }
    bool left = false;
    for (uint32_t i = 0; i < m->nstrangers; i++)
        left = left || t->why->rank[m->strangers[i]].state != WHY_WAITS;
    if (left) {
        fprintf(out, "  Called another collective instead, and left it:\n");
        finding_print_ranks(out, t, m->strangers, m->nstrangers);
    }
}

static int words_finding_compare_by_rank(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void title_ranks(FILE *out, const uint32_t *ranks, uint32_t n)
{
    uint32_t *sorted = malloc((n ? n : 1) * sizeof(*sorted));
    if (!sorted)
        return;
    memcpy(sorted, ranks, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), words_finding_compare_by_rank);
    words_print_ranks(out, sorted, n);
    free(sorted);
}

/* Prints the title of a finding: "Deadlock of ranks 0-1". */
static void words_print_title(FILE *out, const struct wording *t, const struct why_finding *f)
{
    const struct why_meeting *m = f->meeting;
    const char *call = m && m->wait->call[0] ? m->wait->call : "a collective";
    (void)t;
    switch (f->kind) {
    case WHY_DEADLOCK:
        fprintf(out, "Deadlock: ");
        title_ranks(out, f->ranks, f->nranks);
        fprintf(out, f->nranks == 1 ? " waits for itself" : " wait for each other in a circle");
        break;
    case WHY_PEER_LEFT:
        fprintf(out, "Rank %u waits for rank %u, which has %s", f->ranks[0], f->ranks[1],
                t->why->rank[f->ranks[1]].state == WHY_FINISHED ? "left MPI_Finalize" : "ended");
        break;
    case WHY_MISMATCH:
        fprintf(out, "Collective calls do not match on %s", m->group->label);
        break;
    case WHY_MISSING:
        fprintf(out, "%s on %s waits for ", call, m->group->label);
        title_ranks(out, m->missing, m->nmissing);
        break;
    case WHY_SLOW:
        fprintf(out, "Others wait for ");
        title_ranks(out, f->ranks, f->nranks);
        break;
    case WHY_NOT_TRANSFERRED:
        fprintf(out, "A message from rank %u to rank %u has its receive, but does not move", f->ranks[0],
                f->ranks[1]);
        break;
    default:
        fprintf(out, "What ");
        title_ranks(out, f->ranks, f->nranks);
        fprintf(out, " wait%s for is not known here", f->nranks == 1 ? "s" : "");
    }
}

void words_finding(FILE *out, const struct wording *t, const struct why_finding *f)
{
    words_print_title(out, t, f);
    fprintf(out, ".\n");
    switch (f->kind) {
    case WHY_DEADLOCK:
    case WHY_PEER_LEFT:
        finding_print_cycle(out, t, f);
        break;
    case WHY_MISMATCH:
    case WHY_MISSING:
        finding_print_collective(out, t, f->meeting);
        break;
    default:
        finding_print_ranks(out, t, f->ranks, f->nranks);
    }
    if (f->kind == WHY_NOT_TRANSFERRED)
        fprintf(out, "  This is not the program's doing: look at the network, or report it.\n");
    if (f->nbehind) {
        fprintf(out, "  Behind them:\n");
        finding_print_ranks(out, t, f->behind, f->nbehind);
    }
}
