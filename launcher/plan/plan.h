/* plan.h: the part of the job that one host runs, executed by local.c in mpiexec or in an agent. A plan is
 * sent to an agent as bytes, so it contains no pointers to other data.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_PLAN_H
#define FP_LAUNCHER_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/util.h"

/* Source of a rank's standard input. */
enum stdin_from { STDIN_NULL, STDIN_PIPE, STDIN_INHERIT };

struct app {
    char **argv;
    char **env;      /* the variables of all ranks; rankenv.c adds those of each rank */
    char *wdir;      /* working directory */
    uint32_t number; /* MPI_APPNUM: a program has two entries if some ranks run it under a debugger */
};

struct place {
    uint32_t rank, app, node; /* node: index in the whole job */
    uint32_t local_rank, local_size;
    int32_t vnode; /* -1: not on a virtual node */
    uint32_t stdin_from;
    char *slots; /* processors from a rank file; "": none */
};

struct plan {
    char *job, *host, *node_map;
    uint32_t size, universe, nnodes;
    uint32_t bind;
    bool scatter_sockets; /* -map-by socket: deal neighbouring ranks to different sockets */
    bool verbose;         /* print where ranks run */
    bool recovery;        /* ranks are notified of deaths */
    bool one_machine;     /* all hosts of the job are this machine. Not sent to agents */
    int notices_fd;       /* file of the notices of deaths; 0: one is created. Not sent to agents */
    uint32_t cpus_per_rank;
    uint32_t ppr, ppr_unit; /* -map-by ppr:N:socket and similar (topo.h) */
    bool oversubscribe;     /* ranks bound to cores may share them */
    uint32_t napps, nranks;
    struct app *apps;
    struct place *ranks;
};

void plan_encode(const struct plan *p, struct buf *out);

/* Returns NULL if the bytes are not a valid plan. */
struct plan *plan_decode(const char *data, size_t len);

/* Frees a plan from plan_decode; NULL is permitted. */
void plan_free(struct plan *p);

#endif
