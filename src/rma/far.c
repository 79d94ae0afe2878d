/* far.c: takes the lock of a rank on another node by RDMA, without its processor. The lock lies in the
 * target's directory, which the target has registered. Taking a free lock needs two round trips: one takes
 * the ticket and reads the words, one gives the turn to the near side and reads the words again (gate.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/counter.h"
#include "boot/boot.h"
#include "rma/rma.h"

static COUNTER(far_locks, "rma_remote_locks",
               "Locks of windows on other nodes acquired by atomic operations of the adapter.");

enum { REQUESTS = 4 }; /* requests of one step: three changes and a read of all words */

struct far_request {
    struct net_op op;
    struct far *far;
};

struct far {
    struct win_peer *to;
    uint64_t base; /* address of the gate in the target's memory */
    struct net_mem mem;
    struct far_request request[REQUESTS];
    int pending, fault;
    uint64_t value[REQUESTS], old[REQUESTS], seen[GATE_WORDS]; /* buffers of the requests */
};

bool far_can_lock(const struct win_peer *p)
{
    const struct win *w = p->win;
    return p->at.locks_open && w->adapter && w->adapter->adds && p->peer->transport == w->adapter;
}

static void far_op_done(struct net_op *op, int status)
{
    struct far *f = container_of(op, struct far_request, op)->far;
    f->pending--;
    f->fault = status ? status : f->fault;
}

static int far_open(struct win_peer *p)
{
    struct win *w = p->win;
    struct net_key unused;
    struct far *f = calloc(1, sizeof(*f));
    if (!f)
        return win_error(w, MPI_ERR_NO_MEM, "out of memory: cannot lock rank %d", p->rank);
    int rc = w->adapter->ops->mem_register(w->adapter, f, sizeof(*f), &f->mem, &unused);
    if (rc) {
        free(f);
        return rc;
    }
    f->to = p;
    f->base = p->at.entry + offsetof(struct win_entry, slot) + offsetof(struct win_slot, gate);
    p->far = f;
    return MPI_SUCCESS;
}

void far_close(struct win_peer *p)
{
    if (!p->far)
        return;
    p->win->adapter->ops->mem_release(p->win->adapter, &p->far->mem);
    free(p->far);
}

static void far_post_request(struct far *f, int i, struct adapter_request r)
{
    struct far_request *request = &f->request[i];
    *request = (struct far_request){.op = {.done = far_op_done, .once = true}, .far = f};
    r.mem = &f->mem;
    r.key = &f->to->at.entry_key;
    r.op = &request->op;
    f->pending++;
    int rc = adapter_post(f->to, &r);
    if (rc)
        far_op_done(&request->op, rc);
}

static bool is_step_answered(void *arg)
{
    return ((struct far *)arg)->pending == 0;
}

static uint64_t far_run_step(struct far *f, const struct gate_step *step)
{
    int last = 0;
    for (int i = 0; i < step->count; i++) {
        const struct gate_op *op = &step->op[i];
        struct adapter_request r = {.remote = f->base + op->word * sizeof(uint64_t)};
        f->value[i] = op->value;
        if (op->add) {
            r.kind = ADAPTER_ATOMIC;
            r.local = &f->old[i];
            r.change.operand = op->value;
            last = i;
        } else {
            r.kind = ADAPTER_PUT;
            r.local = &f->value[i];
            r.len = sizeof(uint64_t);
        }
        far_post_request(f, i, r);
    }
    if (step->look)
        far_post_request(
            f, REQUESTS - 1,
            (struct adapter_request){
                .kind = ADAPTER_GET, .local = f->seen, .remote = f->base, .len = sizeof(f->seen)});
    rma_wait(f->to->win->proc->rma, is_step_answered, f, false, "adapter at the lock of a window's memory");
    return f->old[last];
}

/* Handles an adapter error at a lock. If a member of the window has died, returns the error for the death;
 * otherwise aborts the job, since other ranks would wait for this rank's ticket for ever. */
static int far_report_lock_error(const struct win_peer *p, const char *what)
{
    const struct win *w = p->win;
    if (w->comm->broken)
        return win_report_lost(w, NULL);
    win_error(w, MPI_ERR_OTHER, "the adapter cannot %s rank %d, and others would wait for it for ever", what,
              p->rank);
    boot_abort(w->proc->boot, 1, err_detail(MPI_ERR_OTHER));
}

int far_lock_window(struct win_peer *p, int type)
{
    struct net *net = p->win->proc->net;
    const struct net_named what = {"lock of a window's memory", NET_NOBODY, true};
    struct net_waiter waiter = {.awaited_kind = NET_NAMED, .awaited = &what};
    struct gate_entry entry;
    struct gate_step step;
    int rc = p->far ? MPI_SUCCESS : far_open(p);
    if (rc)
        return rc;
    gate_enter(&entry, GATE_FAR, type == MPI_LOCK_SHARED, false, &step);
    uint64_t old = far_run_step(p->far, &step);
    while (!p->far->fault && !gate_next_step(&entry, old, p->far->seen, &step)) {
        if (step.count == 0) { /* other users are first: read the words again later */
            net->unrung++;
            net_wait_step(net, &waiter);
            net->unrung--;
        }
        if (unlikely(p->win->comm->broken)) { /* the holder of the lock may have died */
            net_wait_end(net, &waiter);
            return win_report_lost(p->win, NULL);
        }
        old = far_run_step(p->far, &step);
    }
    net_wait_end(net, &waiter);
    if (!p->far->fault)
        far_run_step(p->far, &step);
    if (unlikely(p->far->fault))
        return far_report_lock_error(p, "lock");
    counter_add(&far_locks, 1);
    return MPI_SUCCESS;
}

int far_unlock_window(struct win_peer *p, int type)
{
    const struct gate_entry entry = {.side = GATE_FAR, .shared = type == MPI_LOCK_SHARED};
    struct gate_step step;
    gate_leave(&entry, &step);
    far_run_step(p->far, &step);
    return unlikely(p->far->fault) ? far_report_lock_error(p, "unlock") : MPI_SUCCESS;
}
