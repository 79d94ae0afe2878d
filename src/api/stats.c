/* stats.c: FISHPLATE_STATS: at MPI_Finalize rank 0 prints the sums of the counters of all ranks, and which
 * rank sent how much to which.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/tool.h"
#include "base/counter.h"
#include "base/log.h"
#include "boot/boot.h"
#include "impl.h"
#include "obj/handle.h"
#include "net/adapter_port.h"

/* Which rank sent how much to which rank and through which transport, for FISHPLATE_STATS. FISHPLATE_STATS:
 * how many messages and bytes of all ranks went through which transport and adapter, and to which rank.
 * Collectives in the shared memory of a node are not messages (counter coll_shared). */

/* Messages that one rank has sent to one other rank. */
struct stats_flow {
    uint64_t messages, bytes;
    uint32_t from, to;
    char transport[16];
    char over[160]; /* the adapter and its description; "" for shared memory */
    char made[24];  /* kind of carrier: "memory", "hardware", "softib-tcp" ... */
};

struct stats_flows {
    struct stats_flow *list;  /* on rank 0 */
    struct stats_flow *spare; /* room for `count` more entries, in the same allocation */
    uint64_t count;
};

enum { FEW_PAIRS = 24 };

static struct stats_flow make_flow(const struct peer *peer, uint32_t me)
{
    const struct net_port *port = peer->transport->port;
    struct stats_flow f = {
        .messages = peer->sent_messages, .bytes = peer->sent_bytes, .from = me, .to = peer->rank};
    snprintf(f.transport, sizeof(f.transport), "%s", peer->ops->name);
    snprintf(f.made, sizeof(f.made), "%s", port ? net_port_implementation(port) : "memory");
    if (port)
        net_port_describe(port, f.over, sizeof(f.over));
    return f;
}

static struct stats_flow *own_flows(const struct proc *p, uint64_t *count)
{
    struct stats_flow *list = calloc(p->size + 1, sizeof(*list));
    *count = 0;
    for (uint32_t r = 0; list && r < p->size; r++)
        if (p->net->peers[r] && p->net->peers[r]->sent_messages > 0)
            list[(*count)++] = make_flow(p->net->peers[r], p->rank);
    return list;
}

/* Computes the position of each rank's flows in the list of all. */
static uint64_t compute_flow_offsets(const uint64_t *counts, uint32_t ranks, MPI_Count *bytes,
                                     MPI_Count *places)
{
    uint64_t sum = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        bytes[r] = (MPI_Count)(counts[r] * sizeof(struct stats_flow));
        places[r] = (MPI_Count)(sum * sizeof(struct stats_flow));
        sum += counts[r];
    }
    return sum;
}

/* Collective over the world. Returns MPI_ERR_NO_MEM on all ranks unless `mine` is true on all ranks. */
static int stats_agree_on_memory(struct proc *p, bool mine)
{
    int have = mine, all = 0;
    int rc = impl_Allreduce(&have, &all, 1, dtype_from_handle(MPI_INT), op_from_handle(MPI_MIN), p->world);
    if (rc == 0 && !all)
        rc = err_set(MPI_ERR_NO_MEM, "out of memory for the summary of FISHPLATE_STATS");
    return rc;
}

/* Collective over the world; counts what was sent before the call. */
static int stats_flows_gather(struct proc *p, struct stats_flows *all)
{
    struct dtype *byte = dtype_from_handle(MPI_BYTE), *number = dtype_from_handle(MPI_UINT64_T);
    uint64_t count, *counts = calloc(p->size, sizeof(*counts));
    MPI_Count *bytes = calloc(p->size, sizeof(*bytes)), *places = calloc(p->size, sizeof(*places));
    /* Lists the flows first, so that the messages of the gather are not counted. */
    struct stats_flow *mine = own_flows(p, &count);
    *all = (struct stats_flows){0};
    int rc = stats_agree_on_memory(p, counts && bytes && places && mine);
    rc = rc ? rc : impl_Gather(&count, 1, number, counts, 1, number, 0, p->world);
    if (p->rank == 0 && rc == 0) {
        all->count = compute_flow_offsets(counts, p->size, bytes, places);
        all->list = calloc(2 * (all->count + 1), sizeof(*all->list));
        all->spare = all->list ? all->list + all->count + 1 : NULL;
    }
    rc = rc ? rc : stats_agree_on_memory(p, all->list || p->rank != 0);
    rc = rc ? rc
            : impl_Gatherv(mine, (MPI_Count)(count * sizeof(*mine)), byte, all->list, ivec_from_int64(bytes),
                           ivec_from_int64(places), byte, 0, p->world);
    free(mine);
    free(counts);
    free(bytes);
    free(places);
    return rc;
}

/* ---- sums by what carried it ---- */

static bool carriers_are_equal(const struct stats_flow *a, const struct stats_flow *b)
{
    return strcmp(a->transport, b->transport) == 0 && strcmp(a->over, b->over) == 0;
}

/* Sums up the entries of each transport and adapter in all->spare; returns their number. */
static uint64_t sum_by_carrier(const struct stats_flows *all)
{
    struct stats_flow *out = all->spare;
    uint64_t n = 0;
    for (uint64_t i = 0; i < all->count; i++) {
        const struct stats_flow *f = &all->list[i];
        uint64_t k = 0;
        while (k < n && !carriers_are_equal(&out[k], f))
            k++;
        if (k == n) {
            out[n] = *f;
            out[n].messages = out[n].bytes = 0;
            n++;
        }
        out[k].messages += f->messages;
        out[k].bytes += f->bytes;
    }
    return n;
}

static int most_bytes_first(const void *a, const void *b)
{
    const struct stats_flow *f = a, *g = b;
    return f->bytes != g->bytes ? (f->bytes < g->bytes ? 1 : -1)
                                : (f->from != g->from ? (f->from > g->from ? 1 : -1)
                                   : f->to > g->to    ? 1
                                                      : -1);
}

static void stats_flows_text(const struct stats_flows *all, FILE *out)
{
    const struct stats_flow *sums = all->spare;
    uint64_t n = sum_by_carrier(all);
    fprintf(out, "  %-28s %16s %16s\n", "sent by", "messages", "bytes");
    for (uint64_t i = 0; i < n; i++) {
        fprintf(out, "  %-28s %16" PRIu64 " %16" PRIu64, sums[i].transport, sums[i].messages, sums[i].bytes);
        fprintf(out, sums[i].over[0] ? "  over %s\n" : "\n", sums[i].over);
    }
    struct stats_flow *pairs = all->spare;
    memcpy(pairs, all->list, all->count * sizeof(*pairs));
    qsort(pairs, all->count, sizeof(*pairs), most_bytes_first);
    fprintf(out, "  %-28s %16s %16s\n", "from rank to rank", "messages", "bytes");
    for (uint64_t i = 0; i < MIN(all->count, (uint64_t)FEW_PAIRS); i++) {
        char who[40];
        snprintf(who, sizeof(who), "%" PRIu32 " to %" PRIu32 " by %s", pairs[i].from, pairs[i].to,
                 pairs[i].transport);
        fprintf(out, "  %-28s %16" PRIu64 " %16" PRIu64 "\n", who, pairs[i].messages, pairs[i].bytes);
    }
    if (all->count > FEW_PAIRS)
        fprintf(out, "  and %" PRIu64 " pairs more; FISHPLATE_STATS=json has all\n", all->count - FEW_PAIRS);
}

/* Writes a flow as JSON. Names of adapters and transports need no escapes: letters, digits, blanks and brackets. */
static void put_flow(const struct stats_flow *f, bool pair, FILE *out)
{
    fprintf(out, "{");
    if (pair)
        fprintf(out, "\"from\": %" PRIu32 ", \"to\": %" PRIu32 ", ", f->from, f->to);
    fprintf(out,
            "\"transport\": \"%s\", \"carrier\": \"%s\", \"adapter\": \"%s\", \"messages\": %" PRIu64
            ", \"bytes\": %" PRIu64 "}",
            f->transport, f->made, f->over, f->messages, f->bytes);
}

/* writes two members of a JSON object */
static void stats_flows_json(const struct stats_flows *all, FILE *out)
{
    const struct stats_flow *sums = all->spare;
    uint64_t n = sum_by_carrier(all);
    fprintf(out, "\"transports\": [");
    for (uint64_t i = 0; i < n; i++) {
        fprintf(out, i ? ",\n " : "");
        put_flow(&sums[i], false, out);
    }
    fprintf(out, "],\n\"peers\": [");
    for (uint64_t i = 0; i < all->count; i++) {
        fprintf(out, i ? ",\n " : "");
        put_flow(&all->list[i], true, out);
    }
    fprintf(out, "]");
}

enum { STATS_NONE, STATS_TEXT, STATS_JSON };
static TUNABLE_CHOICE(
    stats, "STATS", STATS_NONE, "0|1|json",
    "Print the counters of all ranks, and who sent how much to whom by which transport and adapter, to "
    "standard error in MPI_Finalize: as text (1) or as JSON. Must be the same on all ranks.");

struct summary {
    uint64_t sum, min, max;
};

static struct summary stats_summarise(const uint64_t *values, size_t stride, uint32_t ranks)
{
    struct summary s = {.min = UINT64_MAX};
    for (uint32_t r = 0; r < ranks; r++) {
        uint64_t value = values[r * stride];
        s.sum += value;
        s.min = MIN(s.min, value);
        s.max = MAX(s.max, value);
    }
    return s;
}

static void put_text(const struct proc *p, const uint64_t *values, size_t n, FILE *out)
{
    char adapter[160];
    fprintf(out, "fishplate: counters of %" PRIu32 " rank%s\n", p->size, p->size == 1 ? "" : "s");
    net_adapter(p->net, adapter, sizeof(adapter));
    if (*adapter)
        fprintf(out, "  between nodes: %s\n", adapter);
    fprintf(out, "  %-28s %16s %16s %16s\n", "", "sum", "min", "max");
    for (size_t i = 0; i < n; i++) {
        struct summary s = stats_summarise(values + i, n, p->size);
        if (s.sum)
            fprintf(out, "  %-28s %16" PRIu64 " %16" PRIu64 " %16" PRIu64 "\n", counters_get(i)->name, s.sum,
                    s.min, s.max);
    }
}

static void put_json(const struct proc *p, const uint64_t *values, size_t n, FILE *out)
{
    char adapter[160];
    net_adapter(p->net, adapter, sizeof(adapter));
    fprintf(out, "{\"ranks\": %" PRIu32 ", \"nodes\": %" PRIu32 ", \"adapter\": \"%s\",\n\"counters\": {",
            p->size, p->net->boot->nnodes, adapter);
    for (size_t i = 0; i < n; i++) {
        struct summary s = stats_summarise(values + i, n, p->size);
        fprintf(out, "%s\"%s\": {\"sum\": %" PRIu64 ", \"min\": %" PRIu64 ", \"max\": %" PRIu64 "}",
                i ? ",\n " : "", counters_get(i)->name, s.sum, s.min, s.max);
    }
    fprintf(out, "},\n");
}

/* Prints with a single write, so that lines of other processes do not fall in between. */
static void stats_print(const struct proc *p, const uint64_t *values, size_t n,
                        const struct stats_flows *flows)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    if (stats.value == STATS_JSON) {
        put_json(p, values, n, out);
        stats_flows_json(flows, out);
        fprintf(out, "}\n");
    } else {
        put_text(p, values, n, out);
        stats_flows_text(flows, out);
    }
    fclose(out);
    fwrite(text, 1, size, stderr);
    free(text);
}

void stats_report(struct proc *p)
{
    size_t n = counters_count();
    if (!stats.value)
        return;
    uint64_t *mine = calloc(n + 1, sizeof(*mine));
    uint64_t *all = p->rank == 0 ? calloc(n * p->size + 1, sizeof(*all)) : NULL;
    for (size_t i = 0; mine && i < n; i++)
        mine[i] = counters_get(i)->value;
    struct dtype *type = dtype_from_handle(MPI_UINT64_T);
    struct stats_flows flows = {0};
    int rc = stats_flows_gather(p, &flows);
    rc = rc ? rc : stats_agree_on_memory(p, mine && (all || p->rank != 0));
    rc = rc ? rc : impl_Gather(mine, (MPI_Count)n, type, all, (MPI_Count)n, type, 0, p->world);
    if (rc == 0 && p->rank == 0)
        stats_print(p, all, n, &flows);
    else if (rc != 0)
        log_warn("the counters could not be gathered: %s", err_detail(rc));
    free(flows.list);
    free(mine);
    free(all);
}
