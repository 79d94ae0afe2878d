/* stats.c: FISHPLATE_STATS: at MPI_Finalize rank 0 prints the sums of the counters of all ranks, and which
 * rank sent how much to which (stats_flow.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/stats_flow.h"
#include "api/tool.h"
#include "base/counter.h"
#include "base/log.h"
#include "boot/boot.h"
#include "impl.h"
#include "obj/handle.h"

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
