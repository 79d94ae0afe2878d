/* greet.c: accepts connections. After the handshake of hello.h, in which a caller proves that it knows the
 * key, it becomes a connection of its node and member slot. Before that a caller takes a few hundred bytes
 * for some seconds at most, and the number of such callers is limited.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/greet.h"
#include "net/conn.h"
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define CALLERS     128u
#define PATIENCE_NS (10 * NS_S) /* time limit for a caller to authenticate */
#define CROWDED_NS  (1 * NS_S)  /* time limit while other callers wait */
#define PAUSE_NS    (100 * NS_MS)

struct caller {
    struct watch w;
    int fd;
    bool greeted; /* its HELLO was received */
    uint64_t since;
    size_t have;
    uint8_t hello[HELLO_BYTES], ack[HELLO_ACK_BYTES], proof[PROOF_BYTES];
    struct caller *next; /* the newest first */
};

static struct listener {
    struct watch w;
    int fd;
} listeners[FAB_NODE_ADDRS];
static unsigned nlisteners, ncallers;
static struct caller *callers;
static int spare = -1;  /* a descriptor that is closed if no other is free */
static uint64_t paused; /* no caller is accepted until then; 0: not paused */
static bool said_full, any_done;

/* --- callers --- */

static void greet_count_bad(void)
{
    port_count(fabric_port_index(&proc.fab, proc.fab.node, 0, 1), CNT_BAD_FRAMES, 1);
}

static void greet_watch_listeners(bool on)
{
    for (unsigned i = 0; i < nlisteners; i++)
        net_watch_change(listeners[i].fd, &listeners[i].w, on ? EPOLLIN : 0);
}

static void pause_listening_until(uint64_t when)
{
    if (!paused)
        greet_watch_listeners(false);
    paused = when;
    net_schedule_tick(when);
}

/* Marks a pending connection as closed; an event for it may still be in the batch that is being handled. */
static void greet_close_caller(struct caller *k)
{
    k->fd = -1;
    ncallers--;
    any_done = true;
}

static void greet_hang_up(struct caller *k)
{
    close(k->fd);
    greet_close_caller(k);
}

void greet_free_finished(void)
{
    if (LIKELY(!any_done))
        return;
    any_done = false;
    for (struct caller **p = &callers, *k; (k = *p);)
        if (k->fd < 0) {
            *p = k->next;
            free(k);
        } else {
            p = &k->next;
        }
}

/* True if the greeting is addressed to this process and its source is a valid process of another node. */
static bool greet_is_for_us(const struct frame *f, struct fab_place *from, struct fab_place *to)
{
    uint32_t slot = f->src_qpn >> QP_BITS;
    return fabric_find_lid(&proc.fab, f->dlid, to) && to->node == proc.fab.node &&
           f->dst_qpn >> QP_BITS == proc.slot && fabric_find_lid(&proc.fab, f->slid, from) &&
           from->node != proc.fab.node && slot && slot < MEMBERS;
}

static bool answer_hello(struct caller *k)
{
    struct frame h;
    struct fab_place from, to;
    if (!frame_decode(k->hello, net_fabric(), &h) || h.type != FRAME_HELLO ||
        !greet_is_for_us(&h, &from, &to))
        return false;
    greet_answer(k->hello, k->ack);
    return send(k->fd, k->ack, sizeof(k->ack), MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(k->ack);
}

static bool greet_is_proved(const struct caller *k)
{
    uint8_t want[PROOF_BYTES];
    greet_proof(k->hello, k->ack, want);
    return secret_equal(want, k->proof, sizeof(want));
}

static void greet_accept_caller(struct caller *k)
{
    struct frame h;
    struct fab_place from, to;
    frame_decode(k->hello, net_fabric(), &h);
    greet_is_for_us(&h, &from, &to);
    if (!conn_accepted(k->fd, from.node, h.src_qpn >> QP_BITS, to.linear, from.linear))
        close(k->fd);
    greet_close_caller(k);
}

static void greet_on_caller(struct watch *w, uint32_t ev)
{
    struct caller *k = CONTAINER_OF(w, struct caller, w);
    if (k->fd < 0)
        return;
    uint8_t *in = k->greeted ? k->proof : k->hello;
    size_t want = k->greeted ? sizeof(k->proof) : sizeof(k->hello);
    /* Reads only bytes of the handshake: the connection reads later ones. */
    ssize_t n = recv(k->fd, in + k->have, want - k->have, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR) && !(ev & (EPOLLERR | EPOLLHUP)))
        return;
    k->have += n > 0 ? (size_t)n : 0;
    if (n > 0 && k->have < want)
        return;
    bool good = n > 0 && (k->greeted ? greet_is_proved(k) : answer_hello(k));
    if (n > 0 && !good)
        greet_count_bad();
    if (!good) {
        greet_hang_up(k);
    } else if (k->greeted) {
        greet_accept_caller(k);
    } else {
        k->greeted = true;
        k->have = 0;
    }
}

/* Rejects a connection when no descriptor is left: accepts it with the spare descriptor and closes it.
 * Otherwise epoll would report it repeatedly. */
static void greet_reject_caller(int listen_fd)
{
    if (!said_full)
        softib_log("no file descriptor is left: connections from other nodes are refused. Raise the limit of "
                   "open files (ulimit -n)");
    said_full = true;
    close(spare);
    int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        close(fd);
    spare = eventfd(0, EFD_CLOEXEC);
    if (spare < 0)
        pause_listening_until(now_ns() + PAUSE_NS);
}

/* Makes sure that one more pending connection is within the limit: rejects the oldest one if its time
 * limit has passed. Returns false if that is not possible. */
static bool greet_make_room(uint64_t now)
{
    struct caller *oldest = NULL;
    if (ncallers < CALLERS)
        return true;
    for (struct caller *k = callers; k; k = k->next)
        oldest = k->fd < 0 ? oldest : k;
    if (now - oldest->since < CROWDED_NS)
        return false;
    greet_hang_up(oldest);
    return true;
}

static void greet_add_caller(int fd, uint64_t now)
{
    struct caller *k = calloc(1, sizeof(*k));
    if (!k) {
        close(fd);
        return;
    }
    *k = (struct caller){.w = {greet_on_caller}, .fd = fd, .since = now, .next = callers};
    callers = k;
    ncallers++;
    if (net_watch(fd, &k->w, EPOLLIN))
        net_schedule_tick(now + PATIENCE_NS);
    else
        greet_hang_up(k);
}

static void greet_on_listen(struct watch *w, uint32_t ev)
{
    struct listener *l = CONTAINER_OF(w, struct listener, w);
    uint64_t now = now_ns();
    (void)ev;
    for (int i = 0; i < 64 && !paused; i++) {
        if (!greet_make_room(now)) {
            pause_listening_until(now + PAUSE_NS);
            return;
        }
        int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            greet_add_caller(fd, now);
        else if (errno == EMFILE || errno == ENFILE)
            greet_reject_caller(l->fd);
        else if (errno != ECONNABORTED && errno != EINTR)
            return;
    }
}

void greet_tick(uint64_t now)
{
    for (struct caller *k = callers; k; k = k->next) {
        if (k->fd < 0)
            continue;
        if (now - k->since >= PATIENCE_NS)
            greet_hang_up(k);
        else
            net_schedule_tick(k->since + PATIENCE_NS);
    }
    if (paused && now >= paused) {
        paused = 0;
        if (spare < 0)
            spare = eventfd(0, EFD_CLOEXEC);
        greet_watch_listeners(true);
    } else if (paused) {
        net_schedule_tick(paused);
    }
}

/* --- sockets --- */

static int greet_listen_on(struct in_addr addr, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = addr};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (!bind(fd, (struct sockaddr *)&a, sizeof(a)) && !listen(fd, 128))
        return fd;
    int e = errno;
    close(fd);
    errno = e;
    return -1;
}

bool greet_listen(uint16_t port)
{
    struct in_addr addrs[FAB_NODE_ADDRS];
    unsigned n = fabric_addrs(&proc.fab, proc.fab.node, addrs);
    nlisteners = 0;
    for (unsigned i = 0; i < n; i++) {
        int fd = greet_listen_on(addrs[i], port);
        if (fd >= 0) {
            listeners[nlisteners++] = (struct listener){{greet_on_listen}, fd};
        } else if (errno != EADDRNOTAVAIL) {
            greet_reset_after_fork();
            return false;
        }
    }
    static bool said; /* the message is printed once, although greet_listen is called for every slot */
    if (!nlisteners && !said)
        softib_log("none of the addresses of node%u (addr= in SOFTIB_FABRIC) belongs to this machine",
                   proc.fab.node);
    said |= !nlisteners;
    return nlisteners;
}

bool greet_start(void)
{
    spare = eventfd(0, EFD_CLOEXEC);
    bool ok = spare >= 0;
    for (unsigned i = 0; ok && i < nlisteners; i++)
        ok = net_watch(listeners[i].fd, &listeners[i].w, EPOLLIN);
    return ok;
}

void greet_reset_after_fork(void)
{
    for (unsigned i = 0; i < nlisteners; i++)
        close(listeners[i].fd);
    nlisteners = 0;
    /* Callers are not freed: in the parent another thread may have held the allocator's lock. */
    for (struct caller *k = callers; k; k = k->next)
        if (k->fd >= 0)
            close(k->fd);
    callers = NULL;
    ncallers = 0;
    paused = 0;
    if (spare >= 0)
        close(spare);
    spare = -1;
}
