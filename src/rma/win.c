/* win.c: creates and frees windows. win_make() duplicates the parent communicator (the duplicate's context
 * identifies the window in frames), allocates memory and fills in an entry of this process's directory. A
 * collective then confirms that all ranks have done so, after which every rank may access every other. The
 * collective uses the parent communicator, whose collectives are set up already.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/kill_point.h"
#include "rma/win.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/counter.h"
#include "obj/context.h"
#include "obj/create.h"
#include "rma/rma.h"
#include "rma/window_memory.h"

static COUNTER(made, "rma_windows", "Windows created.");

static const char *flavor_name(int flavor)
{
    switch (flavor) {
    case MPI_WIN_FLAVOR_CREATE:
        return "MPI_Win_create";
    case MPI_WIN_FLAVOR_ALLOCATE:
        return "MPI_Win_allocate";
    case MPI_WIN_FLAVOR_DYNAMIC:
        return "MPI_Win_create_dynamic";
    default:
        return "MPI_Win_allocate_shared";
    }
}

const char *win_label(const struct win *w)
{
    return w->name[0] ? w->name : w->label;
}

int win_error(const struct win *w, int errclass, const char *fmt, ...)
{
    char what[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    return err_set(errclass, "%s (rank %d of %d, window %s)", what, w->comm->rank, w->comm->size,
                   win_label(w));
}

static void rma_close(struct proc *p)
{
    struct rma *r = p->rma;
    p2p_set_layer_handler(p->p2p, P2P_FRAME_ONE_SIDED, NULL, NULL);
    p->rma = NULL;
    p->rma_closing = NULL;
    p->rma_member_died = NULL;
    counts_close_all(r);
    mailbox_close(r);
    directory_close(r);
    ids_close(&r->ids);
    free(r->scratch);
    free(r);
}

struct rma *rma_open(struct proc *p)
{
    if (p->rma)
        return p->rma;
    struct rma *r = calloc(1, sizeof(*r));
    char *scratch = malloc(RMA_CHUNK_MAX);
    if (!r || !scratch) {
        free(r);
        free(scratch);
        return NULL;
    }
    r->proc = p;
    r->scratch = scratch;
    r->debug = watch_is_enabled();
    p->rma = r;
    p->rma_closing = rma_close;
    p->rma_member_died = rma_member_died;
    p2p_set_layer_handler(p->p2p, P2P_FRAME_ONE_SIDED, rma_handle_frame, r);
    return r;
}

struct win *win_of_context(struct rma *r, uint32_t context)
{
    struct win *w = r->wins[context_id_of(context)];
    return w && w->comm->context == context ? w : NULL; /* an earlier window may have had the same id */
}

static int win_allocate_object(struct comm *parent, int flavor, struct win **out)
{
    struct proc *p = parent->proc;
    struct win *w = objmem_new(sizeof(*w));
    if (!w)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a window");
    w->base.obj = object_init(MAGIC_WIN);
    w->base.errhandler = errhandler_retain(errhandler_initial);
    w->proc = p;
    w->flavor = flavor;
    w->model = MPI_WIN_UNIFIED;
    list_init(&w->busy);
    list_init(&w->waiting);
    list_init(&w->watch);
    list_init(&w->seen);
    snprintf(w->label, sizeof(w->label), "of %s on %.60s", flavor_name(flavor), comm_label(parent));
    *out = w;
    return MPI_SUCCESS;
}

static void win_destroy(struct win *w)
{
    struct rma *r = w->proc->rma;
    watch_close(w);
    lock_stop_polling(w);
    win_peers_close(w);
    win_memory_close(w);
    if (w->comm && r && r->wins[context_id_of(w->comm->context)] == w)
        r->wins[context_id_of(w->comm->context)] = NULL;
    comm_release(w->comm);
    errhandler_release(w->base.errhandler);
    info_release(w->info);
    free(w->started);
    free(w->posted);
    free(w->regions);
    w->base.obj.magic = MAGIC_FREED;
    objmem_free(w);
}

int win_make(struct comm *parent, int flavor, void *memory, MPI_Aint size, MPI_Aint unit,
             const struct info *info, struct win **out)
{
    struct win *w;
    struct rma *r = rma_open(parent->proc);
    int rc =
        r ? win_allocate_object(parent, flavor, &w) : err_set(MPI_ERR_NO_MEM, "out of memory for windows");
    if (rc)
        return rc;
    rc = comm_dup(parent, NULL, &w->comm);
    if (rc) {
        win_destroy(w);
        return rc;
    }
    r->wins[context_id_of(w->comm->context)] = w;
    w->memory = memory;
    w->size = size;
    w->unit = unit;
    w->unit_int = (int)unit;
    rc = win_hints_apply(w, info);
    rc = rc ? rc : win_memory_open(w);
    KILL_POINT(win_memory_opened);
    rc = win_agree_on_creation(w, parent, rc);
    KILL_POINT(win_agreed);
    /* Mapping the memory that rank 0 allocated can fail at one rank alone, too. */
    if (!rc && flavor == MPI_WIN_FLAVOR_SHARED)
        rc = win_agree_on_creation(w, parent, win_memory_map_shared(w, parent));
    if (!rc && w->some_on_device && w->comm->size > 1)
        rc = win_device_share(w, parent);
    if (rc) {
        win_destroy(w);
        return rc;
    }
    watch_start_recording(w);
    directory_announce(w, parent);
    counter_add(&made, 1);
    *out = w;
    return MPI_SUCCESS;
}

int win_free(struct win *w, bool *gone)
{
    *gone = false;
    if (w->access == EPOCH_LOCK || w->access == EPOCH_LOCK_ALL || w->access == EPOCH_START)
        return win_error(w, MPI_ERR_RMA_SYNC, "the window cannot be freed: an access epoch is open");
    if (w->exposed)
        return win_error(w, MPI_ERR_RMA_SYNC,
                         "the window cannot be freed: MPI_Win_post was not followed by MPI_Win_wait");
    int rc = attr_delete_all(w->proc, win_handle(w), &w->attrs);
    if (rc)
        return rc;
    /* No answer may arrive after the window is freed. */
    rc = rma_wait_for(w->proc->rma, w, NULL, directory_is_settled, w, false,
                      &(struct net_named){"descriptions of other ranks' windows", NET_NOBODY, false});
    watch_mark_unconfirmed(w);
    int finished = peers_wait_operations(w, true);
    rc = rc ? rc : finished;
    /* If deaths do not end the job, no rank may leave before all live ranks are done with the memory. */
    int met = comm_outlives_deaths(w->comm) && w->comm->size > 1 ? w->proc->living_members_barrier(w->comm)
                                                                 : win_barrier(w);
    win_destroy(w);
    *gone = true;
    rc = rc ? rc : met;
    return rc == MPIX_ERR_PROC_FAILED || rc == MPIX_ERR_REVOKED ? MPI_SUCCESS
                                                                : rc; /* the window is freed nevertheless */
}
