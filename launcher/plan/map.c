/* map.c: which rank runs where. First each rank is assigned to a bin (a host, or a virtual node of this one);
 * hosts, nodes and local ranks follow from the bins.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "boot/nodemap.h"
#include "plan/batch.h"
#include "plan/hosts.h"
#include "plan/rankfile.h"
#include "plan/slurm.h"
#include "plan/topo.h"
#include "cli/number.h"

/* Fills bins in turn, each with its share, and starts over when all are full. */
static void map_assign_blocks(uint32_t size, uint32_t nbins, const uint32_t *share, uint32_t *bin_of)
{
    uint32_t r = 0;
    while (r < size)
        for (uint32_t b = 0; b < nbins && r < size; b++)
            for (uint32_t k = 0; k < share[b] && r < size; k++)
                bin_of[r++] = b;
}

/* Assigns one rank to each bin in turn; full bins are skipped while others have room. */
static void assign_round_robin(uint32_t size, uint32_t nbins, const uint32_t *share, uint32_t *bin_of)
{
    uint32_t *used = xcalloc(nbins, sizeof(*used));
    uint32_t r = 0;
    while (r < size) {
        uint32_t before = r;
        for (uint32_t b = 0; b < nbins && r < size; b++)
            if (used[b] < share[b]) {
                used[b]++;
                bin_of[r++] = b;
            }
        if (r == before)
            memset(used, 0, nbins * sizeof(*used));
    }
    free(used);
}

/* Applies -rank-by: keeps the number of ranks of each bin and renumbers them by bin or round-robin. */
static void map_renumber_ranks(const struct options *o, uint32_t size, uint32_t nbins, uint32_t *bin_of)
{
    uint32_t *count = xcalloc(nbins, sizeof(*count));
    if (o->rank_by_given) {
        for (uint32_t r = 0; r < size; r++)
            count[bin_of[r]]++;
        for (uint32_t r = 0; r < size;)
            for (uint32_t b = 0; b < nbins; b++)
                for (uint32_t k = o->rank_by == MAP_NODE ? 1 : count[b]; k > 0 && count[b] > 0; k--) {
                    count[b]--;
                    bin_of[r++] = b;
                }
    }
    free(count);
}

static void map_place_ranks(const struct options *o, uint32_t size, uint32_t nbins, const uint32_t *share,
                            uint32_t *bin_of)
{
    if (o->map_by == MAP_NODE)
        assign_round_robin(size, nbins, share, bin_of);
    else
        map_assign_blocks(size, nbins, share, bin_of);
    map_renumber_ranks(o, size, nbins, bin_of);
}

/* Returns how many ranks a host can run: its slots are cores, of which each rank uses -cpus-per-rank. */
static uint32_t map_host_capacity(const struct options *o, const struct host *h)
{
    uint32_t per = o->cpus_per_rank > 1 ? (uint32_t)o->cpus_per_rank : 1;
    return h->slots / per > 0 ? h->slots / per : 1;
}

/* Returns the ranks per node that the user requested; 0: not requested. Sockets and other units are
 * counted on this machine; other hosts are assumed to have as many. */
static uint32_t ranks_per_node(const struct options *o)
{
    return o->ppr_unit <= BIND_NONE ? (uint32_t)o->ppn : (uint32_t)o->ppr * topo_count(o->ppr_unit);
}

/* Returns how many ranks each bin gets in one round of the assignment. */
static uint32_t *map_bin_shares(const struct options *o, const struct hosts *h, uint32_t size, uint32_t nbins)
{
    const uint32_t ppn = ranks_per_node(o);
    uint32_t *share = xcalloc(nbins, sizeof(*share));
    for (uint32_t b = 0; b < nbins; b++) {
        if (ppn)
            share[b] = ppn;
        else if (o->vnodes)
            share[b] = size / nbins + (b < size % nbins);
        else
            share[b] = nbins == 1 ? size : map_host_capacity(o, &h->v[b]);
    }
    return share;
}

static uint32_t count_ranks(const struct options *o, const struct hosts *h)
{
    const uint32_t ppn = ranks_per_node(o);
    uint64_t size = 0, slots = 0;
    for (uint32_t i = 0; i < h->n; i++)
        slots += ppn ? ppn : map_host_capacity(o, &h->v[i]);
    if (h->ranks)
        slots = h->ranks->n;
    for (unsigned i = 0; i < o->napps; i++) {
        if (o->apps[i].n == 0)
            o->apps[i].n = o->napps > 1 ? 1 : (long)slots;
        size += (uint64_t)o->apps[i].n;
    }
    if (o->ppr && size > slots && !o->oversubscribe)
        message_print("Note: -map-by ppr places %llu rank%s on these hosts, and the job has %llu: the others "
                      "are placed "
                      "in further rounds (-oversubscribe turns this note off).",
                      (unsigned long long)slots, slots == 1 ? "" : "s", (unsigned long long)size);
    if (size > 1 << 24)
        launcher_die(STATUS_USAGE, "%llu ranks are more than mpiexec can start.", (unsigned long long)size);
    return (uint32_t)size;
}

/* Prints a note if ranks share cores; also into files, because logs of batch jobs must explain a slow run. */
static void notice_oversubscription(const struct options *o, const struct hosts *h, const struct layout *l)
{
    bool listed = o->hosts.n || o->hostfile || slurm_is_allocation() || batch_is_allocation();
    if (!listed && o->bind == BIND_CORE)
        return; /* too many ranks are an error of the binding */
    uint32_t *count = xcalloc(h->n, sizeof(*count));
    for (uint32_t r = 0; r < l->size; r++)
        count[l->host_of[r]]++;
    for (uint32_t i = 0; i < h->n && !o->oversubscribe; i++)
        if (h->v[i].counted && count[i] > map_host_capacity(o, &h->v[i])) {
            message_print(
                "Note: %u ranks share the %u %s%s of host %s and will take turns (-oversubscribe turns "
                "this note off).",
                count[i], h->v[i].slots, listed ? "slot" : "core", h->v[i].slots == 1 ? "" : "s",
                h->v[i].name);
            break;
        }
    free(count);
}

/* Numbers nodes in the order of their first rank, so that nodes without ranks get no number. */
static void number_nodes(struct layout *l, const uint32_t *bin_of, uint32_t nbins)
{
    uint32_t *number = xcalloc(nbins, sizeof(*number));
    l->node_size = xcalloc(nbins, sizeof(*l->node_size));
    for (uint32_t r = 0; r < l->size; r++) {
        uint32_t *n = &number[bin_of[r]];
        if (*n == 0)
            *n = ++l->nnodes;
        l->node_of[r] = *n - 1;
        l->local_rank[r] = l->node_size[*n - 1]++;
    }
    free(number);
    for (uint32_t i = 0; i < l->nnodes; i++)
        if (l->node_size[i] > NODE_RANKS_MAX)
            launcher_die(STATUS_USAGE,
                         "%u ranks on one node: shared memory connects at most %u. Use more hosts.",
                         l->node_size[i], NODE_RANKS_MAX);
}

static uint32_t find_host(const struct options *o, const struct hosts *h, uint32_t rank)
{
    const char *name = h->ranks->host[rank];
    long index;
    if (strncmp(name, "+n", 2) == 0 && number_parse_integer(name + 2, 0, (long)h->nlisted - 1, &index))
        return h->listed[index].host;
    for (uint32_t i = 0; i < h->nlisted; i++)
        if (strcmp(h->listed[i].name, name) == 0)
            return h->listed[i].host;
    launcher_die(STATUS_USAGE,
                 "The rank file %s places rank %u on %s, which is not one of the job's %u host%s.",
                 o->rankfile, rank, name, h->n, h->n == 1 ? "" : "s");
}

static void place_by_file(const struct options *o, const struct hosts *h, struct layout *l, uint32_t *bin_of)
{
    if (l->size > h->ranks->n)
        launcher_die(STATUS_USAGE, "The rank file %s places %u rank%s, and the job has %u.", o->rankfile,
                     h->ranks->n, h->ranks->n == 1 ? "" : "s", l->size);
    l->slots = h->ranks->slots;
    for (uint32_t r = 0; r < l->size; r++)
        bin_of[r] = find_host(o, h, r);
}

uint32_t hosts_universe(const struct options *o, const struct hosts *h, uint32_t size)
{
    uint64_t slots = (uint64_t)o->universe;
    for (uint32_t i = 0; i < h->n && o->universe == 0; i++)
        slots += h->v[i].slots;
    return slots > size ? (uint32_t)slots : size;
}

void hosts_layout(const struct options *o, const struct hosts *h, struct layout *l)
{
    *l = (struct layout){.size = count_ranks(o, h)};
    uint32_t nbins = o->vnodes ? (uint32_t)o->vnodes : h->n;
    uint32_t *share = map_bin_shares(o, h, l->size, nbins), *bin_of = xcalloc(l->size, sizeof(*bin_of));
    l->host_of = xcalloc(l->size, sizeof(*l->host_of));
    l->node_of = xcalloc(l->size, sizeof(*l->node_of));
    l->app_of = xcalloc(l->size, sizeof(*l->app_of));
    l->local_rank = xcalloc(l->size, sizeof(*l->local_rank));
    if (h->ranks)
        place_by_file(o, h, l, bin_of);
    else
        map_place_ranks(o, l->size, nbins, share, bin_of);
    for (uint32_t r = 0; r < l->size && !o->vnodes; r++)
        l->host_of[r] = bin_of[r];
    number_nodes(l, bin_of, nbins);
    uint32_t r = 0;
    for (unsigned a = 0; a < o->napps; a++)
        for (long k = 0; k < o->apps[a].n; k++)
            l->app_of[r++] = a;
    notice_oversubscription(o, h, l);
    free(share);
    free(bin_of);
}
