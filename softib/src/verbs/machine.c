/* machine.c: starts the wires and the engine when the process joins its fabric, and handles the doorbell:
 * events that peers have queued in the arena, and changes of port states.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/ports.h"
#include "hca/migrate.h"
#include "hca/window.h"
#include "local/lane.h"
#include "local/local.h"
#include "net/net.h"
#include "verbs/verbs.h"
#include <sys/epoll.h>
#include <sys/socket.h>

static struct task plan; /* runs at the next planned change of a port */

static void handle_event(const struct sh_event *e)
{
    struct qp *q;
    switch (e->kind) {
    case SHEV_QP_ERROR:
        if ((q = qp_lookup(e->index))) {
            qp_handle_responder_error(q, (enum ibv_event_type)e->detail);
            qp_release(q);
        }
        break;
    case SHEV_QP_PATH:
        if ((q = qp_lookup(e->index))) {
            migrate_handle_event(q, (enum ibv_event_type)e->detail);
            qp_release(q);
        }
        break;
    case SHEV_SRQ_LIMIT:
        srq_limit_event(e->index);
        break;
    case SHEV_CQ_OVERRUN:
        cq_report_overrun(e->index);
        break;
    case SHEV_MR_REUSED:
        mr_advise_huge_pages(e->index, e->detail);
        break;
    }
}

static void check_ports(void)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&one_at_a_time);
    uint64_t next = ports_report_changes(event_report_port_change);
    ports_report_removed_adapters(event_report_hca_removal);
    pthread_mutex_unlock(&one_at_a_time);
    if (next != NEVER)
        engine_defer(&plan, next);
}

static void run_port_plan(struct task *t)
{
    (void)t;
    check_ports();
}

static void machine_on_doorbell(struct watch *w, uint32_t ev)
{
    char buf[16];
    (void)w, (void)ev;
    while (recv(proc.bell_fd, buf, sizeof(buf), MSG_DONTWAIT) >= 0)
        ;
    atomic_store(&proc.reg->member[proc.slot].rung, 0);
    check_ports();
    struct arena *a = proc.arena;
    for (uint64_t h; (h = atomic_load(&a->ev_head)) != atomic_load(&a->ev_tail);) {
        struct sh_event e = a->event[h % EVENTS];
        atomic_store(&a->ev_head, h + 1);
        handle_event(&e);
    }
}

static bool machine_has_remote_nodes(void)
{
    return proc.fab.wire == WIRE_TCP;
}

static bool machine_is_ready(void)
{
    return !machine_has_remote_nodes() || net_read_key();
}

static bool machine_listen(uint32_t slot)
{
    return !machine_has_remote_nodes() || net_listen(slot);
}

static bool machine_start(void)
{
    static struct watch bell = {machine_on_doorbell};
    plan = (struct task){.run = run_port_plan};
    if (!engine_open() || !engine_add(proc.bell_fd, &bell, EPOLLIN))
        return false;
    wire_near = &local_wire;
    engine_add_attendant(&local_attendant);
    if (machine_has_remote_nodes()) {
        if (!net_start())
            return false;
        wire_far = &net_wire;
        engine_add_attendant(&net_attendant);
    }
    check_ports();
    return engine_run();
}

static void machine_reset_after_fork(void)
{
    engine_reset_after_fork();
    lane_reset_after_fork();
    window_list_reset_after_fork();
    if (wire_far)
        net_reset_after_fork();
}

const struct machine machine = {.ready = machine_is_ready,
                                .listen = machine_listen,
                                .start = machine_start,
                                .forget = machine_reset_after_fork};
