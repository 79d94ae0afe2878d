/* bench.c: `fishplate bench`: the benchmark of bench/, with the transport that the library uses in its
 * report; `fishplate bench ib`, `bench bcast`, `bench rails` and `bench papers`, which start their own jobs; `fishplate bench
 * kernels`, `bench io` and `bench rma`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../../bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../bench/bcast/bcast.h"
#include "../../bench/ib/ib.h"
#include "../../bench/io/io.h"
#include "../../bench/kernels/kernels.h"
#include "../../bench/rails/rails.h"
#include "../../bench/rma/rma.h"

#include "api/inside.h"
#include "chart.h"
#include "barrier/barrier.h"
#include "coll/algorithm.h"
#include "command.h"
#include "logp/logp.h"
#include "net/peer.h"
#include "net/port.h"
#include "npb.h"
#include "papers/papers.h"

static const char *transport(int rank)
{
    static char text[256];
    const struct fishplate_inside *in = inside_of_library();
    const struct peer *peer = in->peer(rank);
    if (!peer)
        return "unknown";
    in->peer_describe(peer, text, sizeof(text));
    return text;
}

/* What carries it, for programs: "memory", "hardware", "softib-tcp" ... */
static const char *carrier(int rank)
{
    const struct peer *peer = inside_of_library()->peer(rank);
    if (!peer)
        return "unknown";
    return peer->transport->port ? net_port_made(peer->transport->port) : "memory";
}

/* The i-th algorithm of an operation that all ranks together can use; NULL after the last. */
static const char *algorithm(const char *operation, int i)
{
    const struct fishplate_inside *in = inside_of_library();
    for (size_t k = 0; k < in->algorithms_count(); k++) {
        const struct coll_algorithm *a = in->algorithms_get(k);
        if (strcmp(in->coll_kind_name((int)a->kind), operation) == 0 && in->coll_usable(a) && i-- == 0)
            return a->name;
    }
    return NULL;
}

static int choose(const char *setting)
{
    return inside_of_library()->coll_set(setting);
}

/* `bench barrier` and `bench bcast` in a job of the user's are the tests of that name; otherwise they are studies, which start
 * their own jobs. */
static bool is_study(const char *name, int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], name) != 0)
        return false;
    if (argc > 2 && strcmp(argv[2], "rank") == 0)
        return true;
    return !getenv("PMI_RANK") && !getenv("PMIX_RANK");
}

/* Curves of `bench rails` and `bench bcast`. */
static void draw(const struct ib_curves *c, FILE *out)
{
    struct chart chart = {
        .id = c->id, .title = c->title, .x_name = c->x_name, .y_name = c->y_name, .format = "%.0f"};
    chart.points = c->points < CHART_POINTS ? c->points : CHART_POINTS;
    for (int i = 0; i < chart.points; i++)
        chart.x[i] = c->x[i];
    for (int l = 0; l < c->lines; l++) {
        int line = chart_line(&chart, c->name[l]);
        for (int i = 0; line >= 0 && i < chart.points; i++)
            chart.y[line][i] = c->y[l][i];
    }
    chart_svg(&chart, out);
}

int command_bench(int argc, char **argv)
{
    static const struct bench_host host = {
        .program = "fishplate bench",
        .transport = transport,
        .carrier = carrier,
        .algorithm = algorithm,
        .choose = choose,
    };
    inside_of_library();
    if (argc > 1 && strcmp(argv[1], "ib") == 0)
        return bench_ib_main(argc - 1, argv + 1);
    if (is_study("barrier", argc, argv))
        return bench_barrier_main(&host, argc - 1, argv + 1);
    if (is_study("bcast", argc, argv))
        return bench_bcast_main(draw, argc - 1, argv + 1);
#ifdef FISHPLATE_IB
    if (argc > 1 && strcmp(argv[1], "logp") == 0)
        return bench_logp_main(&host, argc - 1, argv + 1);
#endif
    if (argc > 1 && strcmp(argv[1], "papers") == 0)
        return bench_papers_main(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "rails") == 0)
        return bench_rails_main(draw, argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "io") == 0)
        return bench_io_main(&host, argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "rma") == 0)
        return bench_rma_main(&host, argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "kernels") == 0 && npb_is_meant(argc - 1, argv + 1))
        return bench_npb_main(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "kernels") == 0)
        return bench_kernels_main(&host, argc - 1, argv + 1);
    return bench_main(&host, argc, argv);
}
