/* proc.c: one MPI process from start to end: the layers below are opened from left to right and closed from
 * right to left, with the predefined objects in between, and no process ends while others may still need its
 * answers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/proc.h"

#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/tunable.h"
#include "boot/boot.h"
#include "gpu/gpu.h"
#include "net/memhook.h"
#include "obj/attr.h"
#include "obj/attr_table.h"
#include "obj/comm.h"
#include "obj/context.h"
#include "obj/create.h"
#include "obj/errhandler.h"
#include "obj/fault.h"
#include "obj/group.h"
#include "obj/info.h"
#include "p2p/bsend.h"
#include "p2p/peer_death.h"

static TUNABLE_BOOL(check, "CHECK", 1,
                    "Check the arguments of every MPI call and name the wrong one. Without it a wrong "
                    "argument may crash the program.");

struct proc *the_proc;

/* The lower layers, which stay open between sessions: a process can connect to its launcher only once. */
static struct {
    struct boot *boot;
    struct net *net;
    struct p2p *p2p;
    pid_t owner;
    struct boot *unopened; /* launcher connection after a failed MPI_Init, for its error handler */
    bool left;             /* the launcher knows that this process has called MPI_Finalize */
} parked;

/* Notifies the launcher of MPI_Finalize: the program may fail afterwards without ending the job. */
static int report_finalized(struct boot *boot)
{
    if (parked.left)
        return MPI_SUCCESS;
    parked.left = true;
    return boot_finalize(boot);
}

/* Closes the lower layers. together: the other ranks close theirs at the same time. */
static void close_layers(struct boot *boot, struct net *net, struct p2p *p2p, bool together)
{
    if (p2p) {
        net_finish(net, together);
        p2p_close(p2p);
    }
    if (net)
        net_close(net);
    gpu_close();
    memhook_close(gpu_forget_range, NULL);
    if (boot) {
        report_finalized(boot);
        boot_close(boot);
    }
}

/* Exit handler. It does nothing in a forked child, which must not report to the launcher as its parent. */
static void close_parked_layers(void)
{
    if (parked.boot && parked.owner == getpid())
        close_layers(parked.boot, parked.net, parked.p2p, false);
}

/* Makes standard output line-buffered: if another rank's failure ends this one, printed lines are not lost.
 * A program that wants a large buffer calls setvbuf after MPI_Init. An unbuffered stream stays unbuffered. */
static void set_stdout_line_buffered(const struct boot *b)
{
    if (strcmp(b->launcher, "singleton") != 0 && !isatty(STDOUT_FILENO) && __fbufsize(stdout) != 1)
        setvbuf(stdout, NULL, _IOLBF, 0);
}

/* Called on the first use of GPU memory: hooks on munmap keep the cache of host memory ranges valid.
 * Without hooks the driver is queried for every buffer. */
static void watch_unmapped_memory(void)
{
    const char *why = "";
    if (memhook_open(gpu_forget_range, NULL, &why))
        gpu_set_hooks_active();
    else
        log_info("GPU memory: the kind of memory of every buffer is queried from the driver, because "
                 "unmapped memory is "
                 "not noticed here: %s",
                 why);
}

static int layers_open(struct proc *p)
{
    if (parked.boot) {
        p->boot = parked.boot;
        p->net = parked.net;
        p->p2p = parked.p2p;
        parked.boot = NULL;
        p2p_on_peer_of(p->p2p, comm_find_sender, p); /* replaces the callbacks of the closed struct proc */
        p2p_on_fault(p->p2p, comm_check_envelope, comm_member_died, p);
        return MPI_SUCCESS;
    }
    if (parked.left)
        return err_set(MPI_ERR_OTHER,
                       "this process has left its job and cannot join it again: on several nodes, open the "
                       "first session before MPI_Finalize and close the last one after it");
    tunables_load();
    int rc = boot_open(&p->boot);
    if (rc)
        return rc;
    if (p->boot->rank == 0)
        tunables_report();
    log_set_identity((int)p->boot->rank, p->boot->host);
    set_stdout_line_buffered(p->boot);
    gpu_set_activation_callback(watch_unmapped_memory);
    rc = gpu_open();
    if (!rc)
        rc = net_open(p->boot, &p->net);
    if (!rc)
        rc = p2p_open(p->net, &p->p2p);
    if (!rc)
        rc = net_open_requested_connections(p->net);
    if (!rc) {
        p2p_on_drop_comm(p->p2p, comm_release);
        p2p_on_peer_of(p->p2p, comm_find_sender, p);
        p2p_on_fault(p->p2p, comm_check_envelope, comm_member_died, p);
    }
    return rc;
}

const char *thread_level_name(int level)
{
    switch (level) {
    case MPI_THREAD_SINGLE:
        return "MPI_THREAD_SINGLE";
    case MPI_THREAD_FUNNELED:
        return "MPI_THREAD_FUNNELED";
    case MPI_THREAD_SERIALIZED:
        return "MPI_THREAD_SERIALIZED";
    default:
        return "MPI_THREAD_MULTIPLE";
    }
}

static int predefined_comm(struct proc *p, uint32_t first, int size, uint32_t id, MPI_Comm handle,
                           const char *name, struct comm **out)
{
    struct group *g;
    struct comm *c;
    int rc = group_from_range(p->rank, first, size, &g);
    if (!rc)
        rc = comm_alloc(p, g, NULL, &c);
    if (rc)
        return rc;
    c->obj.predefined = true;
    c->handle = (uint32_t)(uintptr_t)handle;
    comm_set_context(c, id);
    c->errhandler = errhandler_retain(errhandler_initial);
    snprintf(c->name, sizeof(c->name), "%s", name);
    *out = c;
    return MPI_SUCCESS;
}

static int objects_open(struct proc *p)
{
    context_ids_init(p);
    int rc = attr_table_open(p);
    if (!rc)
        rc = group_from_range(p->rank, 0, 0, &p->group_empty);
    if (!rc) {
        p->group_empty->obj.predefined = true;
        p->group_empty->handle = (uint32_t)(uintptr_t)MPI_GROUP_EMPTY;
        rc = info_create_env(0, NULL, &p->info_env);
    }
    if (!rc) {
        p->info_env->obj.predefined = true;
        rc = info_set(p->info_env, "thread_level", thread_level_name(p->thread_level));
    }
    if (!rc) {
        p->info_env->handle = (uint32_t)(uintptr_t)MPI_INFO_ENV;
        rc = predefined_comm(p, 0, (int)p->size, CONTEXT_ID_WORLD, MPI_COMM_WORLD, "MPI_COMM_WORLD",
                             &p->world);
    }
    if (!rc)
        rc = predefined_comm(p, p->rank, 1, CONTEXT_ID_SELF, MPI_COMM_SELF, "MPI_COMM_SELF", &p->self);
    return rc;
}

static void objects_close(struct proc *p)
{
    if (p->dyn_closing)
        p->dyn_closing(p);
    comm_release(p->parent);
    comm_release(p->world);
    comm_release(p->self);
    group_release(p->group_empty);
    info_release(p->info_env);
    attr_table_close(p);
}

void proc_abandon(struct proc *p)
{
    /* Suppress the report of MPI_Finalize to the launcher: other ranks would wait for this one. */
    parked.left = true;
    objects_close(p);
    close_layers(NULL, p->net, p->p2p, false);
    parked.unopened = p->boot;
    biglock_destroy(&p->lock);
    free(p);
}

int proc_open(int thread_level, struct proc **out)
{
    struct proc *p = calloc(1, sizeof(*p));
    if (!p)
        return err_set(MPI_ERR_NO_MEM, "out of memory at start-up");
    biglock_init(&p->lock);
    list_init(&p->sessions);
    list_init(&p->assemblies);
    p->thread_level = thread_level;
    p->main_thread = pthread_self();
    int rc = layers_open(p);
    if (!rc) {
        p->threaded = thread_level == MPI_THREAD_MULTIPLE || net_thread_is_enabled();
        p->rank = p->boot->rank;
        p->size = p->boot->size;
        p->check_args = check.value != 0;
        p->net->lock = p->threaded ? &p->lock : NULL;
        rc = objects_open(p);
    }
    if (rc) {
        proc_abandon(p);
        return rc;
    }
    *out = p;
    return MPI_SUCCESS;
}

struct boot *proc_get_unopened_boot(void)
{
    return parked.unopened;
}

void proc_close_unopened_boot(void)
{
    boot_close(parked.unopened);
    parked.unopened = NULL;
}

int proc_delete_world_attributes(struct proc *p)
{
    int rc = attr_delete_all(p, MPI_COMM_SELF, &p->self->attrs);
    int rc_world = attr_delete_all(p, MPI_COMM_WORLD, &p->world->attrs);
    return rc ? rc : rc_world;
}

void proc_flush_pending_sends(struct proc *p)
{
    struct net_waiter w = {.awaited_kind = NET_ROOM};
    while (!list_empty(&p->net->stalled))
        net_wait_step(p->net, &w);
    net_wait_end(p->net, &w);
}

static void detach_bsend_buffer(struct proc *p)
{
    void *buffer;
    MPI_Count size;
    if (p->bsend)
        bsend_detach(p->bsend, &buffer, &size);
    p->bsend = NULL;
}

static void proc_park_layers(struct proc *p)
{
    static bool registered;
    if (!registered)
        atexit(close_parked_layers);
    registered = true;
    p->net->lock = NULL;
    parked.boot = p->boot;
    parked.net = p->net;
    parked.p2p = p->p2p;
    parked.owner = getpid();
}

int proc_close(struct proc *p)
{
    proc_lock(p);
    int rc = proc_delete_world_attributes(p);
    p->ending = true;
    detach_bsend_buffer(p);
    proc_flush_pending_sends(p);
    if (p->world_used && p->size > 1) {
        int quiesced = p->quiesce ? p->quiesce(p) : comm_quiesce(p->world);
        rc = rc ? rc : quiesced;
        proc_flush_pending_sends(p);
    }
    p->net->look = NULL; /* the callback would read freed objects */
    p2p_set_layer_handler(p->p2p, P2P_FRAME_CALL, NULL, NULL);
    if (p->ft_closing)
        p->ft_closing(p);
    proc_flush_pending_sends(p);
    if (p->rma_closing)
        p->rma_closing(p);
    objects_close(p);
    p2p_on_fault(p->p2p, NULL, NULL, NULL); /* no fault checks while the process ends */
    proc_unlock(p);
    /* On several nodes, the connections are closed while all ranks can still reply. Meanwhile src/ft
     * replies to ranks that are still in the agreement of MPI_Finalize after a death. */
    bool keep = !p->world_used || p->boot->nnodes == 1;
    if (keep)
        p2p_set_layer_handler(p->p2p, P2P_FRAME_FAULT, NULL, NULL);
    if (p->world_used && keep)
        report_finalized(p->boot);
    if (keep)
        proc_park_layers(p);
    else
        close_layers(p->boot, p->net, p->p2p, true);
    biglock_destroy(&p->lock);
    free(p->coll_budget);
    free(p->coll_results);
    free(p->context_epochs);
    free(p);
    return rc;
}
