/* error.c: error classes, codes and strings. Callable at any time, also without MPI_Init.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/error.h"

#include <stdio.h>

#include "api/check.h"
#include "api/forward.h"
#include "base/err.h"
#include "impl.h"
#include "obj/errhandler.h"
#include "obj/handle.h"
#include "obj/session.h"

int impl_Error_string(int errorcode, char *string, int *resultlen)
{
    unsigned count;
    int rc = error_text(errorcode, string, resultlen);
    if (rc)
        return rc;
    const char *detail = err_get_reported(errorcode, &count);
    if (*detail && errorcode == MPI_ERR_OTHER) /* the text of MPI_ERR_OTHER describes nothing */
        *resultlen = snprintf(string, MPI_MAX_ERROR_STRING, "%s", error_class_name(errorcode));
    const size_t room = (size_t)(MPI_MAX_ERROR_STRING - *resultlen);
    if (*detail && count > 1)
        *resultlen +=
            snprintf(string + *resultlen, room, "; the last of %u errors of this class: %s", count, detail);
    else if (*detail)
        *resultlen +=
            snprintf(string + *resultlen, room, "%s%s", errorcode == MPI_ERR_OTHER ? ": " : "; ", detail);
    *resultlen = MIN(*resultlen, MPI_MAX_ERROR_STRING - 1);
    return MPI_SUCCESS;
}

/* Making, attaching and calling error handlers of communicators, windows, files and sessions. */

int errhandler_return_new(enum error_object kind, void (*function)(void), MPI_Errhandler *errhandler)
{
    struct errhandler *made;
    int rc = errhandler_create(kind, function, &made);
    if (!rc)
        *errhandler = errhandler_handle(made);
    return rc;
}

/* Returns the location of an object's error handler. MPI_FILE_NULL (`object` NULL) has the handler that files
 * opened later inherit. */
static struct errhandler **errhandler_slot(enum error_object on, void *object)
{
    switch (on) {
    case ERROR_ON_COMM:
        return &((struct comm *)object)->errhandler;
    case ERROR_ON_SESSION:
        return &((struct session *)object)->errhandler;
    default:
        return object ? &((struct fallible *)object)->errhandler : &errhandler_of_no_file;
    }
}

int errhandler_attach(enum error_object on, void *object, struct errhandler *e)
{
    static const char *const nouns[] = {[ERROR_ON_NOTHING] = "nothing",
                                        [ERROR_ON_COMM] = "communicators",
                                        [ERROR_ON_WIN] = "windows",
                                        [ERROR_ON_FILE] = "files",
                                        [ERROR_ON_SESSION] = "sessions"};
    struct errhandler **slot = errhandler_slot(on, object);
    if (e->action == ERRHANDLER_CALL && e->kind != on)
        return err_set(MPI_ERR_ERRHANDLER, "the error handler is for %s, not for %s", nouns[e->kind],
                       nouns[on]);
    errhandler_retain(e);
    errhandler_release(*slot);
    *slot = e;
    if (on == ERROR_ON_COMM && ((struct comm *)object)->local_comm)
        return errhandler_attach(on, ((struct comm *)object)->local_comm, e);
    return MPI_SUCCESS;
}

int errhandler_return_attached(enum error_object on, void *object, MPI_Errhandler *errhandler)
{
    *errhandler = errhandler_handle(errhandler_retain(*errhandler_slot(on, object)));
    return MPI_SUCCESS;
}

/* Calls the user's handler without the lock, since it may call MPI, and with a reference, since it may
 * replace itself. */
int errhandler_call_user(enum error_object on, void *object, int errorcode, const char *function)
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
        return bad_handle(HANDLE_ERRHANDLER, "errhandler", *errhandler);
    errhandler_release(e); /* no effect on predefined handlers, which MPI_X_get_errhandler also returns */
    *errhandler = MPI_ERRHANDLER_NULL;
    return MPI_SUCCESS;
}
