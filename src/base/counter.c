/* counter.c: lists the counters, which the linker collects in one section, and maps their former names.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/counter.h"

#include <string.h>

#include "base/log.h"
#include "base/util.h"

extern struct counter *const __start_fp_counters[] __attribute__((weak, visibility("hidden")));
extern struct counter *const __stop_fp_counters[] __attribute__((weak, visibility("hidden")));

size_t counters_count(void)
{
    return (size_t)(__stop_fp_counters - __start_fp_counters);
}

struct counter *counters_get(size_t index)
{
    return __start_fp_counters[index];
}

static struct {
    const char *former, *present;
    bool is_reported;
} renamed[] = {
    {"coll_by_node", "coll_barrier_by_node", false},
    {"coll_helped", "coll_owner_copies", false},
    {"coll_switched", "coll_barrier_switch", false},
    {"coll_wired", "coll_barrier_wires", false},
    {"coll_written", "coll_barrier_rdma", false},
    {"coll_written_quick", "coll_barrier_rdma_direct", false},
    {"ib_fates_asked", "ib_write_status_queries", false},
    {"ib_posted_most", "ib_receives_posted_max", false},
    {"mcast_asked", "mcast_ack_requests", false},
    {"mcast_kept", "mcast_packets_stored", false},
    {"p2p_offers_told", "p2p_offer_notifications", false},
    {"reg_gpu_plain", "reg_gpu_peermem", false},
    {"rma_far_locks", "rma_remote_locks", false},
    {"rma_helped", "rma_target_copies", false},
    {"rma_lookups_asked", "rma_lookups_by_message", false},
    {"rma_lookups_read", "rma_lookups_by_read", false},
};

const char *counter_present_name(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(renamed); i++)
        if (strcmp(renamed[i].former, name) == 0) {
            if (!renamed[i].is_reported)
                log_warn("The counter %s is now named %s.", name, renamed[i].present);
            renamed[i].is_reported = true;
            return renamed[i].present;
        }
    return name;
}
