/* topology.c: fuzzes the text files of the simulator: switches and cables, and the figures of a machine.
 * An accepted topology must be complete: every node is reachable from every switch, and the multicast tree
 * reaches every node once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "fuzz.h"
#include "lab/sim/graph.h"
#include "lab/sim/machine.h"
#include "lab/sim/topo.h"

static void expect_all_reachable(const struct graph *g)
{
    struct topo t;
    FUZZ_CHECK(topo_make(&t, g, g->nodes, 2, 1));
    for (uint32_t from = 0; from < g->switches && from < 8; from++)
        for (uint32_t node = 0; node < g->nodes && node < 64; node++) {
            struct tree_place at = {0, from, 0};
            for (uint32_t hops = 0; at.level >= 0; hops++) {
                FUZZ_CHECK(hops <= g->switches);
                uint32_t link = topo_next_link(&t, at, node, hops);
                FUZZ_CHECK(link < 2 * g->cables);
                at = topo_link_end(&t, link);
            }
            FUZZ_CHECK(at.group == node);
        }
}

static void expect_one_multicast_each(const struct graph *g)
{
    uint32_t nodes = 0, roots = 0;
    for (uint32_t s = 0; s < g->switches; s++) {
        roots += g->up[s] == UINT32_MAX;
        for (uint32_t i = g->down_first[s]; i < g->down_first[s + 1]; i++)
            nodes += g->down[i] < 2 * g->nodes;
    }
    FUZZ_CHECK(nodes == g->nodes && roots == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct graph g;
    struct machine m = machine_preset;
    char why[200];
    if (size == 0)
        return 0;
    FILE *in = fmemopen((void *)(uintptr_t)data, size, "r");
    if (!in)
        return 0;
    why[0] = 0;
    if (graph_read(&g, in, why, sizeof(why))) {
        expect_all_reachable(&g);
        expect_one_multicast_each(&g);
        graph_free(&g);
    } else {
        FUZZ_CHECK(why[0] && g.cable == NULL);
    }
    rewind(in);
    why[0] = 0;
    if (machine_read(&m, in, why, sizeof(why)))
        FUZZ_CHECK(m.link_rate > 0 && isfinite(m.link_rate) && m.buffers >= 1);
    else
        FUZZ_CHECK(why[0]);
    fclose(in);
    return 0;
}
