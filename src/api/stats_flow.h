/* stats_flow.h: which rank sent how much to which rank and through which transport, for FISHPLATE_STATS.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_API_STATS_FLOW_H
#define FP_API_STATS_FLOW_H

#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>

struct proc;

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

/* Collective over the world. Returns MPI_ERR_NO_MEM on all ranks unless `mine` is true on all ranks. */
int stats_agree_on_memory(struct proc *p, bool mine);

/* Collective over the world; counts what was sent before the call. */
int stats_flows_gather(struct proc *p, struct stats_flows *all);
void stats_flows_text(const struct stats_flows *all, FILE *out);
void stats_flows_json(const struct stats_flows *all, FILE *out); /* writes two members of a JSON object */

#endif
