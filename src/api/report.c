/* report.c: from a failed call to the right error handler. obj/errhandler.h knows the handler of an object;
 * this file finds the object.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/report.h"

#include <stdlib.h>
#include <unistd.h>

#include "api/enter.h"
#include "api/init.h"
#include "base/log.h"
#include "obj/session.h"

static _Thread_local struct comm *blamed;
static _Thread_local struct file *blamed_file;

void api_set_error_comm(struct comm *c)
{
    blamed = c;
}

void api_blame_file(struct file *f)
{
    blamed_file = f;
}

int api_error(enum error_object on, void *object, int rc, const char *function)
{
    if (on == ERROR_ON_NOTHING && blamed) {
        on = ERROR_ON_COMM;
        object = blamed;
    } else if (on == ERROR_ON_NOTHING && blamed_file) {
        on = ERROR_ON_FILE;
        object = blamed_file;
    }
    blamed = NULL;
    blamed_file = NULL;
    /* MPI_FILE_NULL has a handler of its own; any other missing object leaves MPI_COMM_SELF's. */
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
        _exit(EXIT_FAILURE); /* exit would run the parent's handlers and write what it has in its buffers */
    }
    if (api_world_state() == WORLD_DONE)
        log_error("%s was called after MPI_Finalize", function);
    else
        log_error("%s was called before MPI_Init", function);
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
