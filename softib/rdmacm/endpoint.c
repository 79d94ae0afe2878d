/* endpoint.c: rdma_getaddrinfo, and identifiers that work synchronously: rdma_create_ep and rdma_get_request.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cm.h"
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

static struct sockaddr *copy_address(const void *bytes, size_t length)
{
    void *copy = length ? malloc(length) : NULL;
    return copy ? memcpy(copy, bytes, length) : NULL;
}

static int endpoint_set_type(const struct rdma_addrinfo *hints, struct rdma_addrinfo *r)
{
    r->ai_flags = hints->ai_flags;
    r->ai_qp_type = hints->ai_qp_type;
    r->ai_port_space = hints->ai_port_space;
    const bool datagram = r->ai_port_space == RDMA_PS_UDP || r->ai_port_space == RDMA_PS_IPOIB;
    if (!r->ai_qp_type)
        r->ai_qp_type = datagram ? IBV_QPT_UD : IBV_QPT_RC;
    if (!r->ai_port_space)
        r->ai_port_space = r->ai_qp_type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
    if ((r->ai_qp_type == IBV_QPT_UD && r->ai_port_space == RDMA_PS_TCP) ||
        (r->ai_qp_type != IBV_QPT_UD &&
         (r->ai_port_space == RDMA_PS_UDP || r->ai_port_space == RDMA_PS_IPOIB)))
        return EAI_SOCKTYPE;
    return 0;
}

static int endpoint_look_up(const char *node, const char *service, const struct rdma_addrinfo *hints,
                            struct rdma_addrinfo *r)
{
    const bool passive = hints->ai_flags & RAI_PASSIVE;
    struct addrinfo want = {.ai_family = hints->ai_flags & RAI_FAMILY ? hints->ai_family : AF_UNSPEC,
                            .ai_socktype = r->ai_qp_type == IBV_QPT_UD ? SOCK_DGRAM : SOCK_STREAM,
                            .ai_flags = (passive ? AI_PASSIVE : 0) |
                                        (hints->ai_flags & RAI_NUMERICHOST ? AI_NUMERICHOST : 0)};
    struct addrinfo *found;
    if (!node && !service)
        return 0;
    if (hints->ai_flags & RAI_FAMILY && hints->ai_family != AF_INET && hints->ai_family != AF_INET6)
        return EAI_FAMILY;
    /* If the hints name no address family, an IPv4 address is preferred. */
    int error = 0;
    if (want.ai_family == AF_UNSPEC) {
        want.ai_family = AF_INET;
        error = getaddrinfo(node, service, &want, &found);
        want.ai_family = AF_UNSPEC;
    }
    if (error || want.ai_family != AF_UNSPEC)
        error = getaddrinfo(node, service, &want, &found);
    if (error)
        return error;
    struct sockaddr *copy = copy_address(found->ai_addr, found->ai_addrlen);
    r->ai_family = found->ai_family;
    if (passive) {
        r->ai_src_addr = copy;
        r->ai_src_len = found->ai_addrlen;
    } else {
        r->ai_dst_addr = copy;
        r->ai_dst_len = found->ai_addrlen;
    }
    freeaddrinfo(found);
    return copy ? 0 : EAI_MEMORY;
}

/* Adds addresses of the hints that the look-up did not return. */
static int endpoint_apply_hints(const struct rdma_addrinfo *hints, struct rdma_addrinfo *r)
{
    if (!r->ai_src_addr && hints->ai_src_len) {
        r->ai_src_addr = copy_address(hints->ai_src_addr, hints->ai_src_len);
        r->ai_src_len = hints->ai_src_len;
        if (!r->ai_src_addr)
            return EAI_MEMORY;
    }
    if (!r->ai_dst_addr && hints->ai_dst_len && !(hints->ai_flags & RAI_PASSIVE)) {
        r->ai_dst_addr = copy_address(hints->ai_dst_addr, hints->ai_dst_len);
        r->ai_dst_len = hints->ai_dst_len;
        if (!r->ai_dst_addr)
            return EAI_MEMORY;
    }
    if (hints->ai_connect_len) {
        r->ai_connect = copy_address(hints->ai_connect, hints->ai_connect_len);
        r->ai_connect_len = hints->ai_connect_len;
        if (!r->ai_connect)
            return EAI_MEMORY;
    }
    const struct sockaddr *a = r->ai_dst_addr ? r->ai_dst_addr : r->ai_src_addr;
    if (!r->ai_family && a)
        r->ai_family = a->sa_family;
    return a ? 0 : EAI_NONAME;
}

SOFTIB_API void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
    while (res) {
        struct rdma_addrinfo *next = res->ai_next;
        free(res->ai_src_addr);
        free(res->ai_dst_addr);
        free(res->ai_src_canonname);
        free(res->ai_dst_canonname);
        free(res->ai_route);
        free(res->ai_connect);
        free(res);
        res = next;
    }
}

SOFTIB_API int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
                                struct rdma_addrinfo **res)
{
    static const struct rdma_addrinfo none = {0};
    const struct rdma_addrinfo *h = hints ? hints : &none;
    if ((!node && !service && !hints) || !res)
        return cm_return_error(EINVAL);
    if (h->ai_flags & ~(RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY))
        return EAI_BADFLAGS;
    struct rdma_addrinfo *r = calloc(1, sizeof(*r));
    if (!r)
        return EAI_MEMORY;
    int error = endpoint_set_type(h, r);
    if (!error)
        error = endpoint_look_up(node, service, h, r);
    if (!error)
        error = endpoint_apply_hints(h, r);
    if (error) {
        rdma_freeaddrinfo(r);
        return error;
    }
    *res = r;
    return 0;
}

static int prepare_passive_side(struct cm_id *p, const struct rdma_addrinfo *r, struct ibv_pd *pd,
                                const struct ibv_qp_init_attr *attr)
{
    if (attr) {
        p->ep_attr = *attr;
        p->ep_attr.qp_type = (enum ibv_qp_type)r->ai_qp_type;
        p->ep_pd = pd;
        p->has_ep_attr = true;
    }
    return rdma_bind_addr(&p->id, r->ai_src_addr);
}

static int prepare_active_side(struct cm_id *p, const struct rdma_addrinfo *r, struct ibv_pd *pd,
                               struct ibv_qp_init_attr *attr)
{
    if (rdma_resolve_addr(&p->id, r->ai_src_addr, r->ai_dst_addr, 2000) || rdma_resolve_route(&p->id, 2000))
        return -1;
    if (attr) {
        attr->qp_type = (enum ibv_qp_type)r->ai_qp_type;
        if (rdma_create_qp(&p->id, pd, attr))
            return -1;
    }
    if (r->ai_connect_len) {
        p->ep_connect = copy_address(r->ai_connect, r->ai_connect_len);
        p->ep_connect_len = p->ep_connect ? r->ai_connect_len : 0;
        return p->ep_connect ? 0 : cm_return_error(ENOMEM);
    }
    return 0;
}

SOFTIB_API int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
                              struct ibv_qp_init_attr *attr)
{
    struct rdma_cm_id *made;
    if (!id || !res)
        return cm_return_error(EINVAL);
    if (rdma_create_id(NULL, &made, NULL, (enum rdma_port_space)res->ai_port_space))
        return -1;
    made->qp_type = (enum ibv_qp_type)res->ai_qp_type;
    int r = res->ai_flags & RAI_PASSIVE ? prepare_passive_side(CM_OF(made), res, pd, attr)
                                        : prepare_active_side(CM_OF(made), res, pd, attr);
    if (r) {
        int error = errno;
        rdma_destroy_ep(made);
        errno = error;
        return -1;
    }
    *id = made;
    return 0;
}

SOFTIB_API void rdma_destroy_ep(struct rdma_cm_id *id)
{
    if (id->qp)
        rdma_destroy_qp(id);
    if (id->srq)
        rdma_destroy_srq(id);
    rdma_destroy_id(id);
}

/* Makes the new identifier of a connection request independent of the listening one. The new identifier owns
 * the event, which may exist longer than the listener. */
static int endpoint_adopt_id(struct rdma_cm_event *e)
{
    struct cm_event *event = (struct cm_event *)(void *)e;
    struct cm_id *p = CM_OF(e->id);
    pthread_mutex_lock(&cm_lock);
    if (event->counted) {
        event->counted->unacked--;
        event->counted = NULL;
        pthread_cond_broadcast(&cm_acked);
    }
    int r = id_make_synchronous(p);
    pthread_mutex_unlock(&cm_lock);
    p->id.event = e;
    return r;
}

SOFTIB_API int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
    struct cm_id *l = CM_OF(listen);
    struct rdma_cm_event *e;
    if (!l->synchronous || l->state != CM_LISTENING || !id)
        return cm_return_error(EINVAL);
    if (listen->event) {
        rdma_ack_cm_event(listen->event);
        listen->event = NULL;
    }
    if (rdma_get_cm_event(listen->channel, &e))
        return -1;
    if (e->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
        /* The caller withdrew the request before the program fetched the event: frees the identifier. */
        rdma_ack_cm_event(e);
        return cm_return_error(EINVAL);
    }
    struct rdma_cm_id *made = e->id;
    struct ibv_qp_init_attr attr = l->ep_attr;
    if (endpoint_adopt_id(e) || (l->has_ep_attr && rdma_create_qp(made, l->ep_pd, &attr))) {
        int error = errno;
        rdma_destroy_ep(made);
        errno = error;
        return -1;
    }
    *id = made;
    return 0;
}
