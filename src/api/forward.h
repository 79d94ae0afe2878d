/* forward.h: functions behind the implementations that api/gen/bodies.py writes: those that only forward
 * their arguments.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_API_FORWARD_H
#define FP_API_FORWARD_H

#include "api/p2p.h"
#include "dt/build.h"
#include "io/file.h"
#include "obj/attr.h"
#include "obj/create.h"
#include "obj/errhandler.h"
#include "obj/error.h"
#include "obj/handle.h"
#include "obj/session.h"
#include "obj/topo_create.h"
#include "rma/win.h"

/* Return the handle of a new object, or the error of the call that should have made it. */
int type_return_handle(int rc, const struct dtype *made, MPI_Datatype *out);
/* Stores the handle of `made`, or MPI_COMM_NULL if it is NULL. Only for blocking functions:
 * coll_laboratory_select_barrier may run barriers on the new communicator. */
int comm_return_handle(int rc, struct comm *made, MPI_Comm *newcomm);
/* from: the group that the new one was made of, and whose session it inherits. An empty group becomes
 * MPI_GROUP_EMPTY. */
int group_return_handle(int rc, struct group *made, const struct group *from, MPI_Group *newgroup);

/* object: a struct comm, win, file (NULL: MPI_FILE_NULL) or session. */
int errhandler_return_new(enum error_object kind, void (*function)(void), MPI_Errhandler *errhandler);
int errhandler_return_attached(enum error_object on, void *object, MPI_Errhandler *errhandler);
int errhandler_attach(enum error_object on, void *object, struct errhandler *e);
int errhandler_call_user(enum error_object on, void *object, int errorcode, const char *function);

/* Buffers for buffered sends. slot: the member of the process, communicator or session that points to its
 * buffer; *slot is NULL without a buffer. */
int buffer_attach(struct bsend_pool **slot, void *buffer, MPI_Count size);
/* buffer_addr: the user's pointer to a pointer. Without a buffer the result is NULL and size 0. */
int buffer_detach(struct bsend_pool **slot, void *buffer_addr, MPI_Count *size);
int buffer_flush(struct bsend_pool **slot);
int buffer_iflush(struct bsend_pool **slot, MPI_Request *request);

int persistent_new(enum p2p_kind kind, const void *buf, MPI_Count count, struct dtype *type, int rank,
                   int tag, struct comm *comm, MPI_Request *request);

#endif
