/* udp_wait.c: datagrams to a port of which no address has answered yet. They wait until a connection has
 * found one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/address.h"
#include "net/conn.h"
#include "net/udp.h"
#include <stdlib.h>

#define WAITING_MAX 256u

struct waiting {
    uint32_t node, port, qpn, from;
    struct request r;
    uint32_t n;
    struct waiting *next;
    uint8_t bytes[FRAME_DATAGRAM];
};
static struct lock wait_lock;
static struct waiting *waiting, **waiting_end = &waiting;
static unsigned waiting_count;

static void udp_wait_store(uint32_t node, uint32_t port, uint32_t qpn, const struct request *r,
                           const struct iovec *iov, int n)
{
    struct waiting *w = malloc(sizeof(*w));
    uint32_t from = (uint32_t)(r->slid >> proc.fab.lmc) - 1;
    spinlock_acquire(&wait_lock);
    if (!w || waiting_count == WAITING_MAX) {
        spinlock_release(&wait_lock);
        port_count(from, CNT_TX_DROPS, 1);
        free(w);
        return;
    }
    w->n = 0;
    for (int i = 0; i < n; w->n += (uint32_t)iov[i++].iov_len)
        memcpy(w->bytes + w->n, iov[i].iov_base, iov[i].iov_len);
    w->r = *r;
    w->node = node;
    w->port = port;
    w->qpn = qpn;
    w->from = from;
    w->next = NULL;
    *waiting_end = w;
    waiting_end = &w->next;
    waiting_count++;
    spinlock_release(&wait_lock);
    net_schedule_tick(now_ns());
}

enum answer udp_send_datagram(uint32_t node, uint32_t qpn, const struct request *r, const struct iovec *iov,
                              int n)
{
    uint32_t port = (uint32_t)(r->dlid >> proc.fab.lmc) - 1;
    if (LIKELY(address_is_known(port)))
        udp_send_port(node, port, qpn, r, iov, n);
    else
        udp_wait_store(node, port, qpn, r, iov, n);
    return ANS_OK;
}

void udp_release_waiting(uint32_t port)
{
    struct waiting *go = NULL, **end = &go;
    spinlock_acquire(&wait_lock);
    for (struct waiting **p = &waiting, *w; (w = *p);) {
        if (w->port != port) {
            p = &w->next;
            continue;
        }
        *p = w->next;
        *end = w;
        end = &w->next;
        waiting_count--;
    }
    *end = NULL;
    for (waiting_end = &waiting; *waiting_end; waiting_end = &(*waiting_end)->next)
        ;
    spinlock_release(&wait_lock);
    for (struct waiting *w; (w = go);) {
        struct iovec iov = {w->bytes, w->n};
        go = w->next;
        if (address_is_known(port))
            udp_send_port(w->node, port, w->qpn, &w->r, &iov, 1);
        else
            port_count(w->from, CNT_TX_DROPS, 1);
        free(w);
    }
}

/* Opens connections to the destinations of waiting datagrams, to find out which address of each is
 * reachable. */
void udp_tick(void)
{
    uint32_t node = 0, port = 0, slot = 0, from = 0;
    spinlock_acquire(&wait_lock);
    bool any = waiting != NULL;
    if (any) {
        node = waiting->node;
        port = waiting->port;
        slot = waiting->qpn >> QP_BITS;
        from = waiting->from;
    }
    spinlock_release(&wait_lock);
    if (!any)
        return;
    if (address_is_known(port) || !conn_open(node, slot, from, port))
        udp_release_waiting(port);
    net_schedule_tick(now_ns() + NS_MS); /* for the next destination */
}
