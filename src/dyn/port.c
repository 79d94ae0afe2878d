/* port.c: opens ports and accepts connections (port.h). The handshakes of all callers advance in parallel, so
 * that callers that send nothing do not delay others; base/acceptor.h limits the number and the time of
 * unauthenticated callers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "dyn/port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/acceptor.h"
#include "base/addresses.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/kill_point.h"
#include "dyn/names.h"
#include "dyn/port_name.h"
#include "obj/proc.h"

#define CALLERS_MAX 64
#define CALLER_MS   20000
#define BACKLOG     512 /* connections that the kernel holds until MPI_Comm_accept is called */
#define SAME_TRIES  16  /* attempts to find a TCP port number that is free at all addresses */

enum { LISTENERS_MAX = 1 + PORT_ADDRESSES };

/* An incoming connection: in the acceptor's list until the other end has proved that it knows the key,
 * then in port.proved until MPI_Comm_accept takes it. */
struct caller {
    struct acceptor_caller in; /* first member; in the list of the acceptor */
    struct list proved;
    struct port *port;
    int fd;
    struct handshake handshake;
};

struct port {
    struct list link;
    int listeners[LISTENERS_MAX], count; /* the first one is the Unix socket */
    int accepting;                       /* threads that wait in MPI_Comm_accept */
    bool closed;
    uint8_t key[HANDSHAKE_KEY];
    char name[MPI_MAX_PORT_NAME];
    struct acceptor acceptor;
    struct list proved; /* authenticated connections that wait for MPI_Comm_accept */
};

static void dyn_close(struct proc *p)
{
    struct dyn *d = p->dyn;
    if (!d)
        return;
    names_close(d);
    ports_close(d);
    free(d);
    p->dyn = NULL;
}

struct dyn *dyn_get_state(struct proc *p)
{
    if (!p->dyn) {
        struct dyn *d = calloc(1, sizeof(*d));
        if (!d)
            return NULL;
        list_init(&d->ports);
        list_init(&d->names);
        p->dyn = d;
        p->dyn_closing = dyn_close;
    }
    return p->dyn;
}

/* ---- listening ---- */

/* Opens a listening socket. Returns a descriptor, or -1 with errno. */
static int listen_at(const void *address, socklen_t len)
{
    const struct sockaddr *a = address;
    const int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || (bind(fd, a, len) == 0 && listen(fd, BACKLOG) == 0))
        return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static int listen_failed(void)
{
    return err_set(MPI_ERR_PORT, "a port cannot be opened: %s", err_reason(errno));
}

static int listen_locally(struct port *port, uint64_t local)
{
    struct sockaddr_un address;
    const socklen_t len = port_name_local_address(local, &address);
    const int fd = listen_at(&address, len);
    if (fd < 0)
        return listen_failed();
    port->listeners[port->count++] = fd;
    return 0;
}

static void close_listeners(struct port *port, int from)
{
    while (port->count > from)
        close(port->listeners[--port->count]);
}

static uint16_t socket_port_number(int fd)
{
    struct sockaddr_in address;
    socklen_t len = sizeof(address);
    return getsockname(fd, (struct sockaddr *)&address, &len) == 0 ? ntohs(address.sin_port) : 0;
}

/* Listens at all addresses with one port number, which the kernel chooses at the first address. Skips
 * addresses that no longer exist. Returns false with errno EADDRINUSE if the number is in use at another
 * address. */
static bool listen_at_all(struct port *port, struct port_name *name, const struct in_addr *addresses, int n)
{
    name->port = 0;
    name->count = 0;
    for (int i = 0; i < n; i++) {
        const struct sockaddr_in address = {
            .sin_family = AF_INET, .sin_port = htons(name->port), .sin_addr = addresses[i]};
        const int fd = listen_at(&address, sizeof(address));
        if (fd < 0 && errno == EADDRNOTAVAIL)
            continue;
        if (fd < 0)
            return false;
        port->listeners[port->count++] = fd;
        if (name->count == 0)
            name->port = socket_port_number(fd);
        name->addresses[name->count++] = addresses[i];
    }
    return true;
}

/* Listens at the addresses of this machine that other machines may reach, without the loopback address. */
static int listen_to_network(struct port *port, struct port_name *name)
{
    struct in_addr addresses[PORT_ADDRESSES];
    const int n = addresses_list_ipv4(addresses, PORT_ADDRESSES);
    for (int tries = 0; tries < SAME_TRIES; tries++) {
        if (listen_at_all(port, name, addresses, n))
            return 0;
        close_listeners(port, 1);
        if (errno != EADDRINUSE)
            break;
    }
    return listen_failed();
}

/* ---- callers ---- */

static struct acceptor_caller *caller_admit(void *ctx, int fd)
{
    struct caller *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->port = ctx;
    c->fd = fd;
    channel_disable_nagle(fd);
    list_init(&c->proved);
    if (handshake_begin(&c->handshake, true, c->port->key) == 0)
        return &c->in;
    free(c);
    return NULL;
}

static void caller_free(struct caller *c)
{
    if (c->fd >= 0)
        close(c->fd);
    secret_wipe(&c->handshake, sizeof(c->handshake));
    free(c);
}

static void caller_reject(void *ctx, struct acceptor_caller *in)
{
    caller_free((struct caller *)in);
}

static const struct acceptor_ops acceptor_ops = {caller_admit, caller_reject};

static bool is_local_stranger(int fd)
{
    int domain = 0;
    socklen_t len = sizeof(domain);
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX &&
           !port_name_peer_is_own(fd);
}

static void caller_advance(struct caller *c)
{
    struct port *port = c->port;
    const enum handshake_result r =
        is_local_stranger(c->fd) ? HANDSHAKE_STRANGER : handshake_advance(&c->handshake, c->fd);
    if (r == HANDSHAKE_MORE)
        return;
    acceptor_remove(&port->acceptor, &c->in);
    if (r == HANDSHAKE_DONE) {
        list_append(&port->proved, &c->proved);
        KILL_POINT(port_caller_proved);
    } else {
        caller_free(c);
    }
}

/* Accepts connections and advances handshakes without waiting. */
static int port_advance(struct port *port)
{
    const uint64_t now = clock_ns() / 1000000;
    int error = 0;
    acceptor_expire(&port->acceptor, now);
    for (int i = 0; i < port->count && !error; i++)
        error = acceptor_accept_pending(&port->acceptor, port->listeners[i], now);
    for (struct acceptor_caller *c = port->acceptor.first, *next; c; c = next) {
        next = c->next;
        caller_advance((struct caller *)c);
    }
    /* An accept error is ignored while there are callers, since one of them may complete its handshake. */
    return error && !port->acceptor.first && list_empty(&port->proved)
               ? err_set(MPI_ERR_PORT, "MPI_Comm_accept cannot take a connection: %s", err_reason(error))
               : 0;
}

static void port_wait(struct proc *p, struct port *port, struct net_waiter *w)
{
    struct pollfd fds[LISTENERS_MAX + CALLERS_MAX];
    unsigned n = 0;
    for (int i = 0; i < port->count; i++)
        fds[n++] = (struct pollfd){.fd = port->listeners[i], .events = POLLIN};
    for (const struct acceptor_caller *in = port->acceptor.first; in && n < COUNT_OF(fds); in = in->next) {
        const struct caller *c = (const struct caller *)in;
        fds[n++] = (struct pollfd){.fd = c->fd, .events = handshake_events(&c->handshake)};
    }
    channel_poll(p, fds, n, w);
}

/* ---- ports ---- */

/* Closes a port. If threads are accepting at the port, the last of them frees it. */
static void port_free(struct port *port)
{
    if (!port->closed)
        list_remove(&port->link);
    port->closed = true;
    if (port->accepting)
        return;
    acceptor_close(&port->acceptor);
    list_foreach_safe(pos, after, &port->proved)
    {
        struct caller *c = list_entry(pos, struct caller, proved);
        list_remove(&c->proved);
        caller_free(c);
    }
    close_listeners(port, 0);
    secret_wipe(port->key, sizeof(port->key));
    free(port);
}

static int make_name(enum port_scope scope, struct port *port)
{
    struct port_name name = {.network = port_name_network_id()};
    if (getrandom(name.key, sizeof(name.key), 0) != (ssize_t)sizeof(name.key) ||
        getrandom(&name.local, sizeof(name.local), 0) != (ssize_t)sizeof(name.local))
        return err_set(MPI_ERR_PORT, "the kernel gave no random bytes for the key of a port");
    int rc = listen_locally(port, name.local);
    rc = rc || scope == PORT_MACHINE ? rc : listen_to_network(port, &name);
    memcpy(port->key, name.key, sizeof(port->key));
    port_name_write(&name, port->name);
    secret_wipe(&name, sizeof(name));
    return rc;
}

int port_open(struct proc *p, enum port_scope scope, char *name)
{
    struct dyn *d = dyn_get_state(p);
    struct port *port = d ? calloc(1, sizeof(*port)) : NULL;
    if (!port)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a port");
    list_init(&port->proved);
    acceptor_open(&port->acceptor, CALLERS_MAX, CALLER_MS, &acceptor_ops, port);
    list_append(&d->ports, &port->link);
    const int rc = make_name(scope, port);
    if (rc)
        port_free(port);
    else
        strcpy(name, port->name);
    return rc;
}

static struct port *port_find(struct proc *p, const char *name)
{
    struct dyn *d = p->dyn;
    if (d)
        list_foreach(pos, &d->ports)
        {
            struct port *port = list_entry(pos, struct port, link);
            if (strcmp(port->name, name) == 0)
                return port;
        }
    return NULL;
}

int port_close(struct proc *p, const char *name)
{
    struct port *port = port_find(p, name);
    if (!port)
        return err_set(MPI_ERR_PORT, "this process has not opened the port \"%.60s\"", name);
    port_free(port);
    return 0;
}

void ports_close(struct dyn *d)
{
    list_foreach_safe(pos, after, &d->ports) port_free(list_entry(pos, struct port, link));
}

static int accept_at(struct proc *p, struct port *port, const struct port_watch *watch, struct net_waiter *w,
                     struct channel *out)
{
    for (;;) {
        int rc = port_advance(port);
        if (!list_empty(&port->proved)) {
            struct caller *c = list_entry(port->proved.next, struct caller, proved);
            list_remove(&c->proved);
            channel_init_from_handshake(out, p, c->fd, true, &c->handshake);
            c->fd = -1;
            caller_free(c);
            return 0;
        }
        rc = rc ? rc : watch ? watch->check(watch->arg) : 0;
        if (rc)
            return rc;
        port_wait(p, port, w);
        if (port->closed) /* by another thread */
            return err_set(MPI_ERR_PORT, "the port was closed while MPI_Comm_accept waited for a client");
    }
}

int port_accept(struct proc *p, const char *name, const struct port_watch *watch, struct channel *out)
{
    struct port *port = port_find(p, name);
    if (!port)
        return err_set(MPI_ERR_PORT, "the root has not opened the port \"%.60s\" with MPI_Open_port", name);
    const struct net_named what = {"process that connects to a port", NET_NOBODY, false};
    struct net_waiter w = {.awaited_kind = NET_NAMED, .awaited = &what};
    port->accepting++;
    const int rc = accept_at(p, port, watch, &w, out);
    net_wait_end(p->net, &w);
    port->accepting--;
    if (port->closed)
        port_free(port);
    return rc;
}
