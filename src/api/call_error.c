/* call_error.c: from a failed call to the right error handler. obj/errhandler.h knows the handler of an object;
 * this file finds the object.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/call_error.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/enter.h"
#include "api/init.h"
#include "base/log.h"
#include "base/place.h"
#include "io/file_op.h"
#include "obj/session.h"
#include "rma/win.h"

/* Object whose error handler this thread's next error invokes; ERROR_ON_NOTHING: the call's argument. */
struct error_owner {
    enum error_object on;
    void *object;
};
static _Thread_local struct error_owner next_error;

int api_select_request_errhandler(const struct request *r, int rc)
{
    struct file *file = rc ? io_op_file(r) : NULL;
    struct win *win = rc ? rma_request_win(r) : NULL;
    if (rc && r->comm && r->comm->obj.refs > 1) /* the program has not freed the communicator */
        next_error = (struct error_owner){ERROR_ON_COMM, r->comm};
    else if (file)
        next_error = (struct error_owner){ERROR_ON_FILE, file};
    else if (win)
        next_error = (struct error_owner){ERROR_ON_WIN, win};
    return rc;
}

int api_error(enum error_object on, void *object, int rc, const char *function)
{
    if (on == ERROR_ON_NOTHING) {
        on = next_error.on;
        object = next_error.object;
    }
    next_error.on = ERROR_ON_NOTHING;
    /* MPI_FILE_NULL has a handler of its own; for any other missing object MPI_COMM_SELF's is invoked. */
    if (!object && on != ERROR_ON_FILE)
        on = ERROR_ON_NOTHING;
    return errhandler_invoke(the_proc, on, object, rc, function);
}

int api_error_to_handler(struct errhandler *e, int rc, const char *function)
{
    if (!e)
        return api_error(ERROR_ON_NOTHING, NULL, rc, function);
    return errhandler_invoke_on(the_proc, e, ERROR_ON_NOTHING, NULL, rc, function);
}

int api_error_outside_mpi(const char *function)
{
    if (api_is_forked_child()) {
        log_error("%s was called in a forked child (process %d). MPI belongs to the process that called "
                  "MPI_Init: call "
                  "MPI there, or start the child with exec. The child ends.",
                  function, (int)getpid());
        /* exit() would run the parent's atexit handlers and flush the parent's buffers. */
        _exit(EXIT_FAILURE);
    }
    char caller[512];
    place_call_text(NULL, 0, caller, sizeof(caller));
    if (api_world_state() != WORLD_DONE)
        log_error("%s was called before MPI_Init.\n    %s failed%s.", function, function, caller);
    else if (strcmp(function, "MPI_Finalize") == 0)
        log_error("MPI_Finalize was called a second time.\n    %s failed%s.", function, caller);
    else
        log_error("%s was called after MPI_Finalize.\n    %s failed%s.", function, function, caller);
    exit(EXIT_FAILURE);
}

struct comm *api_comm_at(const MPI_Comm *handle)
{
    return handle && the_proc ? comm_from(the_proc, *handle) : NULL;
}

struct win *api_win_at(const MPI_Win *handle)
{
    return handle ? win_from(*handle) : NULL;
}

struct file *api_file_at(const MPI_File *handle)
{
    return handle ? file_from(*handle) : NULL;
}

struct session *api_session_at(const MPI_Session *handle)
{
    return handle ? session_from(*handle) : NULL;
}
