/* errhandler.c: making, attaching and calling error handlers of communicators, windows, files and sessions.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/errhandler.h"

#include "impl.h"
#include "obj/handle.h"
#include "obj/session.h"

typedef void (*any_function)(void);

static int errhandler_create_kind(enum error_object kind, any_function function, MPI_Errhandler *errhandler)
{
    struct errhandler *made;
    int rc = errhandler_create(kind, function, &made);
    if (!rc)
        *errhandler = errhandler_handle(made);
    return rc;
}

static int errhandler_attach(struct errhandler **slot, enum error_object kind, struct errhandler *e)
{
    static const char *const nouns[] = {[ERROR_ON_NOTHING] = "nothing",
                                        [ERROR_ON_COMM] = "communicators",
                                        [ERROR_ON_WIN] = "windows",
                                        [ERROR_ON_FILE] = "files",
                                        [ERROR_ON_SESSION] = "sessions"};
    if (e->action == ERRHANDLER_CALL && e->kind != kind)
        return err_set(MPI_ERR_ERRHANDLER, "the error handler is for %s, not for %s", nouns[e->kind],
                       nouns[kind]);
    errhandler_retain(e);
    errhandler_release(*slot);
    *slot = e;
    return MPI_SUCCESS;
}

static int errhandler_return_handle(struct errhandler *e, MPI_Errhandler *errhandler)
{
    *errhandler = errhandler_handle(errhandler_retain(e));
    return MPI_SUCCESS;
}

/* Calls the user's handler without the lock, since it may call MPI, and with a reference, since it may replace itself. */
static int errhandler_call_user(enum error_object on, void *object, int errorcode, const char *function)
{
    struct proc *p = the_proc;
    struct errhandler *e = errhandler_retain(errhandler_for_object(p, on, object));
    if (p)
        proc_unlock(p);
    errhandler_invoke_on(p, e, on, object, errorcode, function);
    if (p)
        proc_lock(p);
    errhandler_release(e);
    return MPI_SUCCESS;
}

int impl_Errhandler_free(MPI_Errhandler *errhandler)
{
    struct errhandler *e = errhandler_from(*errhandler);
    if (!e)
        return err_set(MPI_ERR_ERRHANDLER, "errhandler is %s",
                       *errhandler == MPI_ERRHANDLER_NULL ? "MPI_ERRHANDLER_NULL, which cannot be freed"
                                                          : "not an error handler");
    errhandler_release(
        e); /* predefined ones are given out by MPI_X_get_errhandler, and programs free those */
    *errhandler = MPI_ERRHANDLER_NULL;
    return MPI_SUCCESS;
}

int impl_Comm_create_errhandler(MPI_Comm_errhandler_function *comm_errhandler_fn, MPI_Errhandler *errhandler)
{
    return errhandler_create_kind(ERROR_ON_COMM, (any_function)comm_errhandler_fn, errhandler);
}

int impl_Comm_set_errhandler(struct comm *comm, struct errhandler *errhandler)
{
    int rc = errhandler_attach(&comm->errhandler, ERROR_ON_COMM, errhandler);
    if (!rc && comm->local_comm)
        rc = errhandler_attach(&comm->local_comm->errhandler, ERROR_ON_COMM, errhandler);
    return rc;
}

int impl_Comm_get_errhandler(struct comm *comm, MPI_Errhandler *errhandler)
{
    return errhandler_return_handle(comm->errhandler, errhandler);
}

int impl_Comm_call_errhandler(struct comm *comm, int errorcode)
{
    return errhandler_call_user(ERROR_ON_COMM, comm, errorcode, "MPI_Comm_call_errhandler");
}

int impl_Win_create_errhandler(MPI_Win_errhandler_function *win_errhandler_fn, MPI_Errhandler *errhandler)
{
    return errhandler_create_kind(ERROR_ON_WIN, (any_function)win_errhandler_fn, errhandler);
}

int impl_Win_set_errhandler(struct win *win, struct errhandler *errhandler)
{
    return errhandler_attach(&((struct fallible *)(void *)win)->errhandler, ERROR_ON_WIN, errhandler);
}

int impl_Win_get_errhandler(struct win *win, MPI_Errhandler *errhandler)
{
    return errhandler_return_handle(((struct fallible *)(void *)win)->errhandler, errhandler);
}

int impl_Win_call_errhandler(struct win *win, int errorcode)
{
    return errhandler_call_user(ERROR_ON_WIN, win, errorcode, "MPI_Win_call_errhandler");
}

int impl_File_create_errhandler(MPI_File_errhandler_function *file_errhandler_fn, MPI_Errhandler *errhandler)
{
    return errhandler_create_kind(ERROR_ON_FILE, (any_function)file_errhandler_fn, errhandler);
}

/* The location of a file's handler; for NULL (MPI_FILE_NULL) that of the handler for new files. */
static struct errhandler **file_slot(struct file *file)
{
    return file ? &((struct fallible *)(void *)file)->errhandler : &errhandler_of_no_file;
}

int impl_File_set_errhandler(struct file *file, struct errhandler *errhandler)
{
    return errhandler_attach(file_slot(file), ERROR_ON_FILE, errhandler);
}

int impl_File_get_errhandler(struct file *file, MPI_Errhandler *errhandler)
{
    return errhandler_return_handle(*file_slot(file), errhandler);
}

int impl_File_call_errhandler(struct file *fh, int errorcode)
{
    return errhandler_call_user(ERROR_ON_FILE, fh, errorcode, "MPI_File_call_errhandler");
}

int impl_Session_create_errhandler(MPI_Session_errhandler_function *session_errhandler_fn,
                                   MPI_Errhandler *errhandler)
{
    return errhandler_create_kind(ERROR_ON_SESSION, (any_function)session_errhandler_fn, errhandler);
}

int impl_Session_set_errhandler(struct session *session, struct errhandler *errhandler)
{
    return errhandler_attach(&session->errhandler, ERROR_ON_SESSION, errhandler);
}

int impl_Session_get_errhandler(struct session *session, MPI_Errhandler *errhandler)
{
    return errhandler_return_handle(session->errhandler, errhandler);
}

int impl_Session_call_errhandler(struct session *session, int errorcode)
{
    return errhandler_call_user(ERROR_ON_SESSION, session, errorcode, "MPI_Session_call_errhandler");
}
