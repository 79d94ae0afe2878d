/* partitioned.h: partitioned communication. A persistent request whose buffer is filled, and arrives, in
 * parts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_PARTITIONED_H
#define FP_P2P_PARTITIONED_H

#include "p2p/p2p.h"

/* Contexts of communicators are small numbers; these bits mark the messages between partitioned requests. */
#define PARTITIONED_MEET    0x40000000u
#define PARTITIONED_CHANNEL 0x80000000u

struct partitioned_args {
    bool sends;
    void *buf;
    int partitions;
    MPI_Count count; /* elements of a partition */
    struct dtype *type;
    struct peer *peer;        /* NULL: MPI_PROC_NULL */
    struct envelope envelope; /* of an ordinary message from the sender to the receiver */
    int source;               /* rank of the other side; MPI_SOURCE in the status of a receive */
};

/* Creates an inactive request. */
int partitioned_new(struct p2p *p2p, const struct partitioned_args *args, struct request **out);

/* Marks partitions first to last of a started send as ready. MPI_ERR_REQUEST or MPI_ERR_ARG for misuse. */
int partitioned_ready(struct request *request, int first, int last);

/* Whether a partition of a receive has arrived; makes progress when it has not. */
int partitioned_arrived(struct request *request, int partition, bool *arrived);

/* Called after a failure for a message on a channel. *plain: envelope of an ordinary message of the same
 * communicator, by which p2p_judge decides. Returns an error class if no request has the channel any more. */
int partitioned_check_message(struct p2p *p, struct envelope env, struct envelope *plain);

#endif
