/* sleep.c: sleeping until a message arrives. The adapter reports events on a file descriptor, but the node's
 * doorbell is a futex. A thread waits for the descriptor and rings the doorbell, so that a process can sleep
 * on both at once. The same thread receives asynchronous events: a shared receive queue that runs low, a port
 * that goes down.
 *
 * A frame in a ring wakes no process, so ring.c notifies the writers before this process sleeps. If an
 * adapter does not preserve the order of acknowledgements and data, a write may be missed; therefore the
 * thread also rings the doorbell periodically while there are rings, at growing intervals.
 *
 * The thread also triggers the periodic probe of silent peers (poll.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/ib/channel/channel.h"
#include "net/ib/multicast/ib_multicast.h"
#include "net/ib/rails/rails.h"
#include "net/ib/transport/ib_transport.h"

#define FIRST_LOOK 16  /* ms */
#define LAST_LOOK  256 /* ms */

static struct ib_rail *find_rail(struct ib *ib, const struct ib_adapter *a, int port)
{
    for (uint32_t i = 0; i < ib->nrails; i++)
        if (ib->rails[i].adapter == a && ib->rails[i].device->port == port)
            return &ib->rails[i];
    return NULL;
}

/* Records a port event for all rails of the port: each of its paths is a rail. */
static void port_event(struct ib *ib, const struct ib_adapter *a, int port, uint64_t down)
{
    const struct ib_rail *first = find_rail(ib, a, port);
    if (!first)
        return;
    for (uint32_t i = 0; i < ib->nrails; i++)
        if (ib->rails[i].adapter == a && ib->rails[i].device->port == port && !ib->rails[i].waiting)
            atomic_store(&ib->rails[i].down, down);
    atomic_store(&ib->ports, 1);
    atomic_store(&ib->attention, 1);
    if (first->waiting)
        return; /* ib_rails_check_waiting reads the address of the port first */
    if (!down)
        log_warn("%s is up again", first->device->name);
    else if (first->index == 0 && ib->nrails == 1)
        log_warn("%s went down; messages wait until it is up again (FISHPLATE_IB_RAIL_PATIENCE)",
                 first->device->name);
    else
        log_warn("%s went down; messages go over the other rails", first->device->name);
}

static void adapter_read_async_event(struct ib *ib, struct ib_adapter *a)
{
    struct ibv_async_event e;
    if (ib->device.verbs.get_async_event(a->device->context, &e) != 0)
        return;
    switch (e.event_type) {
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        for (int i = 0; i < IB_LANES; i++)
            if (ib->shared[a->index][i].srq == e.element.srq)
                atomic_store(&ib->shared[a->index][i].low, 1);
        atomic_store(&ib->attention, 1);
        break;
    case IBV_EVENT_PORT_ERR:
        port_event(ib, a, e.element.port_num, clock_ns());
        break;
    case IBV_EVENT_PORT_ACTIVE:
        port_event(ib, a, e.element.port_num, 0);
        break;
    case IBV_EVENT_DEVICE_FATAL:
        if (ib->nadapters > 1) {
            atomic_store(&a->gone, 1);
            for (int port = 1; port <= a->device->attr.phys_port_cnt; port++)
                port_event(ib, a, port, clock_ns());
            break;
        } /* fall through */
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_SRQ_ERR:
        atomic_store(&ib->fatal_event, (int)e.event_type + 1);
        atomic_store(&ib->attention, 1);
        break;
    default:
        log_debug("%s: %s", a->device->name, ib->device.verbs.event_type_str(e.event_type));
    }
    ib->device.verbs.ack_async_event(&e);
}

static void adapter_take_completion(struct ib *ib, const struct ib_adapter *a)
{
    struct ibv_cq *cq;
    void *context;
    if (ib->device.verbs.get_cq_event(a->channel, &cq, &context) == 0)
        ib->device.verbs.ack_cq_events(cq, 1);
}

static void *event_thread_run(void *arg)
{
    struct ib *ib = arg;
    struct pollfd fds[1 + 2 * IB_ADAPTERS_MAX] = {{.fd = ib->stop_fd, .events = POLLIN}};
    nfds_t nfds = 1;
    for (uint32_t i = 0; i < ib->nadapters; i++) {
        fds[nfds++] = (struct pollfd){.fd = ib->adapters[i].channel->fd, .events = POLLIN};
        fds[nfds++] = (struct pollfd){.fd = ib->adapters[i].device->context->async_fd, .events = POLLIN};
    }
    uint64_t pulse = clock_ns() + IB_PULSE * 1000000ull;
    for (int wait = FIRST_LOOK;;) {
        bool rings = atomic_load(&ib->sleeps_with_rings);
        int n = poll(fds, nfds, rings ? wait : IB_PULSE);
        if (n < 0 && errno != EINTR)
            return NULL;
        wait = n == 0 ? MIN(2 * wait, LAST_LOOK) : FIRST_LOOK;
        if (n < 0)
            continue;
        /* The pulse is checked first: a process that often goes to sleep writes to stop_fd continuously. */
        bool due = clock_ns() >= pulse;
        if (due) {
            pulse = clock_ns() + IB_PULSE * 1000000ull;
            atomic_store(&ib->pulse, 1);
            atomic_store(&ib->attention, 1);
        }
        if (n > 0 && fds[0].revents) {
            uint64_t count;
            if (read(ib->stop_fd, &count, sizeof(count)) > 0 && atomic_load(&ib->stop))
                return NULL;
            if (!due)
                continue; /* the process sleeps with rings now: poll with a time limit */
        }
        for (uint32_t i = 0; n > 0 && i < ib->nadapters; i++) {
            if (fds[1 + 2 * i].revents)
                adapter_take_completion(ib, &ib->adapters[i]);
            if (fds[2 + 2 * i].revents)
                adapter_read_async_event(ib, &ib->adapters[i]);
        }
        net_doorbell_ring(ib->base.net->doorbell);
    }
}

static void set_nonblocking(int fd)
{
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

int ib_event_open(struct ib *ib)
{
    sigset_t all, before;
    ib->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    for (uint32_t i = 0; i < ib->nadapters; i++) {
        set_nonblocking(ib->adapters[i].channel->fd);
        set_nonblocking(ib->adapters[i].device->context->async_fd);
    }
    ib->pulsed = clock_ns();
    sigfillset(&all); /* signals are for the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = ib->stop_fd < 0 ? errno : pthread_create(&ib->thread, NULL, event_thread_run, ib);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    ib->thread_runs = rc == 0;
    return rc == 0 ? 0
                   : err_set(MPI_ERR_OTHER, "the thread for events of %s cannot be started (%s)",
                             ib->device.name, err_reason(rc));
}

static void sleep_wake_thread(struct ib *ib)
{
    uint64_t one = 1;
    if (write(ib->stop_fd, &one, sizeof(one)) < 0)
        log_debug("an event thread was not reached: %s", strerror(errno));
}

void ib_event_close(struct ib *ib)
{
    if (ib->thread_runs) {
        atomic_store(&ib->stop, 1);
        sleep_wake_thread(ib);
        pthread_join(ib->thread, NULL);
    }
    if (ib->stop_fd >= 0)
        close(ib->stop_fd);
}

/* Arms the completion queues, so that later arrivals ring the doorbell. False: a message has arrived. */
bool ib_arm(struct transport *t)
{
    struct ib *ib = ib_of(t);
    bool rings = ib->pollset.count > 0;
    if (!ib_rings_set_bells(ib) ||
        (ibv_req_notify_cq(ib->adapters[0].cq, 0) != 0 && !ib_adapter_is_gone(&ib->adapters[0])))
        return false;
    for (uint32_t i = 1; i < ib->nadapters; i++) /* a HELLO may arrive through any adapter */
        if (!ib_adapter_is_gone(&ib->adapters[i]) && ibv_req_notify_cq(ib->adapters[i].cq, 0) != 0)
            return false;
    if (rings && !atomic_exchange(&ib->sleeps_with_rings, 1))
        sleep_wake_thread(ib);
    atomic_thread_fence(memory_order_seq_cst);
    return ib_multicast_arm(ib) && ib_completions_poll(ib) == 0 && ib_rings_are_empty(ib) &&
           !atomic_load(&ib->attention);
}
