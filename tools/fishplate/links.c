/* links.c: compares the bandwidth of links and finds slow ones.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "links.h"

#include <stdlib.h>

#include "cli/json.h"
#include "cli/number.h"

/* links; above this number the links of the judged node are not excluded: they hardly change the medians */
enum { MANY = 20000 };

static bool links_touches_node(const struct link_seen *l, int end)
{
    return l->ends[0] == end || l->ends[1] == end;
}

static double link_seconds_per_byte(const struct link_seen *l)
{
    return l->bytes > 0 ? (double)l->ns * 1e-9 / (double)l->bytes : 0;
}

struct others {
    size_t n;
    double best, mean; /* medians in seconds per byte */
};

/* Computes the medians of links of this kind that do not touch node `end` (-1: all). room: n numbers. */
static struct others links_compare_others(const struct link_seen *list, size_t n, unsigned kind, int end,
                                          double *room)
{
    struct others o = {0};
    for (size_t i = 0; i < n; i++)
        if (list[i].kind == kind && !links_touches_node(&list[i], end))
            room[o.n++] = list[i].best;
    if (o.n == 0)
        return o;
    o.best = number_median(room, o.n);
    o.n = 0;
    for (size_t i = 0; i < n; i++)
        if (list[i].kind == kind && !links_touches_node(&list[i], end))
            room[o.n++] = link_seconds_per_byte(&list[i]);
    o.mean = number_median(room, o.n);
    return o;
}

static void links_judge_one(struct link_seen *l, const struct others *o)
{
    if (o->n < LINK_FEW || o->best <= 0 || o->mean <= 0)
        return;
    const double times = l->best / o->best;
    if (times <= l->times)
        return;
    l->times = times;
    l->others = 1 / o->mean;
    l->slow =
        l->messages >= LINK_MESSAGES && times >= LINK_SLOW && link_seconds_per_byte(l) >= LINK_SLOW * o->mean;
}

static int links_compare_by_kind_and_end(const void *a, const void *b)
{
    const struct link_seen *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return x->ends[0] - y->ends[0];
}

static int compare_slowest_first(const void *a, const void *b)
{
    const struct link_seen *x = a, *y = b;
    if (x->slow != y->slow)
        return x->slow ? -1 : 1;
    if (x->times != y->times)
        return x->times > y->times ? -1 : 1;
    return x->from != y->from ? x->from - y->from : x->to - y->to;
}

static void swap_link_ends(struct link_seen *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int first = list[i].ends[0];
        list[i].ends[0] = list[i].ends[1];
        list[i].ends[1] = first;
    }
}

/* Judges all links with the same first end in one pass. */
static void judge_links_by_end(struct link_seen *list, size_t n, double *room)
{
    struct others o = {0};
    qsort(list, n, sizeof(*list), links_compare_by_kind_and_end);
    for (size_t i = 0; i < n; i++) {
        const bool known =
            i > 0 && list[i].kind == list[i - 1].kind && (n > MANY || list[i].ends[0] == list[i - 1].ends[0]);
        if (!known)
            o = links_compare_others(list, n, list[i].kind, n > MANY ? -1 : list[i].ends[0], room);
        links_judge_one(&list[i], &o);
    }
}

static int compare_same_end_first(const void *a, const void *b)
{
    const struct link_seen *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->from != y->from)
        return x->from - y->from;
    return x->to != y->to ? x->to - y->to : x->rail - y->rail;
}

size_t links_merge(struct link_seen *list, size_t n)
{
    size_t kept = 0;
    if (n > 0)
        qsort(list, n, sizeof(*list), compare_same_end_first);
    for (size_t i = 0; i < n; i++) {
        struct link_seen *last = kept > 0 ? &list[kept - 1] : NULL;
        if (!last || compare_same_end_first(last, &list[i]) != 0) {
            list[kept++] = list[i];
            continue;
        }
        last->messages += list[i].messages;
        last->bytes += list[i].bytes;
        last->ns += list[i].ns;
        last->best = list[i].best < last->best ? list[i].best : last->best;
    }
    return kept;
}

size_t links_judge(struct link_seen *list, size_t n)
{
    double *room = calloc(n + 1, sizeof(*room));
    size_t slow = 0;
    if (!room || n == 0) {
        free(room);
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        list[i].rate = list[i].ns > 0 ? (double)list[i].bytes * 1e9 / (double)list[i].ns : 0;
        list[i].times = list[i].others = 0;
        list[i].slow = false;
    }
    judge_links_by_end(list, n, room);
    swap_link_ends(list, n);
    judge_links_by_end(list, n, room);
    swap_link_ends(list, n);
    qsort(list, n, sizeof(*list), compare_slowest_first);
    while (slow < n && list[slow].slow)
        slow++;
    free(room);
    return slow;
}

int links_find_slow_node(const struct link_seen *list, size_t n)
{
    int found = -1;
    if (n < 2 || !list[1].slow)
        return -1;
    for (int e = 0; e < 2; e++) {
        size_t i = 0;
        while (i < n && list[i].slow && links_touches_node(&list[i], list[0].ends[e]))
            i++;
        if (i < n && list[i].slow)
            continue;
        if (found >= 0 && found != list[0].ends[e])
            return -1; /* all slow links join the same two nodes: the slow node is unknown */
        found = list[0].ends[e];
    }
    return found;
}

void links_json(struct json *j, const struct link_seen *l)
{
    json_object(j, NULL);
    json_members(j, "from=%d to=%d rail=%d how=%s messages=%lld bytes=%lld", l->from, l->to, l->rail, l->how,
                 (long long)l->messages, (long long)l->bytes);
    json_members(j, "seconds=%g bytes_per_second=%g others_bytes_per_second=%g times_slower=%g",
                 (double)l->ns * 1e-9, l->rate, l->others, l->times);
    json_bool(j, "slow", l->slow);
    json_end(j);
}
