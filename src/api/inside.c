/* inside.c: fills the table that the `fishplate` tool reads. See inside.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/inside.h"

#include "api_list.h"
#include "base/err.h"
#include "base/tunable.h"
#include "coll/sched/algorithm.h"
#include "coll/select/select.h"
#include "coll/comm_state.h"
#include "gpu/gpu.h"
#include "io/hints.h"
#include "mpi.h"
#include "net/net.h"
#include "net/registry.h"
#include "obj/proc.h"

static const struct peer *peer_of(int rank)
{
    struct peer *peer = NULL;
    if (!the_proc || rank < 0 || (uint32_t)rank >= the_proc->size)
        return NULL;
    proc_lock(the_proc);
    int rc = net_peer(the_proc->net, (uint32_t)rank, &peer);
    proc_unlock(the_proc);
    return rc == 0 ? peer : NULL;
}

static struct transport *transport_in_use(const struct transport_ops *ops)
{
    for (int i = 0; the_proc && i < the_proc->net->ntransports; i++)
        if (the_proc->net->transports[i]->ops == ops)
            return the_proc->net->transports[i];
    return NULL;
}

static int inside_list_ports(struct net_port **ports, size_t *count, const char **why)
{
    *why = "this library was built without InfiniBand";
    for (const struct transport_ops *const *t = net_transports; *t; t++) {
        uint32_t n = 0;
        if (!(*t)->ports)
            continue;
        int rc = (*t)->ports(transport_in_use(*t), ports, &n);
        *count = n;
        *why = rc ? err_detail(rc) : "";
        return rc;
    }
    return MPI_ERR_OTHER;
}

static const char *kind_name(int kind)
{
    return coll_kind_name((enum coll_kind)kind);
}

static bool is_algorithm_usable(const struct coll_algorithm *a)
{
    struct coll_state *state;
    struct comm *world = the_proc ? the_proc->world : NULL;
    if (!world || coll_state(world, &state) != 0)
        return false;
    const struct coll_shape shape = {.kind = a->kind,
                                     .rank = world->rank,
                                     .size = world->size,
                                     .count = 1,
                                     .commutative = true,
                                     .adjacent = true};
    if (((a->needs & NEED_NODE) && !state->one_node) || ((a->needs & NEED_NODES) && !state->nodes))
        return false;
    return algorithm_fits(a, &shape);
}

static int get_site_rules(const struct coll_site_rule **rules, size_t *count, const char **why)
{
    int rc = the_proc ? 0 : coll_select_open();
    *count = rc ? 0 : coll_site_count();
    *rules = *count ? coll_site_get(0) : NULL;
    *why = rc ? err_detail(rc) : "";
    return rc;
}

static int coll_set(const char *text)
{
    tunable_set(tunables_find("COLL"), text, SOURCE_PROGRAM);
    return coll_reselect_algorithms(the_proc);
}

static int memory_kind(const void *address)
{
    return gpu_may_have_memory() ? (int)gpu_classify_address(address) : GPU_MEMORY_HOST;
}

const struct fishplate_inside *fishplate_inside(void)
{
    static const struct fishplate_inside table = {
        .version = FISHPLATE_VERSION,
        .size = sizeof(table),
        .tunables_load = tunables_load,
        .tunables_report = tunables_report,
        .tunables_count = tunables_count,
        .tunables_get = tunables_get,
        .tunable_format = tunable_format,
        .transports = net_transports,
        .peer = peer_of,
        .peer_describe = peer_describe,
        .ports = inside_list_ports,
        .gpus = gpu_list_devices,
        .memory_kind = memory_kind,
        .algorithms_count = algorithms_count,
        .algorithms_get = algorithms_get,
        .coll_kind_name = kind_name,
        .coll_rules_count = coll_rules_count,
        .coll_rules_get = coll_rules_get,
        .coll_site = get_site_rules,
        .coll_usable = is_algorithm_usable,
        .coll_set = coll_set,
        .hints = io_hint_list,
        .hints_count = IO_HINTS,
        .api = api_list,
        .api_count = API_LIST_SIZE,
    };
    return &table;
}
