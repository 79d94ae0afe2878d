/* id.c: identifiers: creation, destruction, options.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cm.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct cm_id *id_new(struct cm_channel *c, void *context, enum rdma_port_space ps)
{
    struct cm_id *p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->id.channel = c ? &c->channel : NULL;
    p->id.context = context;
    p->id.ps = ps;
    p->id.qp_type = id_is_datagram(p) ? IBV_QPT_UD : IBV_QPT_RC;
    p->link_watch = (struct cm_watch){.kind = WATCH_LINK, .fd = -1, .id = p};
    p->timer = (struct cm_watch){.kind = WATCH_TIMER, .fd = -1, .id = p};
    p->ack_timeout = CM_DEFAULT_ACK_TIMEOUT;
    p->qkey = id_is_datagram(p) ? RDMA_UDP_QKEY : 0;
    link_random(&p->psn, sizeof(p->psn));
    p->psn &= 0xffffff;
    link_reset(&p->link);
    return p;
}

void id_free(struct cm_id *p)
{
    if (p->state == CM_UNPROVED)
        listen_remove_unproved(p);
    while (p->unproved)
        id_free(p->unproved);
    listen_close(p);
    channel_discard_events(p);
    multicast_leave_all(p);
    channel_remove(channel_of(p), &p->link_watch);
    channel_remove(channel_of(p), &p->timer);
    free(p->ep_connect);
    free(p);
}

static bool is_known_port_space(enum rdma_port_space ps)
{
    return ps == RDMA_PS_TCP || ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB || ps == RDMA_PS_IB;
}

SOFTIB_API int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                              enum rdma_port_space ps)
{
    if (!id || !is_known_port_space(ps))
        return cm_return_error(EINVAL);
    if (!device_init())
        return -1;
    struct cm_id *p = id_new((struct cm_channel *)(void *)channel, context, ps);
    if (!p)
        return cm_return_error(ENOMEM);
    if (!channel && id_make_synchronous(p)) {
        free(p);
        return -1;
    }
    *id = &p->id;
    return 0;
}

SOFTIB_API int rdma_destroy_id(struct rdma_cm_id *id)
{
    struct cm_id *p = CM_OF(id);
    struct rdma_event_channel *own = p->synchronous ? id->channel : NULL;
    if (id->event)
        rdma_ack_cm_event(id->event);
    pthread_mutex_lock(&cm_lock);
    while (p->unacked)
        pthread_cond_wait(&cm_acked, &cm_lock);
    id_free(p);
    pthread_mutex_unlock(&cm_lock);
    if (own)
        rdma_destroy_event_channel(own);
    return 0;
}

static int set_id_option(struct cm_id *p, int name, const void *value, size_t length)
{
    int flag = 0;
    if (name == RDMA_OPTION_ID_TOS || name == RDMA_OPTION_ID_ACK_TIMEOUT) {
        if (length != 1)
            return EINVAL;
        uint8_t byte = *(const uint8_t *)value;
        if (name == RDMA_OPTION_ID_TOS)
            p->tos = byte;
        else if (byte > 31)
            return EINVAL;
        else
            p->ack_timeout = byte;
        return 0;
    }
    if ((name != RDMA_OPTION_ID_REUSEADDR && name != RDMA_OPTION_ID_AFONLY) || length != sizeof(int))
        return name == RDMA_OPTION_ID_REUSEADDR || name == RDMA_OPTION_ID_AFONLY ? EINVAL : ENOSYS;
    memcpy(&flag, value, sizeof(flag));
    if (name == RDMA_OPTION_ID_REUSEADDR)
        p->reuse_addr = flag != 0;
    return p->state == CM_IDLE ? 0 : EINVAL;
}

/* Accepts any path that the program sets: softib computes paths itself. */
static int set_path(struct cm_id *p, size_t length)
{
    if (!length || length % sizeof(struct ibv_path_data) || p->state != CM_ADDR_RESOLVED || !p->has_there)
        return EINVAL;
    path_fill(p);
    p->state = CM_ROUTE_RESOLVED;
    return channel_report(p, RDMA_CM_EVENT_ROUTE_RESOLVED, 0) ? 0 : ENOMEM;
}

SOFTIB_API int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen)
{
    struct cm_id *p = CM_OF(id);
    int error = ENOSYS;
    if (!optval)
        return cm_return_error(EINVAL);
    pthread_mutex_lock(&cm_lock);
    if (level == RDMA_OPTION_ID)
        error = set_id_option(p, optname, optval, optlen);
    else if (level == RDMA_OPTION_IB && optname == RDMA_OPTION_IB_PATH)
        error = set_path(p, optlen);
    pthread_mutex_unlock(&cm_lock);
    return error ? cm_return_error(error) : level == RDMA_OPTION_IB ? id_wait(p) : 0;
}

SOFTIB_API int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
    if (!id || !ece || id->qp) /* only if the program created the queue pair itself */
        return cm_return_error(EINVAL);
    CM_OF(id)->ece = *ece;
    return 0;
}

SOFTIB_API int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
    if (!id || !ece || id->qp)
        return cm_return_error(EINVAL);
    const struct message *m = &CM_OF(id)->peer;
    *ece = (struct ibv_ece){.vendor_id = m->ece_vendor, .options = m->ece_options, .comp_mask = m->ece_mask};
    return 0;
}
