/* words.c: prints ranks, times and waits as words.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "words.h"

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

void words_print_rank_activity(FILE *out, const struct wording *t, uint32_t rank, int item)
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
