/* topo.h: which processors a rank is bound to. It reads the kernel's topology files directly: a topology
 * library would cost more start-up time than all the rest of mpiexec.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_TOPO_H
#define FP_LAUNCHER_TOPO_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "options/options.h"

#define CPUS_MAX 8192

/* A processor set with room for any machine Linux supports. */
struct cpus {
    unsigned long bits[CPUS_MAX / (8 * sizeof(unsigned long))];
};

/* How many cores (not hardware threads) this process may use, at least 1. */
unsigned topo_cores(void);

/* How many cores, L3 caches, NUMA nodes or sockets this process may use, at least 1. */
unsigned topo_count(enum bind_to unit);

struct topo_request {
    enum bind_to bind;
    uint32_t nranks;
    bool scatter_sockets;
    uint32_t per; /* cores (or hardware threads) for each rank; 0: not specified */
    uint32_t ppr; /* ranks in each `ppr_unit`, in order; 0: the ranks share all processors */
    enum bind_to ppr_unit;
};

/* Returns one set per rank of this host, in the order of the plan, or NULL for no binding. Sets contain
 * only processors of our own affinity mask. By default ranks are bound to cores if there are at least two
 * ranks and no more ranks than cores. *short_of: the number of cores (or hardware threads) if ranks have
 * to share them although they were requested; else 0. */
struct cpus *topo_bind(const struct topo_request *q, unsigned *short_of);

/* Parses the slots of a rank file: "0", "0-3", "0,2" or "*" count the cores that this process may use,
 * "1:0-2" and "1:*" the cores of a socket, from 0. Returns NULL, or an allocated error text. */
char *topo_parse_slots(const char *text, struct cpus *out);

/* Formats a set as "0-3,8", for -verbose. */
void topo_format(const struct cpus *set, char *out, size_t size);

#endif
