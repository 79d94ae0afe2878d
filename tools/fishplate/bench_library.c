/* bench_library.c: transports, adapters and algorithms of this library, for the reports of benchmarks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench.h"

#include <string.h>

#include "api/inside.h"
#include "tools/fishplate/bench_library.h"
#include "coll/sched/algorithm.h"
#include "command.h"
#include "net/peer.h"
#include "net/adapter_port.h"

static const char *library_transport(int rank)
{
    static char text[256];
    const struct fishplate_inside *in = get_library_table();
    const struct peer *peer = in->peer(rank);
    if (!peer)
        return "unknown";
    in->peer_describe(peer, text, sizeof(text));
    return text;
}

/* Returns the medium of messages to `rank` for JSON: "memory", "hardware", "softib-tcp" ... */
static const char *library_find_medium(int rank)
{
    const struct peer *peer = get_library_table()->peer(rank);
    if (!peer)
        return "unknown";
    return peer->transport->port ? net_port_implementation(peer->transport->port) : "memory";
}

/* Returns the i-th algorithm of an operation that all ranks together can use; NULL after the last. */
static const char *library_algorithm(const char *operation, int i)
{
    const struct fishplate_inside *in = get_library_table();
    for (size_t k = 0; k < in->algorithms_count(); k++) {
        const struct coll_algorithm *a = in->algorithms_get(k);
        if (strcmp(in->coll_kind_name((int)a->kind), operation) == 0 && in->coll_usable(a) && i-- == 0)
            return a->name;
    }
    return NULL;
}

static int library_set_algorithm(const char *setting)
{
    return get_library_table()->coll_set(setting);
}

const struct bench_host bench_library = {
    .program = "fishplate bench",
    .transport = library_transport,
    .carrier = library_find_medium,
    .algorithm = library_algorithm,
    .choose = library_set_algorithm,
    .kinds = "  bench io             files: MPI_File_write and MPI_File_read against pwrite and pread\n"
             "  bench rma            one-sided operations\n"
             "  fishplate-lab ...    kernels of programs, InfiniBand designs, rails, multicast, barriers, "
             "LogP, papers; fishplate lab help lists them\n",
};
