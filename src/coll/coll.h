/* coll.h: interface of collectives to the API: a description of the call, and functions that run it, start it
 * or create a persistent request.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_COLL_H
#define FP_COLL_COLL_H

#include <mpi.h>

#include "base/ivec.h"
#include "coll/sched/algorithm.h"
#include "dt/dtype.h"
#include "dt/op.h"
#include "obj/comm.h"
#include "p2p/request.h"

/* One user buffer. If blocks differ in size or displacement (v and w variants, neighbourhoods), counts is
 * set; w variants have types too, and their displacements are in bytes. */
struct coll_side {
    void *buf;
    MPI_Count count; /* elements of a block, or of the whole vector */
    struct dtype *type;
    struct ivec counts, displs;
    const MPI_Datatype *types;
};

struct coll_args {
    enum coll_kind kind;
    const char *name; /* "MPI_Allreduce", for messages */
    struct comm *comm;
    struct coll_side send, recv;
    struct op *op;
    int root; /* the user's argument */
    bool in_place;
    bool vector; /* a v or w variant: blocks may differ */
};

/* Runs a blocking call. The common small cases allocate nothing. */
int coll_run(const struct coll_args *args);

/* Starts a nonblocking call and retains all objects that the user may free meanwhile. */
int coll_start(const struct coll_args *args, struct request **out);

/* Creates a persistent request, inactive until its ops->start. */
int coll_init(const struct coll_args *args, struct request **out);

/* Reads FISHPLATE_COLL and FISHPLATE_DEBUG, and registers for the end of communicators. Called at start-up
 * or by the first collective. Returns MPI_ERR_ARG for an invalid setting. */
int coll_open(struct proc *p);

/* Selects the barrier of a new communicator by measurements (lab/mechanisms/selection). NULL if the
 * program is linked without the laboratory. Collective. */
int coll_laboratory_select_barrier(struct comm *c) __attribute__((weak));

/* Called when FISHPLATE_COLL has changed at every rank while the program runs: communicators drop their
 * cached choices. p may be NULL. */
int coll_reselect_algorithms(struct proc *p);

#endif
