/* stats.c: FISHPLATE_STATS=1: at MPI_Finalize rank 0 prints what the counters of all ranks add up to.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/tool.h"
#include "base/counter.h"
#include "base/log.h"
#include "impl.h"
#include "obj/handle.h"

static TUNABLE_BOOL(
    stats, "STATS", 0,
    "Print the counters of all ranks to standard error in MPI_Finalize. Must be the same on all ranks.");

struct summary {
    uint64_t sum, min, max;
};

static struct summary summarise(const uint64_t *values, size_t stride, uint32_t ranks)
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

/* One write for the whole table, so that lines of other processes do not fall between its own. */
static void print(const struct proc *p, const uint64_t *values, size_t n)
{
    uint32_t ranks = p->size;
    char adapter[160];
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    fprintf(out, "fishplate: counters of %" PRIu32 " rank%s\n", ranks, ranks == 1 ? "" : "s");
    net_adapter(p->net, adapter, sizeof(adapter));
    if (*adapter)
        fprintf(out, "  between nodes: %s\n", adapter);
    fprintf(out, "  %-28s %16s %16s %16s\n", "", "sum", "min", "max");
    for (size_t i = 0; i < n; i++) {
        struct summary s = summarise(values + i, n, ranks);
        if (s.sum)
            fprintf(out, "  %-28s %16" PRIu64 " %16" PRIu64 " %16" PRIu64 "\n", counters_get(i)->name, s.sum,
                    s.min, s.max);
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
    CHECK(mine && (all || p->rank != 0), "out of memory for the summary that FISHPLATE_STATS asks for");
    for (size_t i = 0; i < n; i++)
        mine[i] = counters_get(i)->value;
    struct dtype *type = dtype_from(MPI_UINT64_T);
    int rc = impl_Gather(mine, (MPI_Count)n, type, all, (MPI_Count)n, type, 0, p->world);
    if (rc == 0 && p->rank == 0)
        print(p, all, n);
    else if (rc != 0)
        log_warn("the counters could not be gathered: %s", err_detail(rc));
    free(mine);
    free(all);
}
