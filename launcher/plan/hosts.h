/* hosts.h: the hosts of a job and the host of each rank. The functions are pure, except that they read the
 * host file and this machine's own names.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_HOSTS_H
#define FP_LAUNCHER_HOSTS_H

#include "options/options.h"

struct host {
    char *name;
    uint32_t slots;
    bool counted; /* the user gave the number of slots */
    bool local;
};

struct hosts {
    struct host *v;
    uint32_t n;
    struct rankfile *ranks; /* -rankfile; else NULL */
    /* [nlisted] the host list, which rank files refer to: several entries may mean this machine */
    struct listed_host {
        const char *name;
        uint32_t host; /* index in `v` */
    } * listed;
    uint32_t nlisted;
};

/* Lists the hosts: from -hosts and -hostfile, else from the job of Slurm, PBS, LSF or Grid Engine, else
 * from the rank file, else this machine with a slot per core. Hosts whose names all mean this machine are
 * merged: their slots are added. */
void hosts_list(const struct options *o, struct hosts *out);

/* Returns the index of this machine; h->n if the job does not use it. */
uint32_t hosts_find_local(const struct hosts *h);

/* Returns the remote launcher: the user's choice, else srun inside a Slurm allocation, else ssh. */
const char *hosts_choose_launcher(const struct options *o, const struct hosts *h);

/* Host and node of each rank. A node is a set of ranks that share memory: a host, or a virtual node of it
 * (-vnodes). */
struct layout {
    uint32_t size, nnodes;
    uint32_t *host_of, *node_of, *app_of; /* [size] */
    uint32_t *local_rank;                 /* [size] index among the ranks of its node */
    uint32_t *node_size;                  /* [nnodes] */
    char **slots;                         /* [size] processors from a rank file; NULL without one */
};

/* Returns MPI_UNIVERSE_SIZE: the user's value, else the slots; at least the number of ranks. */
uint32_t hosts_universe(const struct options *o, const struct hosts *h, uint32_t size);

void hosts_layout(const struct options *o, const struct hosts *h, struct layout *out);

#endif
