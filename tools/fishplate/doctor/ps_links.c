/* ps_links.c: finds the slowest link of a job from the pages of its ranks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "../links.h"
#include "ps.h"
#include "words.h"

enum { FEW = 4 };

static struct link_seen links_read_pace(const struct snapshot *l, const struct sample *s,
                                        const struct page_pace *p)
{
    const int me = (int)s->page.rank;
    struct link_seen out = {.from = p->out ? me : p->peer,
                            .to = p->out ? p->peer : me,
                            .kind = (unsigned)p->class << 1 | (p->local != 0),
                            .rail = p->rail,
                            .messages = p->messages,
                            .bytes = p->bytes,
                            .ns = p->ns,
                            .best = (double)p->best * 1e-9 / 65536,
                            .how = p->how};
    const int ends[2] = {out.from, out.to};
    for (int e = 0; e < 2; e++) {
        const struct sample *at = l->samples[ends[e]];
        out.ends[e] = p->local ? ends[e] : at ? (int)at->page.node : -2 - ends[e];
    }
    return out;
}

/* Returns all links that the ranks report; the caller frees the list. */
static struct link_seen *links_collect(const struct snapshot *l, size_t *count)
{
    struct link_seen *list = calloc((size_t)l->seen * PAGE_PACES + 1, sizeof(*list));
    *count = 0;
    for (uint32_t r = 0; list && r < l->ranks; r++) {
        const struct sample *s = l->samples[r];
        for (uint32_t i = 0; s && i < s->page.npaces; i++) {
            const struct page_pace *p = &s->page.paces[i];
            const bool sound = p->peer >= 0 && (uint32_t)p->peer < l->ranks && (uint32_t)p->peer != r &&
                               p->bytes > 0 && p->ns > 0 && p->best > 0;
            if (sound)
                list[(*count)++] = links_read_pace(l, s, p);
        }
    }
    *count = list ? links_merge(list, *count) : 0;
    return list;
}

static const char *links_rank_host(const struct snapshot *l, int rank)
{
    return l->samples[rank] ? l->samples[rank]->page.host : "?";
}

static void links_print(FILE *out, const struct snapshot *l, const struct link_seen *k)
{
    fprintf(out, "%s: rank %d (%s) to rank %d (%s), rail %d, %s: ", k->slow ? "Slow link" : "Slowest link",
            k->from, links_rank_host(l, k->from), k->to, links_rank_host(l, k->to), k->rail, k->how);
    words_print_bytes(out, (uint64_t)k->rate);
    fprintf(out, "/s; others ");
    words_print_bytes(out, (uint64_t)k->others);
    fprintf(out, "/s\n");
}

/* Returns the host name of the node with this number; NULL if no rank of it was sampled. */
static const char *node_host(const struct snapshot *l, int node)
{
    for (uint32_t r = 0; r < l->ranks; r++)
        if (l->samples[r] && (int)l->samples[r]->page.node == node)
            return l->samples[r]->page.host;
    return NULL;
}

static const char *links_find_slow_host(const struct snapshot *l, const struct link_seen *list, size_t n)
{
    const int end = links_find_slow_node(list, n);
    return end >= 0 && !(list[0].kind & 1) ? node_host(l, end) : NULL;
}

void ps_links(FILE *out, const struct snapshot *l)
{
    size_t n;
    struct link_seen *list = links_collect(l, &n);
    const size_t slow = list ? links_judge(list, n) : 0;
    for (size_t i = 0; i < slow && i < FEW; i++)
        links_print(out, l, &list[i]);
    if (slow > FEW)
        fprintf(out, "... and %zu more slow links\n", slow - FEW);
    const char *host = links_find_slow_host(l, list, n);
    if (host)
        fprintf(out, "All slow links lead to or from %s. `fishplate check` measures its ports.\n", host);
    else if (slow == 0 && n > 0 && list[0].times > 0)
        links_print(out, l, &list[0]);
    free(list);
}

void ps_links_json(struct json *j, const struct snapshot *l)
{
    size_t n;
    struct link_seen *list = links_collect(l, &n);
    json_int(j, "slow_links", list ? (long long)links_judge(list, n) : 0);
    if (list && links_find_slow_host(l, list, n))
        json_string(j, "slow_host", links_find_slow_host(l, list, n));
    json_array(j, "slowest_links");
    for (size_t i = 0; list && i < n && (i < FEW || list[i].slow); i++)
        links_json(j, &list[i]);
    json_end(j);
    free(list);
}
