/* missing.c: calls to functions that are not there yet. They return an error; because file operations return errors
 * by default and few programs look at them, they also say it in a sentence: once for each function and job. One speaks
 * for a communicator, one for a node, and the launcher knows which node was first; where it is another's, each node speaks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "api/report.h"
#include "api_list.h"
#include "base/log.h"
#include "boot/boot.h"

static size_t number_of(const char *function)
{
    size_t i = 0;
    while (i < API_LIST_SIZE - 1 && strcmp(api_list[i].name, function) != 0)
        i++;
    return i;
}

/* Ranks of a node share a file. Who gets the lock on the byte of this function speaks; the lock goes when the process
 * ends. Far behind the file's data, which needs no bytes to be locked. */
static bool first_on_node(size_t number)
{
    const int fd = the_proc ? the_proc->boot->node_fd : -1;
    struct flock lock = {.l_type = F_WRLCK, .l_start = ((off_t)1 << 40) + (off_t)number, .l_len = 1};
    return fd < 0 || fcntl(fd, F_SETLK, &lock) == 0;
}

static bool first_in_job(const char *function)
{
    if (!the_proc)
        return true;
    proc_lock(the_proc);
    const bool first = boot_first(the_proc->boot, function);
    proc_unlock(the_proc);
    return first;
}

static void say(const char *function, const struct comm *comm)
{
    static _Atomic bool said[API_LIST_SIZE];
    const size_t number = number_of(function);
    if ((comm && comm->rank != 0) || atomic_exchange(&said[number], true) || !first_on_node(number) ||
        !first_in_job(function))
        return;
    log_error(
        "%s is not in Fishplate %s yet. The call did nothing and returned MPI_ERR_UNSUPPORTED_OPERATION. "
        "`fishplate info --api PROGRAM` lists the functions that a program needs and that are not there.",
        function, FISHPLATE_VERSION);
}

static int failed(const char *function)
{
    return err_set(MPI_ERR_UNSUPPORTED_OPERATION, "%s is not implemented in Fishplate %s yet", function,
                   FISHPLATE_VERSION);
}

int api_unsupported(const char *function, const struct comm *comm)
{
    say(function, comm);
    return failed(function);
}

int api_missing(enum error_object on, struct comm *comm, const char *function)
{
    void *object = on == ERROR_ON_COMM ? comm : NULL;
    const struct errhandler *e =
        errhandler_of(the_proc, object || on == ERROR_ON_FILE ? on : ERROR_ON_NOTHING, object);
    /* The message of a fatal handler says it. */
    if (e->action == ERRHANDLER_RETURN || e->action == ERRHANDLER_CALL)
        say(function, comm);
    return api_error(on, object, failed(function), function);
}
