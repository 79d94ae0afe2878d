/* meet.h: connects two groups of processes that know nothing of each other: they become the two sides of an
 * intercommunicator.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DYN_MEET_H
#define FP_DYN_MEET_H

#include "dyn/channel.h"
#include "obj/comm.h"
#include "obj/info.h"

struct meet_kind {
    const char *how;  /* for the label of the communicator: "clients of" */
    bool independent; /* the other group is not a job of the same mpiexec: no launcher reports its deaths */
};

/* Collective over an intracommunicator. The root has a channel to the root of the other group, or an error (with its
 * sentence) that all shall return; elsewhere both are ignored. Closes the channel. */
int meet_connect_groups(struct comm *comm, int root, struct channel *channel, int root_error,
                        const struct meet_kind *kind, struct comm **out);

/* MPI_Comm_accept, MPI_Comm_connect, MPI_Comm_join. info: of the root, with the key timeout (seconds); may be NULL. */
extern const struct meet_kind meet_servers;
int meet_accept_connection(struct comm *comm, int root, const char *port, struct comm **out);
int meet_connect(struct comm *comm, int root, const char *port, const struct info *info,
                 const struct meet_kind *kind, struct comm **out);
int meet_join_socket(struct proc *p, int fd, struct comm **out);

/* Broadcasts `len` bytes and an error class with its text from the root to all ranks of the communicator. */
int broadcast_bytes(struct comm *comm, int root, void *data, size_t len);
int share_error(struct comm *comm, int root, int error);

#endif
