/* errhandler.h: what happens when a call fails. The API layer passes every error to errhandler_invoke() after
 * it has released the lock, so that a user's handler may call MPI.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_ERRHANDLER_H
#define FP_OBJ_ERRHANDLER_H

#include <mpi.h>

#include "base/err.h"
#include "base/objmem.h"
#include "obj/proc.h"

struct session;

enum errhandler_action { ERRHANDLER_FATAL, ERRHANDLER_ABORT, ERRHANDLER_RETURN, ERRHANDLER_CALL };

/* The kind of object of an error. ERROR_ON_NOTHING: none; uses MPI_COMM_SELF's handler. */
enum error_object { ERROR_ON_NOTHING, ERROR_ON_COMM, ERROR_ON_WIN, ERROR_ON_FILE, ERROR_ON_SESSION };

struct errhandler {
    struct object obj; /* MAGIC_ERRHANDLER; first */
    enum errhandler_action action;
    enum error_object kind; /* ERRHANDLER_CALL: which kind of object it may be attached to */
    uint32_t handle;        /* handle value of a predefined error handler, else 0 */
    union {
        MPI_Comm_errhandler_function *comm;
        MPI_Win_errhandler_function *win;
        MPI_File_errhandler_function *file;
        MPI_Session_errhandler_function *session;
    } function;
};

/* First members of windows and files, so that this layer can find their error handler. */
struct fallible {
    struct object obj;
    struct errhandler *errhandler;
};

struct errhandler *errhandler_predefined(MPI_Errhandler handle);

/* Resolves a handle; NULL for MPI_ERRHANDLER_NULL and for anything else. Works before MPI_Init. */
static inline struct errhandler *errhandler_from(MPI_Errhandler handle)
{
    if (handle_is_predefined(handle))
        return errhandler_predefined(handle);
    struct errhandler *e = (struct errhandler *)handle;
    return object_has_magic(e, MAGIC_ERRHANDLER) ? e : NULL;
}

static inline MPI_Errhandler errhandler_handle(const struct errhandler *e)
{
    return e->handle ? (MPI_Errhandler)(uintptr_t)e->handle : (MPI_Errhandler)e;
}

int errhandler_create(enum error_object kind, void (*function)(void), struct errhandler **out);
struct errhandler *errhandler_retain(struct errhandler *e);
void errhandler_release(struct errhandler *e); /* NULL is allowed */

/* Returns the error handler for errors on this object. p may be NULL (before MPI_Init, after
 * MPI_Finalize). `object` is a struct comm, win, file or session; NULL for ERROR_ON_NOTHING and for
 * MPI_FILE_NULL. */
struct errhandler *errhandler_for_object(struct proc *p, enum error_object on, void *object);

/* Invokes the handler with an error class or code. `function` is the name of the MPI function. Must be
 * called without the lock. Returns what the MPI function should return: the code, or the user handler's
 * replacement. Does not return if the handler is fatal. */
int errhandler_invoke(struct proc *p, enum error_object on, void *object, int code, const char *function);

/* Like errhandler_invoke(), with a given handler: MPI_Session_init and MPI_Comm_create_from_group use the
 * handler that they were passed. */
int errhandler_invoke_on(struct proc *p, struct errhandler *e, enum error_object on, void *object, int code,
                         const char *function);

/* The initial handler of communicators and of errors outside of them: FISHPLATE_INITIAL_ERRHANDLER, which
 * mpiexec -initial-errhandler sets. errhandler_open reads the setting. */
void errhandler_open(void);
extern struct errhandler *errhandler_initial;
/* Handler of MPI_FILE_NULL, for errors of file operations that have no file yet. */
extern struct errhandler *errhandler_of_no_file;

#endif
