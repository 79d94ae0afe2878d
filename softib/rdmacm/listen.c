/* listen.c: port numbers, and identifiers that listen. A port number is mapped to the name of a Unix
 * socket or, with wire=tcp, to a TCP port number of the node's addresses.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cm.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define PORT_ATTEMPTS 200

void listen_close(struct cm_id *p)
{
    for (unsigned i = 0; i < p->listens; i++)
        channel_remove(channel_of(p), &p->listen[i]);
    free(p->listen);
    p->listen = NULL;
    p->listens = 0;
    p->bound = false;
}

static int bind_socket(struct cm_id *p, int family, const void *name, socklen_t length)
{
    const int one = 1;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    if (family == AF_INET)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, name, length)) {
        int error = errno;
        close(fd);
        return error;
    }
    p->listen[p->listens++] = (struct cm_watch){.kind = WATCH_LISTENER, .fd = fd, .id = p};
    return 0;
}

static int bind_unix(struct cm_id *p, const struct cm_address *a)
{
    struct sockaddr_un name;
    struct link_service s = {.node = device_get_place()->node,
                             .ps = (uint16_t)p->id.ps,
                             .port = a->port,
                             .ip = a->any ? NULL : &a->ip};
    return bind_socket(p, AF_UNIX, &name, link_unix_name(&name, device_get_place()->key, &s));
}

/* Sockets are bound to the addresses of the node in SOFTIB_FABRIC, or to the one that the program chose. */
static int bind_tcp(struct cm_id *p, const struct cm_address *a)
{
    struct in_addr all[SOFTIB_NODE_ADDRESSES];
    unsigned n = softib_node_addresses(device_get_place()->node, all), only = n;
    int error = n ? 0 : EADDRNOTAVAIL;
    for (unsigned i = 0; !a->any && IN6_IS_ADDR_V4MAPPED(&a->ip) && i < n; i++)
        if (!memcmp(&all[i], a->ip.s6_addr + 12, 4))
            only = i;
    for (unsigned i = 0; i < n && !error; i++) {
        struct sockaddr_in name = {.sin_family = AF_INET,
                                   .sin_port = htons(link_tcp_port((uint16_t)p->id.ps, a->port)),
                                   .sin_addr = all[i]};
        if (only != n && i != only)
            continue;
        error = bind_socket(p, AF_INET, &name, sizeof(name));
        if (error == EADDRNOTAVAIL) /* SOFTIB_FABRIC may list addresses that this machine does not have */
            error = 0;
    }
    return error ? error : p->listens ? 0 : EADDRNOTAVAIL;
}

static int bind_port(struct cm_id *p, const struct cm_address *a)
{
    p->listen = calloc(SOFTIB_NODE_ADDRESSES, sizeof(*p->listen));
    if (!p->listen)
        return ENOMEM;
    int error = device_get_place()->tcp ? bind_tcp(p, a) : bind_unix(p, a);
    if (error)
        listen_close(p);
    p->bound = !error;
    return error;
}

int listen_bind(struct cm_id *p, const struct cm_address *a)
{
    struct cm_address chosen = *a;
    int error = EADDRINUSE;
    for (int i = 0; i < (a->port ? 1 : PORT_ATTEMPTS) && error == EADDRINUSE; i++) {
        if (!a->port)
            chosen.port = address_ephemeral_port();
        error = bind_port(p, &chosen);
    }
    /* With reuse_addr an occupied port number is no error yet: rdma_listen binds the sockets again. */
    if (error == EADDRINUSE && p->reuse_addr)
        error = 0;
    if (!error)
        address_write(&p->id.route.addr.src_storage, p->id.route.addr.src_addr.sa_family, &chosen.ip,
                      chosen.port);
    return error;
}

SOFTIB_API int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
    struct cm_id *p = CM_OF(id);
    struct cm_address a;
    struct softib_address here;
    if (!address_read(addr, &a))
        return cm_return_error(EAFNOSUPPORT);
    pthread_mutex_lock(&cm_lock);
    int error = p->state != CM_IDLE                           ? EINVAL
                : !a.any && !address_find_local(&a.ip, &here) ? EADDRNOTAVAIL
                                                              : 0;
    if (!error) {
        id->route.addr.src_addr.sa_family = addr->sa_family;
        error = listen_bind(p, &a);
    }
    if (!error) {
        p->state = CM_BOUND;
        if (!a.any)
            id_bind_device(p, &here);
    }
    pthread_mutex_unlock(&cm_lock);
    return error ? cm_return_error(error) : 0;
}

static int start_listening(struct cm_id *p, int backlog)
{
    struct cm_address a = {.any = true};
    int error = 0;
    if (p->state != CM_IDLE && p->state != CM_BOUND)
        return EINVAL;
    if (p->state == CM_BOUND)
        address_read(&p->id.route.addr.src_addr, &a);
    else
        p->id.route.addr.src_addr.sa_family = AF_INET;
    p->reuse_addr = false;
    if (!p->bound)
        error = listen_bind(p, &a);
    if (backlog <= 0 || backlog > CM_BACKLOG_MAX)
        backlog = CM_BACKLOG_MAX;
    for (unsigned i = 0; i < p->listens && !error; i++)
        if (listen(p->listen[i].fd, backlog) || !channel_add(channel_of(p), &p->listen[i], EPOLLIN))
            error = errno;
    if (!error)
        p->state = CM_LISTENING;
    return error;
}

SOFTIB_API int rdma_listen(struct rdma_cm_id *id, int backlog)
{
    pthread_mutex_lock(&cm_lock);
    int error = start_listening(CM_OF(id), backlog);
    pthread_mutex_unlock(&cm_lock);
    return error ? cm_return_error(error) : 0;
}

void listen_remove_unproved(struct cm_id *p)
{
    struct cm_id *l = p->listener, **at = &l->unproved;
    while (*at != p)
        at = &(*at)->unproved_next;
    *at = p->unproved_next;
    l->unproved_count--;
    p->listener = NULL;
}

/* Closes the oldest connection whose request has not arrived. If new connections were rejected instead,
 * connections that send nothing would keep all others out. Returns false if there is none. */
static bool reject_oldest_unproved(struct cm_id *l)
{
    const unsigned count = l->unproved_count;
    struct cm_id *p = l->unproved;
    while (p && p->unproved_next)
        p = p->unproved_next;
    if (p)
        connect_link_ready(p); /* the request may have arrived meanwhile */
    if (p && l->unproved_count == count)
        id_free(p);
    return p != NULL;
}

/* Closes a pending connection when no descriptors are left; otherwise the channel would stay readable. */
static void reject_without_descriptor(struct cm_channel *c, int listener)
{
    close(c->spare);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    c->spare = dup(listener);
}

void listen_ready(struct cm_watch *w)
{
    struct cm_id *l = w->id;
    const bool tcp = device_get_place()->tcp;
    int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if ((errno == EMFILE || errno == ENFILE) && !reject_oldest_unproved(l))
            reject_without_descriptor(channel_of(l), w->fd);
        return;
    }
    struct cm_id *p = tcp || link_is_same_user(fd) ? id_new(channel_of(l), l->id.context, l->id.ps) : NULL;
    if (!p) {
        close(fd);
        return;
    }
    if (l->unproved_count >= CM_UNPROVED_MAX)
        reject_oldest_unproved(l);
    p->state = CM_UNPROVED;
    p->listener = l;
    p->unproved_next = l->unproved;
    l->unproved = p;
    l->unproved_count++;
    p->link_watch.fd = fd;
    link_init(&p->link, fd, tcp, false, false);
    channel_set_timer(p, CM_UNPROVED_MS);
    if (!channel_add(channel_of(p), &p->link_watch, EPOLLIN))
        id_free(p);
}
