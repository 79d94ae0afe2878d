/* poll.c: reads the sockets, in a polling thread of the program or else in the engine thread.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/poll.h"
#include "net/conn.h"
#include "net/greet.h"

static _Atomic uint64_t drains; /* number of polls that received data */
static _Atomic uint64_t polls;  /* number of polls of the program */
static atomic_uint armed_wakes;

static void poll_free_closed(void)
{
    conn_free_closed();
    greet_free_finished();
}

/* Reads everything from the sockets without waiting. */
static void poll_drain(void)
{
    conn_flush_acks();
    if (loop_run() > 0)
        atomic_fetch_add_explicit(&drains, 1, memory_order_relaxed);
    poll_free_closed();
}

/* Reads input for a thread that will poll again soon. Most frames arrive on the connection of the previous
 * frame: its socket is read first, without querying all sockets. */
static void poll_last_connection(void)
{
    static unsigned turn;
    struct conn *c = conn_hot;
    if (!c || c->broken || ++turn % 4 == 0) {
        poll_drain();
        return;
    }
    conn_flush_acks();
    conn_hot = NULL;
    conn_receive(c);
    if (conn_hot)
        atomic_fetch_add_explicit(&drains, 1, memory_order_relaxed);
    else if (!c->broken)
        conn_hot = c;
    if (c->broken)
        poll_free_closed();
}

void net_handle_ready(struct watch *w, uint32_t events)
{
    (void)w, (void)events;
    net_lock();
    poll_drain();
    conn_flush_acks();
    net_unlock();
}

void net_poll(void)
{
    atomic_fetch_add_explicit(&polls, 1, memory_order_relaxed);
    if (net_try_lock()) {
        poll_last_connection();
        net_unlock();
    }
}

void net_on_cq_armed(void)
{
    atomic_fetch_add(&armed_wakes, 1);
    if (atomic_exchange(&loop_aside, false))
        engine_wake();
}

/*
 * A polling program reads the sockets itself. While it polls and arms no completion queue, the engine
 * thread only checks every millisecond whether it still polls.
 */
int net_sleep(uint64_t until)
{
    static uint64_t last_polls, last_drained;
    static unsigned last_armed;
    static bool watching = true;
    static uint64_t distrust_until;
    (void)until;
    uint64_t p = atomic_load(&polls);
    unsigned a = atomic_load(&armed_wakes);
    uint64_t now = now_ns();
    /* The program polls its memory, not a completion queue: sockets have unread input. The engine thread
     * reads the sockets for the next 200 ms. */
    uint64_t drained = atomic_load_explicit(&drains, memory_order_relaxed);
    if (!watching && drained - last_drained < 16 && loop_has_ready_sockets())
        distrust_until = now + 200 * NS_MS;
    bool polled = p != last_polls && a == last_armed && now >= distrust_until;
    atomic_store(&loop_aside, polled);
    /* The program has armed a queue meanwhile and may expect the engine thread to read. */
    if (polled && atomic_load(&armed_wakes) != a)
        polled = false;
    if (watching == polled)
        loop_set_watching(watching = !polled);
    last_polls = p;
    last_drained = drained;
    last_armed = a;
    return polled ? 1 : -1;
}

void net_after_wakeup(void)
{
    net_lock();
    conn_flush_acks();
    net_unlock();
}
