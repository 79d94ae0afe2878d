/* init.c: MPI_Init to MPI_Finalize, and MPI_Abort. proc_open() opens a process; this file owns the order of
 * events that a user can observe, and the rule that the world model is initialised only once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/init.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "api/crash.h"
#include "api/debug.h"
#include "api/doctor.h"
#include "api/call_error.h"
#include "api/tool.h"
#include "base/place.h"
#include "boot/boot.h"
#include "coll/coll.h"
#include "dyn/spawn.h"
#include "ft/ft.h"
#include "impl.h"
#include "obj/errhandler.h"
#include "obj/handle.h"

/* Several threads may open sessions at once, before the process instance and its lock exist. */
static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER;
static _Atomic enum world_state world;

/* This process was forked from a process in which MPI was running. */
static bool forked;

enum world_state api_world_state(void)
{
    return atomic_load(&world);
}

bool api_is_forked_child(void)
{
    return forked;
}

/* Called in a forked child. The process instance belongs to the parent: its connections, its rank, threads
 * that do not exist here. With the_proc NULL every call ends in api_error_outside_mpi(), without overhead for
 * calls of the parent. MPI_Finalized returns true, so that libraries that query it at clean-up do not call
 * MPI. */
static void after_fork_child(void)
{
    forked = true;
    the_proc = NULL;
    if (api_world_state() == WORLD_RUNNING)
        atomic_store(&world, WORLD_DONE);
}

static void watch_forks(void)
{
    static bool watched;
    if (!watched)
        watched = pthread_atfork(NULL, NULL, after_fork_child) == 0;
}

/* Raises the thread level for a later user of the instance; until now at most one thread was inside MPI. */
static void raise_thread_level(struct proc *p, int thread_level)
{
    if (thread_level <= p->thread_level)
        return;
    p->thread_level = thread_level;
    if (thread_level == MPI_THREAD_MULTIPLE && !p->threaded) {
        p->threaded = true;
        p->net->lock = &p->lock;
    }
}

static int instance_open(int thread_level, struct proc **out)
{
    if (!the_proc) {
        struct proc *p;
        errhandler_open();
        int rc = proc_open(thread_level, &p);
        if (rc)
            return rc;
        the_proc = p;
        watch_forks();
        crash_open(p->boot);
        doctor_open(p);
        tool_attach(p);
        rc = coll_open(p); /* fails if the file that FISHPLATE_COLL names cannot be read */
        rc = rc ? rc : ft_open(p);
        if (rc) {
            crash_close();
            proc_abandon(p);
            doctor_close();
            the_proc = NULL;
            return rc;
        }
        debug_watch_open(p);
        if (net_thread_is_enabled())
            net_thread_start(p->net);
    }
    raise_thread_level(the_proc, thread_level);
    the_proc->users++;
    *out = the_proc;
    return MPI_SUCCESS;
}

int api_instance_open(int thread_level, struct proc **out)
{
    pthread_mutex_lock(&life);
    int rc = instance_open(thread_level, out);
    pthread_mutex_unlock(&life);
    return rc;
}

int api_instance_close(void)
{
    pthread_mutex_lock(&life);
    bool last = --the_proc->users == 0;
    pthread_mutex_unlock(&life);
    if (!last)
        return MPI_SUCCESS;
    net_thread_stop(the_proc->net); /* from now on this thread makes all progress that is still needed */
    /* proc_close() runs attribute callbacks of MPI_COMM_SELF, which may call MPI, so the_proc stays set. */
    crash_close();
    debug_watch_close(the_proc);
    int rc = proc_close(the_proc);
    doctor_close();
    the_proc = NULL;
    return rc;
}

int api_thread_level(int required)
{
    static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED};
    for (size_t i = 0; i < COUNT_OF(levels); i++)
        if (required <= levels[i])
            return levels[i];
    return MPI_THREAD_MULTIPLE;
}

/* Connects spawned processes to their parents and lets the program use MPI_COMM_WORLD. */
static int world_connect(struct proc *p)
{
    int rc = spawn_connect_to_parents(p);
    /* A process of either job has died: mpiexec notifies the others, whose MPI_Comm_spawn fails. */
    if (rc && p->net->lost)
        _exit(1);
    if (rc)
        return rc;
    p->main_thread = pthread_self();
    atomic_store(&world, WORLD_RUNNING);
    rc = boot_report_initialized(p->boot);
    return !rc && coll_laboratory_select_barrier ? coll_laboratory_select_barrier(p->world) : rc;
}

static int world_open(const char *function, int thread_level, int *provided)
{
    if (forked)
        return api_error_outside_mpi(function);
    if (api_world_state() == WORLD_RUNNING)
        return err_set(MPI_ERR_OTHER, "%s was called a second time", function);
    if (api_world_state() == WORLD_DONE)
        return err_set(MPI_ERR_OTHER, "%s was called after MPI_Finalize; MPI cannot be started again",
                       function);
    struct proc *p;
    int rc = api_instance_open(thread_level, &p);
    if (rc)
        return rc;
    p->world_used = true;
    proc_lock(p); /* the progress thread may run; waits release the lock */
    rc = world_connect(p);
    proc_unlock(p);
    *provided = p->thread_level;
    return rc;
}

int impl_Init(int *argc, char ***argv)
{
    int provided;
    return world_open("MPI_Init", MPI_THREAD_SINGLE, &provided);
}

int impl_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    return world_open("MPI_Init_thread", api_thread_level(required), provided);
}

int impl_Finalize(void)
{
    if (api_world_state() != WORLD_RUNNING)
        return api_error_outside_mpi("MPI_Finalize");
    proc_lock(the_proc);
    int rc = proc_delete_world_attributes(the_proc);
    stats_report(the_proc);
    proc_unlock(the_proc);
    int rc_close = api_instance_close();
    atomic_store(&world, WORLD_DONE);
    return rc ? rc : rc_close;
}

/* Aborts even with an invalid communicator. */
int impl_Abort(MPI_Comm handle, int errorcode)
{
    struct comm *comm = comm_from(the_proc, handle);
    char reason[2 * MPI_MAX_OBJECT_NAME + 512], place[512];
    place_call_text(NULL, 0, place, sizeof(place));
    snprintf(reason, sizeof(reason), "MPI_Abort was called on %s with error code %d%s",
             comm ? comm_label(comm) : "no communicator", errorcode, place);
    boot_abort(the_proc->boot, errorcode, reason);
}
