/* proc.h: one MPI process: all its state is reachable from struct proc, so that a test can run several
 * processes in one address space. The only global variable of the library is the pointer that the API layer
 * reads.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_PROC_H
#define FP_OBJ_PROC_H

#include <pthread.h>

#include "base/biglock.h"
#include "base/list.h"
#include "net/net.h"
#include "net/thread.h"
#include "p2p/p2p.h"

struct comm;
struct group;
struct info;
struct errhandler;
struct bsend_pool;
struct attr_table;
struct rma;
struct context_epochs;
struct dyn; /* src/dyn */

struct page;

struct proc {
    struct boot *boot;
    struct net *net;
    struct p2p *p2p;
    struct comm *world, *self, *parent;
    struct group *group_empty;
    struct info *info_env;
    uint32_t rank, size;
    bool threaded;   /* MPI_THREAD_MULTIPLE or a progress thread: the lock is taken by every call */
    bool check_args; /* FISHPLATE_CHECK */
    bool ending;     /* in MPI_Finalize or the last MPI_Session_finalize: the program makes no more calls */
    int thread_level;
    pthread_t main_thread;
    struct biglock lock;
    uint64_t context_mask[64];             /* bit set: the context id is free (obj/context.c) */
    struct comm *comms[64 * 64];           /* the communicator of each context id, or NULL */
    bool context_busy;                     /* an agreement uses the exclusive part of context_mask */
    int context_claims;                    /* agreements with claimed ids that they may still release */
    uint32_t context_epoch;                /* lowest epoch of communicators made from now on (obj/epoch.h) */
    struct context_epochs *context_epochs; /* retired context ids; NULL: none */
    struct attr_table *keyvals;
    /* Set by coll: frees the state of collectives when a communicator is freed. */
    void (*comm_closing)(struct comm *c);
    void *coll_results; /* src/coll: measured costs of algorithms; freed with the process */
    void *coll_budget;  /* src/coll: time spent on measurements; freed with the process */
    struct dyn *dyn;    /* src/dyn: open ports and published names; NULL: none */
    void (*dyn_closing)(struct proc *p);
    struct page *page;        /* status page for `fishplate ps` and `why`; NULL: none */
    struct bsend_pool *bsend; /* process-wide attached buffer */
    struct rma *rma;          /* src/rma: the windows; NULL before the first one */
    /* Set by rma: frees its state when the process ends. */
    void (*rma_closing)(struct proc *p);
    /* Set by rma (FISHPLATE_DEBUG=rma): called at begin (true) and end (false) of MPI calls. */
    void (*within)(bool begins);
    struct ft *ft; /* src/ft: agreements; NULL: a death ends the job */
    /* Callbacks of src/ft; NULL: a death ends the job. */
    void (*member_died)(struct proc *p, uint32_t number);
    void (*comm_created)(struct comm *c);      /* only after a process has died */
    void (*agreed_comm_freed)(struct comm *c); /* a communicator on which an agreement ran */
    int (*quiesce)(struct proc *p);            /* waits for all living processes in MPI_Finalize */
    int (*living_members_barrier)(struct comm *c);
    void (*rma_member_died)(struct proc *p, uint32_t number);
    void (*ft_closing)(struct proc *p);
    struct list sessions;
    struct list assemblies; /* creations of communicators that are not complete */
    int users;              /* number of open sessions, + 1 for the world model (MPI_Init) */
    bool world_used;        /* MPI_Init was called: all ranks of the job take part in MPI_Finalize */
};

/* The process of the API layer: NULL before MPI_Init/MPI_Session_init and after the last finalize. */
extern struct proc *the_proc;

/* Opens the process: tunables, boot, net, p2p, then the predefined objects (world, self, ...). */
int proc_open(int thread_level, struct proc **out);

/* Closes the process after a layer above could not be opened; proc_open() calls it when it fails. Afterwards
 * proc_get_unopened_boot() returns the connection to the launcher, for boot_abort(); NULL: none. A process that
 * continues without MPI closes it with proc_close_unopened_boot(). */
void proc_abandon(struct proc *p);
struct boot *proc_get_unopened_boot(void);
void proc_close_unopened_boot(void);
/* Closes the process; called without the lock. The lower layers stay open for the next session until exit,
 * except after MPI_Finalize on several nodes. */
int proc_close(struct proc *p);

/* Runs the attribute delete functions of MPI_COMM_SELF and MPI_COMM_WORLD, the first step of MPI_Finalize.
 * proc_close() calls this function too. */
int proc_delete_world_attributes(struct proc *p);

/* Waits until the sends of requests that the program has freed are complete. */
void proc_flush_pending_sends(struct proc *p);

/* Returns the name of a thread level as in info objects: "MPI_THREAD_MULTIPLE". */
const char *thread_level_name(int level);

static inline void proc_lock(struct proc *p)
{
    if (unlikely(p->threaded)) {
        biglock_lock(&p->lock);
        if (p->net->thread)
            net_thread_pause(p->net->thread);
        if (p->within)
            p->within(true);
    }
}
static inline void proc_unlock(struct proc *p)
{
    if (unlikely(p->threaded)) {
        if (p->within)
            p->within(false);
        if (p->net->thread)
            net_thread_resume(p->net->thread);
        biglock_unlock(&p->lock);
    }
}

#endif
