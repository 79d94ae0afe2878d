/* meet.h: connects two groups of processes of different jobs: creates an intercommunicator between them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DYN_MEET_H
#define FP_DYN_MEET_H

#include "dyn/channel.h"
#include "obj/comm.h"
#include "obj/info.h"

struct meet_kind {
    const char *how;  /* for the label of the communicator: "clients of" */
    bool independent; /* not started by the same mpiexec: no launcher reports its deaths */
};

/* Collective over an intracommunicator. channel: at the root, a channel to the root of the other group.
 * root_error: at the root, an error (with its text set) to return at all ranks. Other ranks ignore both.
 * Closes the channel. */
int meet_connect_groups(struct comm *comm, int root, struct channel *channel, int root_error,
                        const struct meet_kind *kind, struct comm **out);

/* Implement MPI_Comm_accept, MPI_Comm_connect and MPI_Comm_join. info: significant at the root; may
 * contain the key timeout (seconds); may be NULL. */
extern const struct meet_kind meet_servers;
int meet_accept_connection(struct comm *comm, int root, const char *port, struct comm **out);
int meet_connect(struct comm *comm, int root, const char *port, const struct info *info,
                 const struct meet_kind *kind, struct comm **out);
int meet_join_socket(struct proc *p, int fd, struct comm **out);

/* Broadcast from the root to all ranks of the communicator: `len` bytes, or an error class with its text. */
int broadcast_bytes(struct comm *comm, int root, void *data, size_t len);

#endif
