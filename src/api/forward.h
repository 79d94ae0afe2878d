/* forward.h: functions behind the implementations that api/gen/bodies.py writes: those that only forward
 * their arguments.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_API_FORWARD_H
#define FP_API_FORWARD_H

#include <pthread.h>
#include <string.h>

#include "api/init.h"
#include "api/p2p.h"
#include "api/tool.h"
#include "dt/build.h"
#include "dt/count.h"
#include "dyn/meet.h"
#include "dyn/port.h"
#include "ft/ft.h"
#include "gpu/gpu.h"
#include "io/datarep.h"
#include "io/file.h"
#include "obj/attr.h"
#include "obj/create.h"
#include "obj/errhandler.h"
#include "obj/error.h"
#include "obj/fault.h"
#include "obj/handle.h"
#include "obj/hints.h"
#include "obj/info.h"
#include "obj/session.h"
#include "obj/topo_create.h"
#include "rma/win.h"

/* Return the handle of a new object, or the error of the call that should have made it. */
int type_return_handle(int rc, const struct dtype *made, MPI_Datatype *out);
int info_return_handle(int rc, struct info *made, MPI_Info *out);
int op_return_handle(int rc, struct op *made, MPI_Op *out);
int file_return_handle(int rc, struct file *made, MPI_File *out);
/* baseptr: the user's pointer to a pointer, set to the window's memory; NULL: none. */
int win_return_handle(int rc, struct win *made, void *baseptr, MPI_Win *out);
/* Stores the handle of `made`, or MPI_COMM_NULL if it is NULL. Only for blocking functions:
 * coll_laboratory_select_barrier may run barriers on the new communicator. */
int comm_return_handle(int rc, struct comm *made, MPI_Comm *newcomm);
/* from: the group that the new one was made of, and whose session it inherits. An empty group becomes
 * MPI_GROUP_EMPTY. */
int group_return_handle(int rc, struct group *made, const struct group *from, MPI_Group *newgroup);

int group_return_failed(struct comm *comm, bool acked, MPI_Group *group);
int win_make_checked(struct comm *comm, int flavor, void *base, MPI_Aint size, MPI_Aint unit,
                     struct info *info, struct win **out);

/* A name that is too long is truncated (MPI-5.0, 7.8). */
int object_name_set(char name[MPI_MAX_OBJECT_NAME], const char *text);
int object_name_get(const char *name, char *out, int *resultlen);

/* Returns an attribute through the user's pointer to a void pointer, which the prototype calls void *. */
int attr_return_value(enum attr_kind kind, struct attr_set *set, int keyval, void *attribute_val, int *flag);

/* The one-sided operations (rma.c): a put or get or, with an operator, an accumulate. */
int rma_operate(enum rma_kind kind, const void *origin, MPI_Count origin_count, struct dtype *origin_type,
                int rank, MPI_Aint disp, MPI_Count count, struct dtype *type, struct op *op, struct win *win,
                MPI_Request *request);
int rma_get_accumulate(const void *origin, MPI_Count origin_count, struct dtype *origin_type, void *result,
                       MPI_Count result_count, struct dtype *result_type, int rank, MPI_Aint disp,
                       MPI_Count count, struct dtype *type, struct op *op, struct win *win,
                       MPI_Request *request);

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

/* The forms of a status in C and Fortran hold the same eight integers in the same order (MPI_F_SOURCE, MPI_F_TAG,
 * MPI_F_ERROR, the rest), so that converting is copying. */
_Static_assert(sizeof(MPI_Status) == MPI_F_STATUS_SIZE * sizeof(MPI_Fint),
               "C and Fortran statuses are alike");
_Static_assert(sizeof(MPI_F08_status) == sizeof(MPI_Status), "mpi_f08 statuses are like those in C");

#endif
