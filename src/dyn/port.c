/* port.c: see port.h. A name is fishplate:1:<key>:<machine>:<port>:<address>,<address>...; on the same
 * machine the loopback address is used, otherwise the addresses are tried in turn.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "dyn/port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addresses.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "dyn/names.h"
#include "obj/proc.h"

#define NAME_HEAD       "fishplate:1:"
#define ADDRESSES_MAX   16
#define CONNECT_SECONDS 10u

struct port {
    struct list link;
    int fd;
    int accepting; /* so many threads wait in MPI_Comm_accept */
    bool closed;
    uint8_t key[CHANNEL_KEY];
    char name[MPI_MAX_PORT_NAME];
};

/* What a name says. */
struct target {
    uint8_t key[CHANNEL_KEY];
    uint64_t network;
    uint16_t port;
    struct in_addr addresses[ADDRESSES_MAX + 1];
    int count;
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

struct dyn *dyn_of(struct proc *p)
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

/* Two processes in one network name space reach each other over the loopback. */
static uint64_t network_number(void)
{
    char text[128] = "";
    uint64_t hash = HASH_START;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f) {
        if (fgets(text, sizeof(text), f))
            hash = hash_text(hash, text);
        fclose(f);
    }
    ssize_t n = readlink("/proc/self/ns/net", text, sizeof(text));
    return n > 0 ? hash_add(hash, text, (size_t)n) : hash;
}

static int listen_anywhere(int *out, uint16_t *number)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) != 0 || listen(fd, 128) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) != 0) {
        int why = errno;
        if (fd >= 0)
            close(fd);
        return err_set(MPI_ERR_PORT, "a port cannot be opened: %s", strerror(why));
    }
    *out = fd;
    *number = ntohs(address.sin_port);
    return 0;
}

static void write_name(const struct port *port, uint16_t number, char *out)
{
    char key[2 * CHANNEL_KEY + 1], addresses[MPI_MAX_PORT_NAME - 128];
    for (int i = 0; i < CHANNEL_KEY; i++)
        snprintf(key + 2 * i, 3, "%02x", port->key[i]);
    own_addresses(addresses, sizeof(addresses), ADDRESSES_MAX);
    snprintf(out, MPI_MAX_PORT_NAME, NAME_HEAD "%s:%016llx:%u:%s", key, (unsigned long long)network_number(),
             number, addresses);
}

int port_open(struct proc *p, char *name)
{
    struct dyn *d = dyn_of(p);
    struct port *port = d ? calloc(1, sizeof(*port)) : NULL;
    uint16_t number;
    if (!port)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a port");
    int rc = getrandom(port->key, sizeof(port->key), 0) == (ssize_t)sizeof(port->key)
                 ? 0
                 : err_set(MPI_ERR_PORT, "the kernel gave no random bytes for the key of a port");
    rc = rc ? rc : listen_anywhere(&port->fd, &number);
    if (rc) {
        free(port);
        return rc;
    }
    write_name(port, number, port->name);
    list_append(&d->ports, &port->link);
    strcpy(name, port->name);
    return 0;
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

/* The last of those who accept at a port that was closed meanwhile frees it. */
static void port_free(struct port *port)
{
    if (!port->closed)
        list_remove(&port->link);
    port->closed = true;
    if (port->accepting)
        return;
    close(port->fd);
    secret_wipe(port->key, sizeof(port->key));
    free(port);
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

/* While a thread accepts, another one may close the port. */
struct accept_watch {
    const struct port *port;
    const struct channel_watch *next;
};

static int look(void *arg)
{
    const struct accept_watch *w = arg;
    if (w->port->closed)
        return err_set(MPI_ERR_PORT, "the port was closed while MPI_Comm_accept waited for a client");
    return w->next ? w->next->look(w->next->arg) : 0;
}

static int accept_at(struct proc *p, struct port *port, const struct channel_watch *next, struct channel *out)
{
    struct accept_watch both = {port, next};
    const struct channel_watch watch = {look, &both};
    for (;;) {
        int rc = channel_wait(p, port->fd, POLLIN, UINT64_MAX, &watch);
        if (rc)
            return rc;
        int fd = accept4(port->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        /* Whoever does not know the key, or has gone, is not who we wait for. */
        if (fd >= 0 && channel_open(out, p, fd, true, true, port->key, NULL) == 0)
            return 0;
    }
}

int port_accept(struct proc *p, const char *name, const struct channel_watch *watch, struct channel *out)
{
    struct port *port = port_find(p, name);
    if (!port)
        return err_set(MPI_ERR_PORT, "the root has not opened the port \"%.60s\" with MPI_Open_port", name);
    port->accepting++;
    int rc = accept_at(p, port, watch, out);
    port->accepting--;
    if (port->closed)
        port_free(port);
    return rc;
}

static bool read_key(const char **at, uint8_t *key)
{
    for (int i = 0; i < CHANNEL_KEY; i++, *at += 2) {
        unsigned byte;
        if (sscanf(*at, "%2x", &byte) != 1 || !(*at)[1])
            return false;
        key[i] = (uint8_t)byte;
    }
    return *(*at)++ == ':';
}

static bool read_name(const char *name, struct target *t)
{
    const char *at = name + strlen(NAME_HEAD);
    unsigned long long network;
    unsigned port;
    int used;
    *t = (struct target){0};
    if (strncmp(name, NAME_HEAD, strlen(NAME_HEAD)) != 0 || strlen(at) < 2 * CHANNEL_KEY ||
        !read_key(&at, t->key) || sscanf(at, "%16llx:%5u:%n", &network, &port, &used) != 2 ||
        port > UINT16_MAX)
        return false;
    t->network = network;
    t->port = (uint16_t)port;
    if (t->network == network_number())
        t->addresses[t->count++].s_addr = htonl(INADDR_LOOPBACK);
    for (at += used; *at && t->count <= ADDRESSES_MAX;) {
        char text[INET_ADDRSTRLEN] = "";
        size_t len = strcspn(at, ",");
        if (len < sizeof(text))
            memcpy(text, at, len);
        if (inet_pton(AF_INET, text, &t->addresses[t->count]) == 1)
            t->count++;
        at += len + (at[len] == ',');
    }
    return true;
}

/* A connected socket, or -1 and errno. */
static int dial(struct proc *p, const struct target *t, int which)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(t->port), .sin_addr = t->addresses[which]};
    int error = 0, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t len = sizeof(error);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
        return fd;
    error = errno;
    if (error == EINPROGRESS) {
        int rc = channel_wait(p, fd, POLLOUT, clock_ns() + CONNECT_SECONDS * 1000000000ull, NULL);
        if (rc != 0)
            error = ETIMEDOUT;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0)
            return fd;
    }
    close(fd);
    errno = error;
    return -1;
}

int port_connect(struct proc *p, const char *name, struct channel *out)
{
    struct target t;
    if (!read_name(name, &t))
        return err_set(MPI_ERR_PORT, "\"%.60s\" is not the name of a port", name);
    int why = ENETUNREACH;
    for (int i = 0; i < t.count; i++) {
        int fd = dial(p, &t, i);
        if (fd >= 0)
            return channel_open(out, p, fd, true, false, t.key, NULL);
        why = errno;
    }
    return err_set(MPI_ERR_PORT,
                   "no process listens at that port (%s): it was closed, or the process that opened it "
                   "has ended",
                   strerror(why));
}
