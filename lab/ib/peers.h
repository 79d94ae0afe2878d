/* peers.h: the same benchmark with other MPI libraries on the same fabric: Open MPI by its openib transport
 * and by UCX, MPICH by UCX, as far as they are installed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_IB_PEERS_H
#define FP_LAB_IB_PEERS_H

#include "ib.h"

enum { IB_PEERS = 3, IB_WORDS = 128 };

struct ib_peers;
struct ib_peer {
    const char *name, *options, *settings;
    char mpiexec[32], program[1024];
    struct ib_peers *all;
};

struct ib_peers {
    struct ib_peer library[IB_PEERS];
    int n;
    char missing[IB_PEERS][256]; /* Reason for each library that is missing */
    int nmissing;
    char folder[960], sources[5000], softib[5000];
};

/* Compiles the sources, given as patterns below the benchmark's folder, with each library. */
void ib_peers_open(struct ib_peers *p, const struct ib_driver *d, const char *const *sources);
void ib_peers_close(struct ib_peers *p);
/* Replaces this process by mpiexec of the other library; does not return. */
void ib_peer_exec(const struct ib_job *job, char *args);
/* Reports the reason why the library is not measured. */
void ib_peers_report_failure(const struct ib_peer *peer);

#endif
