/* connect.c: connections: requests, replies, rejects, disconnects, and deaths of peers. The kernel closes
 * the socket of a peer that dies, so that keepalives are not needed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cm.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* The time limit for the answer to a request or reply, in ms. */
static unsigned answer_timeout_ms(void)
{
    const char *text = getenv("SOFTIB_CM_SECONDS");
    long s = text ? strtol(text, NULL, 10) : 0;
    return s > 0 && s < 100000 ? (unsigned)s * 1000u : 60000u;
}

static void connect_close_link(struct cm_id *p)
{
    channel_remove(channel_of(p), &p->link_watch);
    channel_set_timer(p, 0);
    link_reset(&p->link);
    p->state = CM_ENDED;
}

static void copy_private(struct cm_event *e, const struct message *m, const void **data, uint8_t *length)
{
    const uint32_t limit = message_private_limit(m->type, m->ps == RDMA_PS_UDP || m->ps == RDMA_PS_IPOIB);
    memcpy(e->private_data, m->private_data, m->private_len);
    *data = e->private_data; /* as with InfiniBand: the maximum length, padded with zeros */
    *length = (uint8_t)limit;
}

/* Fills the event from the peer's message: its initiator depth becomes responder resources, and vice
 * versa. */
static void event_fill_from_message(struct cm_id *p, struct cm_event *e, const struct message *m)
{
    struct rdma_conn_param *conn = &e->e.param.conn;
    struct rdma_ud_param *ud = &e->e.param.ud;
    if (id_is_datagram(p)) {
        copy_private(e, m, &ud->private_data, &ud->private_data_len);
        if (m->type == MESSAGE_REPLY) {
            qp_ah_attr(p, &ud->ah_attr);
            ud->qp_num = m->qp_num;
            ud->qkey = m->qkey;
        }
        return;
    }
    copy_private(e, m, &conn->private_data, &conn->private_data_len);
    if (m->type == MESSAGE_REJECT)
        return;
    conn->responder_resources = m->initiator_depth;
    conn->initiator_depth = m->responder_resources;
    conn->flow_control = m->flow_control;
    conn->retry_count = m->type == MESSAGE_REQUEST ? m->retry_count : 0;
    conn->rnr_retry_count = m->rnr_retry_count;
    conn->srq = m->srq;
    conn->qp_num = m->qp_num;
}

static uint16_t address_port(const struct sockaddr *a, struct in6_addr *ip)
{
    struct cm_address read;
    address_read(a, &read);
    *ip = read.ip;
    return read.port;
}

static void connect_fill_message(const struct cm_id *p, unsigned type, struct message *m)
{
    const struct rdma_addr *route = &p->id.route.addr;
    struct ibv_port_attr attr = {.active_mtu = IBV_MTU_256};
    struct in6_addr ip;
    ibv_query_port(p->device->verbs, (uint8_t)p->here.port, &attr);
    *m = (struct message){.type = (uint16_t)type,
                          .node = device_get_place()->node,
                          .ps = (uint16_t)p->id.ps,
                          .qp_type = (uint16_t)(p->id.qp ? p->id.qp->qp_type : p->id.qp_type),
                          .qp_num = p->qp_num,
                          .qkey = p->qkey,
                          .psn = p->psn,
                          .family = route->dst_addr.sa_family == AF_INET ? 4 : 6,
                          .src_lid = p->here.lid,
                          .dst_lid = p->there.lid,
                          .src_gid_index = p->here.gid_index,
                          .dst_gid_index = p->there.gid_index,
                          .mtu = (uint8_t)attr.active_mtu,
                          .responder_resources = p->param.responder_resources,
                          .initiator_depth = p->param.initiator_depth,
                          .flow_control = p->param.flow_control,
                          .retry_count = p->param.retry_count & 7,
                          .rnr_retry_count = p->param.rnr_retry_count & 7,
                          .srq = p->param.srq,
                          .ece_vendor = p->ece.vendor_id,
                          .ece_options = p->ece.options,
                          .ece_mask = p->ece.comp_mask};
    m->src_port = address_port(&route->src_addr, &ip);
    memcpy(m->src_ip, &ip, sizeof(ip));
    m->dst_port = address_port(&route->dst_addr, &ip);
    memcpy(m->dst_ip, &ip, sizeof(ip));
    memcpy(m->src_gid, p->here.gid, sizeof(m->src_gid));
    memcpy(m->dst_gid, p->there.gid, sizeof(m->dst_gid));
}

static bool send_private(struct cm_id *p, struct message *m, const void *data, uint8_t length)
{
    memcpy(m->private_data, data ? data : "", data ? length : 0);
    m->private_len = data ? length : 0;
    return link_send(&p->link, m);
}

static bool send_without_data(struct cm_id *p, unsigned type)
{
    struct message m;
    connect_fill_message(p, type, &m);
    return link_send(&p->link, &m);
}

static void connect_reject(struct cm_id *p, uint32_t reason, const void *data, uint8_t length)
{
    struct message m;
    connect_fill_message(p, MESSAGE_REJECT, &m);
    m.status = reason;
    send_private(p, &m, data, length);
    connect_close_link(p);
}

/* Sets the connection parameters, limited to the adapter's maximum. Returns false if the program requests
 * more. */
static bool set_conn_param(struct cm_id *p, const struct rdma_conn_param *given,
                           const struct rdma_conn_param *fallback)
{
    const uint8_t max = p->device->attr.max_qp_rd_atom > 255 ? 255 : (uint8_t)p->device->attr.max_qp_rd_atom;
    struct rdma_conn_param c = given ? *given : *fallback;
    if (!given || c.responder_resources == RDMA_MAX_RESP_RES)
        c.responder_resources = c.responder_resources > max ? max : c.responder_resources;
    if (!given || c.initiator_depth == RDMA_MAX_INIT_DEPTH)
        c.initiator_depth = c.initiator_depth > max ? max : c.initiator_depth;
    if (!id_is_datagram(p) && (c.responder_resources > max || c.initiator_depth > max))
        return false;
    c.private_data = NULL;
    p->param = c;
    p->qp_num = p->id.qp ? p->id.qp->qp_num : c.qp_num & 0xffffff;
    if (p->id.qp)
        p->param.srq = p->id.qp->srq != NULL;
    return true;
}

/* Tries the next Unix socket at which the service may listen: first the socket bound to the requested
 * address, then the socket bound to all addresses. */
static bool attempt_unix(struct cm_id *p, const struct cm_address *to)
{
    for (; p->attempt < 2;) {
        struct sockaddr_un name;
        struct link_service s = {.node = p->there.node,
                                 .ps = (uint16_t)p->id.ps,
                                 .port = to->port,
                                 .ip = p->attempt++ ? NULL : &to->ip};
        socklen_t n = link_unix_name(&name, device_get_place()->key, &s);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0 && !connect(fd, (struct sockaddr *)&name, n)) {
            if (link_is_same_user(fd)) {
                p->link_watch.fd = fd;
                link_init(&p->link, fd, false, true, false);
                return true;
            }
            errno = ECONNREFUSED; /* another user has bound the name */
        }
        if (fd >= 0) {
            int error = errno;
            close(fd);
            errno = error;
        }
        if (errno != ECONNREFUSED)
            return false;
    }
    return false;
}

static bool attempt_tcp(struct cm_id *p, const struct cm_address *to)
{
    struct in_addr all[SOFTIB_NODE_ADDRESSES];
    unsigned n = softib_node_addresses(p->there.node, all);
    while (p->attempt < n) {
        struct sockaddr_in name = {.sin_family = AF_INET,
                                   .sin_port = htons(link_tcp_port((uint16_t)p->id.ps, to->port)),
                                   .sin_addr = all[p->attempt++]};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            return false;
        if (!connect(fd, (struct sockaddr *)&name, sizeof(name)) || errno == EINPROGRESS) {
            p->link_watch.fd = fd;
            link_init(&p->link, fd, true, true, true);
            return true;
        }
        int error = errno;
        close(fd);
        errno = error;
    }
    return false;
}

static struct message *connect_request_buffer(struct cm_id *p)
{
    return &p->peer; /* the reply overwrites the request */
}

/* Starts the next connection attempt. Returns false with errno if no address is left. */
static bool connect_next_address(struct cm_id *p)
{
    struct cm_address to;
    address_read(&p->id.route.addr.dst_addr, &to);
    if (!(device_get_place()->tcp ? attempt_tcp(p, &to) : attempt_unix(p, &to)))
        return false;
    if (p->link.state == LINK_UP)
        link_send(&p->link, connect_request_buffer(p));
    return channel_add(channel_of(p), &p->link_watch, p->link.state == LINK_UP ? EPOLLIN : EPOLLOUT);
}

static void report_unreachable(struct cm_id *p, int error)
{
    connect_close_link(p);
    if (error == ECONNREFUSED && !id_is_datagram(p))
        channel_report(p, RDMA_CM_EVENT_REJECTED, CM_REJECT_INVALID_SERVICE);
    else if ((error == EAGAIN || error == ECONNRESET) &&
             !id_is_datagram(p)) /* the backlog is full, or the service has stopped listening */
        channel_report(p, RDMA_CM_EVENT_REJECTED, CM_REJECT_CONSUMER);
    else
        channel_report(p, RDMA_CM_EVENT_UNREACHABLE, -error);
}

static int begin_connect(struct cm_id *p, const struct rdma_conn_param *given)
{
    static const struct rdma_conn_param defaults = {.responder_resources = RDMA_MAX_RESP_RES,
                                                    .initiator_depth = RDMA_MAX_INIT_DEPTH,
                                                    .retry_count = 7,
                                                    .rnr_retry_count = 7};
    const uint8_t length = given && given->private_data ? given->private_data_len : 0;
    const size_t before = p->ep_connect_len;
    if (p->state != CM_ROUTE_RESOLVED ||
        length + before > message_private_limit(MESSAGE_REQUEST, id_is_datagram(p)) ||
        !set_conn_param(p, given, &defaults))
        return EINVAL;
    struct message *m = connect_request_buffer(p);
    connect_fill_message(p, MESSAGE_REQUEST, m);
    if (before)
        memcpy(m->private_data, p->ep_connect, before);
    if (length)
        memcpy(m->private_data + before, given->private_data, length);
    m->private_len = (uint16_t)(before + length);
    p->attempt = 0;
    p->state = CM_CONNECTING;
    channel_set_timer(p, answer_timeout_ms());
    if (!connect_next_address(p))
        report_unreachable(p, errno);
    return 0;
}

SOFTIB_API int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
    pthread_mutex_lock(&cm_lock);
    int error = begin_connect(CM_OF(id), conn_param);
    pthread_mutex_unlock(&cm_lock);
    return error ? cm_return_error(error) : id_wait(CM_OF(id));
}

static int accept_request(struct cm_id *p, const struct rdma_conn_param *given)
{
    const struct message *r = &p->peer;
    const uint8_t length = given && given->private_data ? given->private_data_len : 0;
    const struct rdma_conn_param fallback = {.responder_resources = r->initiator_depth,
                                             .initiator_depth = r->responder_resources,
                                             .flow_control = r->flow_control,
                                             .rnr_retry_count = r->rnr_retry_count};
    struct message m;
    if (p->state != CM_REQUESTED || length > message_private_limit(MESSAGE_REPLY, id_is_datagram(p)) ||
        !set_conn_param(p, given, &fallback))
        return EINVAL;
    p->param.retry_count = r->retry_count;
    int error = p->id.qp && !id_is_datagram(p) ? qp_move_to_ready_to_send(p) : 0;
    if (error)
        return error;
    connect_fill_message(p, MESSAGE_REPLY, &m);
    /* If the caller has closed the connection, an event reports it later. */
    send_private(p, &m, length ? given->private_data : NULL, length);
    p->state = id_is_datagram(p) ? CM_CONNECTED : CM_ACCEPTED;
    if (p->state == CM_ACCEPTED)
        channel_set_timer(p, answer_timeout_ms());
    return 0;
}

SOFTIB_API int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
    struct cm_id *p = CM_OF(id);
    pthread_mutex_lock(&cm_lock);
    int error = accept_request(p, conn_param);
    pthread_mutex_unlock(&cm_lock);
    return error ? cm_return_error(error) : id_is_datagram(p) ? 0 : id_wait(p);
}

static int reject_request(struct rdma_cm_id *id, uint32_t reason, const void *data, uint8_t length)
{
    struct cm_id *p = CM_OF(id);
    pthread_mutex_lock(&cm_lock);
    bool legal =
        p->state == CM_REQUESTED && length <= message_private_limit(MESSAGE_REJECT, id_is_datagram(p));
    if (legal)
        connect_reject(p, reason, data, length);
    pthread_mutex_unlock(&cm_lock);
    return legal ? 0 : cm_return_error(EINVAL);
}

SOFTIB_API int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
    return reject_request(id, CM_REJECT_CONSUMER, private_data, private_data_len);
}

SOFTIB_API int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
    return reject_request(id, CM_REJECT_ECE, private_data, private_data_len);
}

SOFTIB_API int rdma_establish(struct rdma_cm_id *id)
{
    struct cm_id *p = CM_OF(id);
    pthread_mutex_lock(&cm_lock);
    bool legal = p->state == CM_RESPONDED && !id->qp;
    if (legal) {
        send_without_data(p, MESSAGE_READY);
        p->state = CM_CONNECTED;
    }
    pthread_mutex_unlock(&cm_lock);
    return legal ? 0 : cm_return_error(EINVAL);
}

/* The event of the disconnecting side is reported immediately, before the peer answers. */
SOFTIB_API int rdma_disconnect(struct rdma_cm_id *id)
{
    struct cm_id *p = CM_OF(id);
    pthread_mutex_lock(&cm_lock);
    bool connected = !id_is_datagram(p) &&
                     (p->state == CM_CONNECTED || p->state == CM_ACCEPTED || p->state == CM_RESPONDED);
    bool legal = connected || (!id_is_datagram(p) && p->state == CM_ENDED);
    if (legal)
        qp_to_error(p);
    if (connected) {
        send_without_data(p, MESSAGE_DISCONNECT);
        connect_close_link(p);
        channel_report(p, RDMA_CM_EVENT_DISCONNECTED, 0);
    }
    pthread_mutex_unlock(&cm_lock);
    return !legal ? cm_return_error(EINVAL) : connected ? id_wait(p) : 0;
}

static void connect_establish(struct cm_id *p)
{
    channel_set_timer(p, 0);
    p->state = CM_CONNECTED;
    channel_report(p, RDMA_CM_EVENT_ESTABLISHED, 0);
}

SOFTIB_API int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
    struct cm_id *p = CM_OF(id);
    if (event != IBV_EVENT_COMM_EST)
        return cm_return_error(EINVAL);
    pthread_mutex_lock(&cm_lock);
    bool legal = p->state == CM_ACCEPTED || p->state == CM_CONNECTED;
    if (p->state == CM_ACCEPTED)
        connect_establish(p);
    pthread_mutex_unlock(&cm_lock);
    return legal ? 0 : cm_return_error(EINVAL);
}

static enum ibv_qp_type peer_qp_type(unsigned type)
{
    return type == IBV_QPT_XRC_SEND ? IBV_QPT_XRC_RECV : type == IBV_QPT_XRC_RECV ? IBV_QPT_XRC_SEND : type;
}

/* Reports a connection request to the program, with a new identifier. */
static void connect_handle_request(struct cm_id *p, const struct message *m)
{
    struct cm_id *l = p->listener;
    struct softib_address here, there;
    struct rdma_addr *route = &p->id.route.addr;
    const int family = m->family == 4 ? AF_INET : AF_INET6;
    bool good = m->type == MESSAGE_REQUEST && m->ps == p->id.ps &&
                address_of_gid(m->src_gid, m->src_lid, m->src_gid_index, &there) && there.node == m->node &&
                address_of_gid(m->dst_gid, m->dst_lid, m->dst_gid_index, &here) &&
                here.node == device_get_place()->node && device_find_by_guid(here.node_guid);
    if (!good) {
        id_free(p);
        return;
    }
    listen_remove_unproved(p);
    channel_set_timer(p, 0);
    id_bind_device(p, &here);
    p->there = there;
    p->has_there = true;
    p->peer = *m;
    p->state = CM_REQUESTED;
    p->id.qp_type = peer_qp_type(m->qp_type);
    struct in6_addr ip;
    memcpy(&ip, m->dst_ip, sizeof(ip));
    address_write(&route->src_storage, family, &ip, m->dst_port);
    memcpy(&ip, m->src_ip, sizeof(ip));
    address_write(&route->dst_storage, family, &ip, m->src_port);
    memcpy(&route->addr.ibaddr.dgid, there.gid, sizeof(there.gid));
    path_fill(p);
    struct cm_event *e = channel_report(p, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    if (!e) {
        connect_reject(p, CM_REJECT_CONSUMER, NULL, 0);
        id_free(p);
        return;
    }
    e->e.listen_id = &l->id;
    e->counted = l;
    event_fill_from_message(p, e, m);
}

static void connect_handle_reply(struct cm_id *p, const struct message *m)
{
    p->peer = *m;
    channel_set_timer(p, 0);
    int error = p->id.qp && !id_is_datagram(p) ? qp_move_to_ready_to_send(p) : 0;
    if (error) {
        connect_reject(p, CM_REJECT_CONSUMER, NULL, 0);
        channel_report(p, RDMA_CM_EVENT_CONNECT_ERROR, -error);
        return;
    }
    bool complete = id_is_datagram(p) || p->id.qp;
    p->state = complete ? CM_CONNECTED : CM_RESPONDED;
    if (complete && !id_is_datagram(p))
        send_without_data(p, MESSAGE_READY);
    struct cm_event *e =
        channel_report(p, complete ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
    if (e)
        event_fill_from_message(p, e, m);
}

static void connect_handle_reject(struct cm_id *p, const struct message *m)
{
    connect_close_link(p);
    struct cm_event *e =
        channel_report(p, id_is_datagram(p) ? RDMA_CM_EVENT_UNREACHABLE : RDMA_CM_EVENT_REJECTED,
                       m->status ? (int)(m->status & 0xffff) : CM_REJECT_CONSUMER);
    if (e)
        event_fill_from_message(p, e, m);
}

static void handle_link_loss(struct cm_id *p, int error)
{
    const enum cm_state was = p->state;
    if (was == CM_UNPROVED) {
        id_free(p);
        return;
    }
    if (was == CM_CONNECTING && p->link.state == LINK_CONNECTING) {
        channel_remove(channel_of(p), &p->link_watch);
        errno = error;
        if (!connect_next_address(p))
            report_unreachable(p, errno);
        return;
    }
    connect_close_link(p);
    if (was == CM_CONNECTING)
        report_unreachable(p, EAGAIN);
    else if (was == CM_CONNECTED && !id_is_datagram(p))
        channel_report(p, RDMA_CM_EVENT_DISCONNECTED, 0);
    else if (was == CM_REQUESTED || was == CM_ACCEPTED || was == CM_RESPONDED)
        channel_report(p, RDMA_CM_EVENT_REJECTED, CM_REJECT_TIMEOUT);
}

static void connect_handle_message(struct cm_id *p, const struct message *m)
{
    if (p->state == CM_UNPROVED) {
        connect_handle_request(p, m);
        return;
    }
    if (m->ps != p->id.ps || m->node != p->there.node)
        handle_link_loss(p, EPROTO);
    else if (m->type == MESSAGE_REPLY && p->state == CM_CONNECTING)
        connect_handle_reply(p, m);
    else if (m->type == MESSAGE_REJECT && (p->state == CM_CONNECTING || p->state == CM_ACCEPTED))
        connect_handle_reject(p, m);
    else if (m->type == MESSAGE_READY && p->state == CM_ACCEPTED)
        connect_establish(p);
    else
        handle_link_loss(p, EPROTO); /* DISCONNECT, or a message that is invalid in this state */
}

void connect_link_ready(struct cm_id *p)
{
    struct message m;
    enum link_state before = p->link.state;
    switch (link_receive(&p->link, &m)) {
    case LINK_MESSAGE:
        connect_handle_message(p, &m);
        return;
    case LINK_DOWN:
        handle_link_loss(p, errno);
        return;
    case LINK_NOTHING:
        break;
    }
    if (before == LINK_CONNECTING)
        channel_add(channel_of(p), &p->link_watch, EPOLLIN);
    if (before != LINK_UP && p->link.state == LINK_UP && !link_send(&p->link, connect_request_buffer(p)))
        handle_link_loss(p, ECONNRESET);
}

void connect_handle_timeout(struct cm_id *p)
{
    if (p->state == CM_UNPROVED) {
        id_free(p);
        return;
    }
    connect_close_link(p);
    channel_report(p, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
}
