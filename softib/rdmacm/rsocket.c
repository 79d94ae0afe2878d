/* rsocket.c: rsockets: creation, connections, and waiting. The other calls are in rsocket_transfer.c and
 * rsocket_poll.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rsocket.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define RSOCKETS 65536              /* limit of descriptor numbers */
#define GREETING "softib rsocket 1" /* private data of requests: both ends must use the same messages */

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rsocket *table[RSOCKETS];

/* ---- the table ---- */

struct rsocket *rsocket_find(int fd)
{
    pthread_mutex_lock(&table_lock);
    struct rsocket *s = fd >= 0 && fd < RSOCKETS ? table[fd] : NULL;
    pthread_mutex_unlock(&table_lock);
    return s;
}

static void table_set(int fd, struct rsocket *s)
{
    pthread_mutex_lock(&table_lock);
    table[fd] = s;
    pthread_mutex_unlock(&table_lock);
}

struct rsocket *rsocket_get(int fd)
{
    struct rsocket *s = rsocket_find(fd);
    if (!s) {
        errno = EBADF;
        return NULL;
    }
    pthread_mutex_lock(&s->lock);
    return s;
}

/* Unlocks the rsocket; returns 0, or -1 with errno. */
static int rsocket_return(struct rsocket *s, int error)
{
    pthread_mutex_unlock(&s->lock);
    return error ? cm_return_error(error) : 0;
}

static void rsocket_free(struct rsocket *s)
{
    stream_close(&s->stream);
    if (s->request)
        rdma_destroy_id(s->request);
    if (s->id)
        rdma_destroy_id(s->id);
    if (s->channel)
        rdma_destroy_event_channel(s->channel);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->leader_woke);
    free(s);
}

/* Creates an rsocket without an identifier, which is not in the table yet. */
static struct rsocket *rsocket_new(void)
{
    struct rsocket *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->leader_woke, NULL);
    s->channel = rdma_create_event_channel();
    if (s->channel && s->channel->fd >= RSOCKETS)
        errno = EMFILE;
    else if (s->channel && !fcntl(s->channel->fd, F_SETFL, O_NONBLOCK))
        return s;
    int error = errno;
    rsocket_free(s);
    errno = error;
    return NULL;
}

/* ---- events and waiting ---- */

static void fail(struct rsocket *s, int error)
{
    s->error = error;
    s->state = RSOCKET_CLOSED;
}

static bool is_known_greeting(const struct rdma_conn_param *c)
{
    return c->private_data_len >= sizeof(GREETING) && !memcmp(c->private_data, GREETING, sizeof(GREETING));
}

static void handle_request(struct rsocket *s, struct rdma_cm_id *id, bool known)
{
    if (known) {
        s->request = id;
        return;
    }
    rdma_reject(id, NULL, 0);
    rdma_destroy_id(id);
}

static void handle_event(struct rsocket *s, enum rdma_cm_event_type type, int status)
{
    if (type == RDMA_CM_EVENT_ESTABLISHED && s->state == RSOCKET_CONNECTING)
        s->state = RSOCKET_OPEN;
    else if (s->state == RSOCKET_CONNECTING)
        fail(s, type == RDMA_CM_EVENT_REJECTED      ? ECONNREFUSED
                : status == -ETIMEDOUT              ? ETIMEDOUT
                : type == RDMA_CM_EVENT_UNREACHABLE ? EHOSTUNREACH
                                                    : ECONNRESET);
    else if (type == RDMA_CM_EVENT_DISCONNECTED)
        s->state = RSOCKET_CLOSED;
}

static void handle_events(struct rsocket *s)
{
    struct rdma_cm_event *e;
    while (!s->request && !rdma_get_cm_event(s->channel, &e)) {
        struct rdma_cm_id *id = e->id;
        const enum rdma_cm_event_type type = e->event;
        const int status = e->status;
        const bool request = type == RDMA_CM_EVENT_CONNECT_REQUEST;
        const bool known = request && is_known_greeting(&e->param.conn);
        rdma_ack_cm_event(e);
        if (request)
            handle_request(s, id, known);
        else if (id == s->id)
            handle_event(s, type, status);
    }
}

static void make_progress(struct rsocket *s)
{
    if (s->stream.id)
        stream_progress(&s->stream);
}

bool rsocket_check(struct rsocket *s, rsocket_condition *condition)
{
    make_progress(s);
    if (condition(s))
        return true;
    handle_events(s); /* after an event that ends the connection, completions may have arrived before it */
    make_progress(s);
    return condition(s);
}

bool rsocket_lead(struct rsocket *s)
{
    if (s->has_leader)
        return false;
    s->has_leader = true;
    if (s->stream.id) {
        stream_drain_events(&s->stream);
        stream_arm(&s->stream);
    }
    return true;
}

void rsocket_stop_leading(struct rsocket *s)
{
    s->has_leader = false;
    pthread_cond_broadcast(&s->leader_woke);
}

int rsocket_wait(struct rsocket *s, rsocket_condition *condition, bool nonblocking)
{
    while (!rsocket_check(s, condition)) {
        if (nonblocking)
            return EAGAIN;
        if (!rsocket_lead(s)) {
            pthread_cond_wait(&s->leader_woke, &s->lock);
            continue;
        }
        if (!rsocket_check(s, condition)) {
            struct pollfd p[2] = {{.fd = s->channel->fd, .events = POLLIN}, {.events = POLLIN}};
            p[1].fd = s->stream.id ? s->stream.events->fd : -1;
            pthread_mutex_unlock(&s->lock);
            poll(p, 2, -1);
            pthread_mutex_lock(&s->lock);
        }
        rsocket_stop_leading(s);
    }
    return 0;
}

bool rsocket_can_accept(struct rsocket *s)
{
    return s->request || s->state != RSOCKET_LISTENING;
}

bool rsocket_is_connected(struct rsocket *s)
{
    return s->state != RSOCKET_CONNECTING;
}

bool rsocket_can_read(struct rsocket *s)
{
    return s->stream.inbox_count || s->stream.ended || s->stream.broken || s->shut_in ||
           (s->state != RSOCKET_OPEN && s->state != RSOCKET_CONNECTING);
}

static bool is_over(const struct rsocket *s)
{
    return s->stream.broken || s->stream.end_requested ||
           (s->state != RSOCKET_OPEN && s->state != RSOCKET_CONNECTING);
}

bool rsocket_can_write(struct rsocket *s)
{
    return is_over(s) || (s->state == RSOCKET_OPEN && stream_can_write(&s->stream));
}

bool rsocket_can_write_map(struct rsocket *s)
{
    return is_over(s) || (s->state == RSOCKET_OPEN && s->stream.slots_used < STREAM_SLOTS);
}

static bool is_flushed(struct rsocket *s)
{
    return s->state != RSOCKET_OPEN || s->stream.broken || stream_is_flushed(&s->stream);
}

/* ---- calls ---- */

SOFTIB_API int rsocket(int domain, int type, int protocol)
{
    if (domain != AF_INET && domain != AF_INET6)
        return cm_return_error(EAFNOSUPPORT);
    if ((type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) != SOCK_STREAM || (protocol && protocol != IPPROTO_TCP))
        return cm_return_error(EPROTONOSUPPORT);
    struct rsocket *s = rsocket_new();
    if (!s)
        return -1;
    if (rdma_create_id(s->channel, &s->id, NULL, RDMA_PS_TCP)) {
        int error = errno;
        rsocket_free(s);
        return cm_return_error(error);
    }
    s->id->route.addr.src_addr.sa_family = (sa_family_t)domain;
    s->nonblocking = type & SOCK_NONBLOCK;
    table_set(s->channel->fd, s);
    return s->channel->fd;
}

SOFTIB_API int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
    struct rsocket *s = rsocket_get(socket);
    (void)addrlen;
    if (!s)
        return -1;
    int error = s->state != RSOCKET_NEW ? EINVAL : 0;
    if (!error)
        error = rdma_bind_addr(s->id, (struct sockaddr *)(uintptr_t)addr) ? errno : 0;
    if (!error)
        s->state = RSOCKET_BOUND;
    return rsocket_return(s, error);
}

SOFTIB_API int rlisten(int socket, int backlog)
{
    struct rsocket *s = rsocket_get(socket);
    if (!s)
        return -1;
    int error = s->state == RSOCKET_LISTENING ? 0 : s->state > RSOCKET_BOUND ? EINVAL : 0;
    if (!error && s->state != RSOCKET_LISTENING)
        error = rdma_listen(s->id, backlog) ? errno : 0;
    if (!error)
        s->state = RSOCKET_LISTENING;
    return rsocket_return(s, error);
}

/* Waits for the result of a step that the connection manager reports at once. */
static int connect_step(struct rsocket *s, int result)
{
    struct rdma_cm_event *e;
    if (result || rdma_get_cm_event(s->channel, &e))
        return errno;
    int error = e->status < 0 ? -e->status : e->status ? ENETUNREACH : 0;
    rdma_ack_cm_event(e);
    return error;
}

static struct rdma_conn_param connection_parameters(void)
{
    return (struct rdma_conn_param){.private_data = GREETING,
                                    .private_data_len = sizeof(GREETING),
                                    .responder_resources = 1,
                                    .initiator_depth = 1,
                                    .retry_count = 7,
                                    .rnr_retry_count = 7};
}

static int begin_connect(struct rsocket *s, const struct sockaddr *addr)
{
    struct rdma_conn_param param = connection_parameters();
    int error = connect_step(s, rdma_resolve_addr(s->id, NULL, (struct sockaddr *)(uintptr_t)addr, 2000));
    if (!error)
        error = connect_step(s, rdma_resolve_route(s->id, 2000));
    if (!error)
        error = stream_open(&s->stream, s->id);
    if (!error)
        error = rdma_connect(s->id, &param) ? errno : 0;
    s->state = error ? RSOCKET_CLOSED : RSOCKET_CONNECTING;
    return error;
}

static int connection_error(struct rsocket *s)
{
    int error = s->error;
    s->error = 0;
    return s->state == RSOCKET_OPEN ? 0 : error ? error : ECONNRESET;
}

SOFTIB_API int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
    struct rsocket *s = rsocket_get(socket);
    (void)addrlen;
    if (!s)
        return -1;
    int error = s->state == RSOCKET_OPEN         ? EISCONN
                : s->state == RSOCKET_CONNECTING ? EALREADY
                : s->state > RSOCKET_BOUND       ? EINVAL
                                                 : begin_connect(s, addr);
    if (!error && rsocket_wait(s, rsocket_is_connected, s->nonblocking))
        error = EINPROGRESS;
    else if (!error)
        error = connection_error(s);
    return rsocket_return(s, error);
}

static void copy_address(const struct sockaddr *from, struct sockaddr *addr, socklen_t *length)
{
    const socklen_t size =
        from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (!addr || !length)
        return;
    memcpy(addr, from, *length < size ? *length : size);
    *length = size;
}

/* Accepts the request; it becomes the connection of `s`. The identifier is destroyed after an error. */
static int accept_request(struct rsocket *s, struct rdma_cm_id *request)
{
    struct rdma_conn_param param = connection_parameters();
    s->id = request;
    int error = rdma_migrate_id(request, s->channel) ? errno : stream_open(&s->stream, request);
    if (!error)
        error = rdma_accept(request, &param) ? ECONNABORTED : 0; /* the peer has withdrawn its request */
    else
        rdma_reject(request, NULL, 0);
    s->state = RSOCKET_CONNECTING; /* the peer can receive as soon as it has confirmed the connection */
    return error;
}

SOFTIB_API int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
    struct rsocket *s = rsocket_get(socket);
    if (!s)
        return -1;
    int error = rsocket_wait(s, rsocket_can_accept, s->nonblocking);
    if (!error && s->state != RSOCKET_LISTENING)
        error = EINVAL;
    struct rdma_cm_id *request = error ? NULL : s->request;
    struct rsocket *made = request ? rsocket_new() : NULL;
    if (request && !made)
        error = errno; /* the request stays: the program may close descriptors and try again */
    if (made) {
        s->request = NULL;
        error = accept_request(made, request);
    }
    rsocket_return(s, 0);
    if (made && error)
        rsocket_free(made);
    if (error)
        return cm_return_error(error);
    copy_address(&made->id->route.addr.dst_addr, addr, addrlen);
    table_set(made->channel->fd, made);
    return made->channel->fd;
}

SOFTIB_API int rshutdown(int socket, int how)
{
    struct rsocket *s = rsocket_get(socket);
    if (!s)
        return -1;
    int error = how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR ? EINVAL
                : s->state != RSOCKET_OPEN                           ? ENOTCONN
                                                                     : 0;
    if (!error) {
        s->shut_in |= how != SHUT_WR;
        s->stream.end_requested |= how != SHUT_RD;
        make_progress(s);
    }
    return rsocket_return(s, error);
}

/* Waits until the peer has received all data, or has gone. */
SOFTIB_API int rclose(int socket)
{
    struct rsocket *s = rsocket_get(socket);
    if (!s)
        return -1;
    if (s->state == RSOCKET_CONNECTING)
        rsocket_check(s, rsocket_is_connected);
    if (s->state == RSOCKET_OPEN) {
        s->stream.end_requested = true;
        rsocket_wait(s, is_flushed, false);
        rdma_disconnect(s->id);
    }
    table_set(socket, NULL);
    pthread_mutex_unlock(&s->lock);
    rsocket_free(s);
    return 0;
}

static int return_address(int socket, bool remote, struct sockaddr *addr, socklen_t *addrlen)
{
    struct rsocket *s = rsocket_get(socket);
    if (!s)
        return -1;
    const struct rdma_addr *a = &s->id->route.addr;
    int error = remote && s->state != RSOCKET_OPEN && s->state != RSOCKET_CONNECTING ? ENOTCONN : 0;
    if (!error)
        copy_address(remote ? &a->dst_addr : &a->src_addr, addr, addrlen);
    return rsocket_return(s, error);
}

SOFTIB_API int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
    return return_address(socket, false, addr, addrlen);
}

SOFTIB_API int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
    return return_address(socket, true, addr, addrlen);
}
