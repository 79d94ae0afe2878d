/* errhandler.c: creates error handlers, selects the handler for an error, and prints the message of a fatal
 * error.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/errhandler.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/place.h"
#include "base/tunable.h"
#include "boot/boot.h"
#include "obj/comm.h"
#include "obj/error.h"
#include "obj/handle.h"
#include "obj/session.h"

#define PREDEFINED(ACTION, HANDLE)                                                             \
    {                                                                                          \
        .obj = {.magic = MAGIC_ERRHANDLER, .refs = 1, .predefined = true}, .action = (ACTION), \
        .handle = (HANDLE),                                                                    \
    }

static struct errhandler predefined[] = {
    PREDEFINED(ERRHANDLER_FATAL, 0x141),
    PREDEFINED(ERRHANDLER_ABORT, 0x142),
    PREDEFINED(ERRHANDLER_RETURN, 0x143),
};

/* Choices in the order of `predefined`. */
static TUNABLE_CHOICE(initial, "INITIAL_ERRHANDLER", 0,
                      "mpi_errors_are_fatal|mpi_errors_abort|mpi_errors_return",
                      "What an error does where the program has set no error handler (MPI-5.0, 9.3); "
                      "mpiexec -initial-errhandler sets it.");

struct errhandler *errhandler_initial = &predefined[ERRHANDLER_FATAL];

void errhandler_open(void)
{
    tunables_load();
    errhandler_initial = &predefined[initial.value];
}

/* Handler of errors without a file: they are returned unless the program sets another (MPI-5.0, 14.7). */
struct errhandler *errhandler_of_no_file = &predefined[ERRHANDLER_RETURN];

struct errhandler *errhandler_predefined(MPI_Errhandler handle)
{
    for (size_t i = 0; i < COUNT_OF(predefined); i++)
        if (predefined[i].handle == (uintptr_t)handle)
            return &predefined[i];
    return NULL;
}

int errhandler_create(enum error_object kind, void (*function)(void), struct errhandler **out)
{
    struct errhandler *e = objmem_new(sizeof(*e));
    if (!e)
        return err_set(MPI_ERR_NO_MEM, "out of memory for an error handler");
    e->obj = object_init(MAGIC_ERRHANDLER);
    e->action = ERRHANDLER_CALL;
    e->kind = kind;
    switch (kind) {
    case ERROR_ON_WIN:
        e->function.win = (MPI_Win_errhandler_function *)function;
        break;
    case ERROR_ON_FILE:
        e->function.file = (MPI_File_errhandler_function *)function;
        break;
    case ERROR_ON_SESSION:
        e->function.session = (MPI_Session_errhandler_function *)function;
        break;
    default:
        e->function.comm = (MPI_Comm_errhandler_function *)function;
    }
    *out = e;
    return MPI_SUCCESS;
}

struct errhandler *errhandler_retain(struct errhandler *e)
{
    if (!e->obj.predefined)
        e->obj.refs++;
    return e;
}

void errhandler_release(struct errhandler *e)
{
    if (!e || e->obj.predefined || --e->obj.refs > 0)
        return;
    e->obj.magic = MAGIC_FREED;
    objmem_free(e);
}

struct errhandler *errhandler_for_object(struct proc *p, enum error_object on, void *object)
{
    switch (on) {
    case ERROR_ON_COMM:
        if (object)
            return ((struct comm *)object)->errhandler;
        break;
    case ERROR_ON_SESSION:
        if (object)
            return ((struct session *)object)->errhandler;
        break;
    case ERROR_ON_FILE:
        return object ? ((struct fallible *)object)->errhandler : errhandler_of_no_file;
    case ERROR_ON_WIN:
        if (object)
            return ((struct fallible *)object)->errhandler;
        break;
    default:
        break;
    }
    if (!p || !p->self) {
        errhandler_open(); /* an error before MPI_Init */
        return errhandler_initial;
    }
    /* MPI-4 moved errors without an object from the handler of MPI_COMM_WORLD to the handler of
     * MPI_COMM_SELF. If the program has set no handler on MPI_COMM_SELF, use the one of MPI_COMM_WORLD as
     * before MPI-4. */
    return p->self->errhandler == errhandler_initial ? p->world->errhandler : p->self->errhandler;
}

/* Calls the user's handler, which may replace the code that the MPI function returns. */
static int call_user(struct errhandler *e, enum error_object on, void *object, int code)
{
    MPI_Comm comm = on == ERROR_ON_COMM && object ? comm_handle(object) : MPI_COMM_SELF;
    MPI_Win win = object ? (MPI_Win)object : MPI_WIN_NULL;
    MPI_File file = object ? (MPI_File)object : MPI_FILE_NULL;
    MPI_Session session = object ? (MPI_Session)object : MPI_SESSION_NULL;
    switch (e->kind) {
    case ERROR_ON_WIN:
        e->function.win(&win, &code);
        break;
    case ERROR_ON_FILE:
        e->function.file(&file, &code);
        break;
    case ERROR_ON_SESSION:
        e->function.session(&session, &code);
        break;
    default:
        e->function.comm(&comm, &code);
    }
    return code;
}

static void describe_object(enum error_object on, void *object, char *out, size_t size)
{
    const struct comm *c = object;
    if (on == ERROR_ON_COMM && c && c->remote)
        snprintf(out, size, " on %s (rank %d of %d, %d on the other side)", comm_label(c), c->rank, c->size,
                 c->remote->size);
    else if (on == ERROR_ON_COMM && c)
        snprintf(out, size, " on %s (rank %d of %d)", comm_label(c), c->rank, c->size);
    else
        out[0] = '\0';
}

/* Formats a cause and its class: "dest is 77; ... (MPI_ERR_RANK: there is no such rank)". */
static void describe_cause(int code, char *out, size_t size)
{
    char text[MPI_MAX_ERROR_STRING] = "an undefined error code", detail[1024];
    int len;
    error_text(code, text, &len);
    size_t used = (size_t)snprintf(detail, sizeof(detail), "%s", err_detail(code));
    if (used > 0 && used < sizeof(detail) && detail[used - 1] == '.')
        detail[used - 1] = '\0';
    if (!detail[0])
        snprintf(out, size, "%s", text);
    else if (code == MPI_ERR_OTHER)
        snprintf(out, size, "%s (%s)", detail, error_class_name(code));
    else
        snprintf(out, size, "%s (%s)", detail, text);
}

/* Prints the cause, the failed call and its place, and the fatal handler; then ends the job. */
static _Noreturn void errhandler_end_job(struct proc *p, const struct errhandler *e, enum error_object on,
                                         void *object, int code, const char *function)
{
    char cause[1024 + MPI_MAX_ERROR_STRING + 4], where[256], place[512], message[2560];
    int errclass = MPI_ERR_UNKNOWN;
    const bool reported_elsewhere = boot_is_reported_elsewhere(err_detail(code));
    describe_cause(code, cause, sizeof(cause));
    error_class_of(code, &errclass);
    describe_object(on, object, where, sizeof(where));
    place_call_text(NULL, 0, place, sizeof(place));
    snprintf(message, sizeof(message),
             "%s.\n    %s failed%s%s.\n    The error handler in force is %s, so the job ends.", cause,
             function, where, place,
             e->action == ERRHANDLER_ABORT ? "MPI_ERRORS_ABORT" : "MPI_ERRORS_ARE_FATAL");
    int status = errclass % 256 ? errclass % 256 : 1;
    struct boot *boot = p ? p->boot : proc_get_unopened_boot();
    if (boot)
        boot_abort(boot, status, message);
    if (!reported_elsewhere)
        fprintf(stderr, "%s\n", message);
    exit(status);
}

int errhandler_invoke_on(struct proc *p, struct errhandler *e, enum error_object on, void *object, int code,
                         const char *function)
{
    err_report(code);
    if (e->action == ERRHANDLER_FATAL || e->action == ERRHANDLER_ABORT)
        errhandler_end_job(p, e, on, object, code, function);
    if (!p)
        proc_close_unopened_boot();
    return e->action == ERRHANDLER_CALL ? call_user(e, on, object, code) : code;
}

int errhandler_invoke(struct proc *p, enum error_object on, void *object, int code, const char *function)
{
    /* Retain the handler, because it may replace itself. */
    if (p)
        proc_lock(p);
    struct errhandler *e = errhandler_retain(errhandler_for_object(p, on, object));
    if (p)
        proc_unlock(p);
    code = errhandler_invoke_on(p, e, on, object, code, function);
    if (p)
        proc_lock(p);
    errhandler_release(e);
    if (p)
        proc_unlock(p);
    return code;
}
