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

/*
 * One set per rank of this host, in the order of the plan, or NULL for no binding. Only processors in
 * our own affinity mask are ever used. By default ranks are bound to cores when there are at least two
 * of them and no more than cores. `per`: cores (or hardware threads) for each rank; 0: not said.
 */
struct cpus *topo_bind(enum bind_to bind, uint32_t nranks, bool scatter_sockets, uint32_t per);

/* "0-3,8": for -v. */
void topo_format(const struct cpus *set, char *out, size_t size);

#endif
