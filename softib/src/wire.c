/*
 * The sockets of wire (b): listening, connecting, sending and receiving frames. A polling program and
 * the engine thread drive the same code; whoever holds the lock drains.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conn.h"
#include "copy.h"
#include "dma.h"
#include "udp.h"
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BURST_NS (500 * NS_US)

atomic_bool wire_active;
struct conn *conns;
static pthread_mutex_t mutex; /* recursive: the engine holds it around all its work */
static _Atomic uint64_t drains;
static struct conn *hot; /* where the last frame came from: a poller looks there first */
static bool any_broken;
static unsigned lazy; /* connections with an acknowledgement that waits */
static int listen_fd = -1, set_fd = -1;
static struct watch listen_watch, set_watch;

void wire_lock(void)
{
    pthread_mutex_lock(&mutex);
}

bool wire_try_lock(void)
{
    return !pthread_mutex_trylock(&mutex);
}

void wire_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

uint32_t wire_fabric(void)
{
    return (uint32_t)proc.fab.id;
}

bool wire_listen(uint32_t slot)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)(proc.fab.base_of[proc.fab.node] + slot)),
                            .sin_addr = fabric_bind_addr(&proc.fab, proc.fab.node)};
    int one = 1;
    listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listen_fd < 0)
        return false;
    setsockopt(listen_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (!bind(listen_fd, (struct sockaddr *)&a, sizeof(a)) && !listen(listen_fd, 128) && udp_bind(&a))
        return true;
    if (errno == EADDRNOTAVAIL)
        say("this machine does not have the address of node%u (addr= in SOFTIB_FABRIC)", proc.fab.node);
    close(listen_fd);
    listen_fd = -1;
    return false;
}

bool wire_watch(int fd, struct watch *w, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = w};
    return !epoll_ctl(set_fd, EPOLL_CTL_ADD, fd, &e);
}

void wire_watch_again(int fd, struct watch *w, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = w};
    epoll_ctl(set_fd, EPOLL_CTL_MOD, fd, &e);
}

static void watch_for(struct conn *c)
{
    wire_watch_again(c->fd, &c->w, (c->rx_pause ? 0 : EPOLLIN) | (c->want_out ? EPOLLOUT : 0));
}

static void watch_out(struct conn *c, bool on)
{
    if (c->want_out == on)
        return;
    c->want_out = on;
    watch_for(c);
}

static void frame_gone(struct conn *c)
{
    c->out_n = c->out_at = 0;
    c->out_q = NULL;
    free(c->out_copy);
    c->out_copy = NULL;
    if (c->out_mr)
        atomic_fetch_sub(&c->out_mr->users, 1);
    c->out_mr = NULL;
}

static void conn_free(struct conn *c)
{
    for (struct conn **p = &conns; *p; p = &(*p)->next)
        if (*p == c) {
            *p = c->next;
            break;
        }
    remote_lost(c);
    if (hot == c)
        hot = NULL;
    reach_end(c);
    if (c->fd >= 0)
        close(c->fd);
    frame_gone(c);
    free(c->ctrl);
    free(c->ctrl_out);
    lazy -= c->ack_lazy;
    free(c);
}

void conn_break(struct conn *c)
{
    c->broken = any_broken = true;
}

/* Connections are only marked while they are in use; here nobody uses one. */
static void bury(void)
{
    if (LIKELY(!any_broken))
        return;
    any_broken = false;
    for (struct conn *c = conns, *next; c; c = next) {
        next = c->next;
        if (c->broken)
            conn_free(c);
    }
}

static bool read_some(struct conn *c, void *buf, size_t n, size_t *got)
{
    dma_begin(); /* `buf` may be the program's */
    ssize_t r = recv(c->fd, buf, n, MSG_DONTWAIT);
    dma_end();
    *got = r > 0 ? (size_t)r : 0;
    if (r > 0)
        return true;
    if (r == 0 || (errno != EAGAIN && errno != EINTR))
        conn_break(c);
    return false;
}

/* Bytes into the sink; `last` says that the final one of a message is among them and is to be stored last. */
static void sink_put(struct sink *s, const uint8_t *p, size_t n, bool last)
{
    while (n) {
        size_t step = n;
        if (s->kind == SINK_SMALL) {
            memcpy(s->small + s->small_have, p, n);
            s->small_have += (uint32_t)n;
        } else if (s->kind != SINK_DROP) {
            struct iovec *v = &s->iov[s->at];
            step = n < v->iov_len ? n : v->iov_len;
            if (last && step == n)
                copy_last_last(v->iov_base, (const char *)p, step);
            else {
                dma_begin();
                memcpy(v->iov_base, p, step);
                dma_end();
            }
            v->iov_base = (char *)v->iov_base + step;
            v->iov_len -= step;
            s->at += !v->iov_len;
        }
        p += step;
        n -= step;
    }
}

/* The bulk of a large payload goes straight to its place; its very last byte comes through the buffer. */
static bool read_direct(struct conn *c)
{
    size_t want = c->in_left - 1, got;
    struct sink *s = &c->sink;
    if (s->kind == SINK_DROP || s->kind == SINK_SMALL || want < 4096)
        return false;
    struct iovec *v = &s->iov[s->at];
    if (!v->iov_len || !read_some(c, v->iov_base, v->iov_len < want ? v->iov_len : want, &got))
        return false;
    v->iov_base = (char *)v->iov_base + got;
    v->iov_len -= got;
    s->at += !v->iov_len;
    c->in_left -= (uint32_t)got;
    return true;
}

static void take_payload(struct conn *c)
{
    size_t n = c->rx_end - c->rx_at;
    n = n < c->in_left ? n : c->in_left;
    bool last = n == c->in_left && c->in.offset + c->in.length == c->in.total;
    sink_put(&c->sink, c->rx + c->rx_at, n, last);
    c->rx_at += n;
    c->in_left -= (uint32_t)n;
}

static bool for_tcp(uint8_t type)
{
    return type != FRAME_DATAGRAM_DATA && type != FRAME_SWITCH;
}

/* Who connects asks first whether we are the one it wants. */
static void on_hello(struct conn *c)
{
    struct frame reply;
    if (reach_answer(&c->in, &reply))
        conn_reply(c, &reply, NULL);
    else
        conn_break(c);
}

/* One step over what is buffered. False: more bytes are needed. */
static bool parse(struct conn *c)
{
    if (!c->in_payload) {
        if (c->rx_end - c->rx_at < FRAME_BYTES)
            return false;
        if (!frame_decode(c->rx + c->rx_at, wire_fabric(), &c->in) || !for_tcp(c->in.type)) {
            port_count(fabric_linear(&proc.fab, proc.fab.node, 0, 1), CNT_BAD_FRAMES, 1);
            conn_break(c);
            return false;
        }
        c->rx_at += FRAME_BYTES;
        c->in_payload = true;
        c->in_left = c->in.length;
        c->sink.kind = SINK_DROP;
        c->sink.n = c->sink.at = 0;
        c->sink.small_have = 0;
        if (c->in.type == FRAME_HELLO)
            on_hello(c);
        else if (c->in.type == FRAME_HELLO_ACK)
            c->pong = c->in.seq;
        else
            remote_frame(c);
    }
    if (c->in_left && c->rx_at == c->rx_end)
        return false;
    take_payload(c);
    if (c->in_left)
        return false;
    c->in_payload = false;
    remote_payload(c);
    return true;
}

void conn_drop_ack(struct conn *c)
{
    c->ack_q = NULL;
    lazy -= c->ack_lazy;
    c->ack_lazy = false;
}

void conn_flush_ack(struct conn *c)
{
    /* On the connection our own requests to that peer take: there it stays ahead of the program's answer, as
     * an acknowledgement does on InfiniBand. */
    struct remote *r = c->ack_q ? c->ack_q->remote : NULL;
    struct conn *with = r && r->conn && !r->conn->broken && !r->conn->connecting ? r->conn : c;
    bool some = c->ack_q != NULL;
    if (some)
        conn_reply(with, &c->ack, NULL);
    conn_drop_ack(c);
    if (some && with != c)
        conn_send(with);
}

static void parse_all(struct conn *c)
{
    while (!c->broken && !c->rx_pause && parse(c))
        hot = c;
}

static void receive(struct conn *c)
{
    /* Bounded: one busy connection must not keep the lock from the others. What was read is parsed before we
     * leave, since no event will tell of it again; only the port's rate stops that, and has a timer. */
    for (int rounds = 0; rounds < 64 && !c->broken && !c->rx_pause; rounds++) {
        size_t got;
        if (c->in_payload && c->rx_at == c->rx_end && read_direct(c))
            continue;
        memmove(c->rx, c->rx + c->rx_at, c->rx_end - c->rx_at);
        c->rx_end -= c->rx_at;
        c->rx_at = 0;
        if (c->broken || !read_some(c, c->rx + c->rx_end, CONN_BUFFER - c->rx_end, &got))
            break;
        c->rx_end += got;
        bool drained = c->rx_end < CONN_BUFFER;
        parse_all(c);
        if (drained && !c->in_payload)
            break; /* the socket had no more */
    }
    /* A polling program is about to see the message and will poll or answer at once: the acknowledgement can
     * wait for that, and often leaves with the answer. */
    if (c->ack_q && !c->ack_lazy && engine_aside() && !c->ctrl_len && !c->jobs) {
        c->ack_lazy = true;
        lazy++;
    } else if (!c->ack_lazy) {
        conn_flush_ack(c);
    }
    if (!c->broken && (c->ctrl_len || c->jobs || c->active))
        conn_send(c);
}

static void on_conn(struct watch *w, uint32_t ev)
{
    struct conn *c = CONTAINER_OF(w, struct conn, w);
    if (c->broken)
        return;
    if (c->rx_pause && ev & (EPOLLERR | EPOLLHUP)) {
        conn_break(c); /* it would be told again and again until the pause is over */
        return;
    }
    if (ev & (EPOLLIN | EPOLLERR | EPOLLHUP))
        receive(c);
    if (!c->broken && ev & EPOLLOUT)
        conn_send(c);
}

static struct conn *conn_make(void)
{
    struct conn *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->w.ready = on_conn;
    c->fd = -1;
    c->next = conns;
    conns = c;
    return c;
}

static void conn_adopt(struct conn *c, int fd)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    c->fd = fd;
}

struct conn *conn_open(uint32_t node, uint32_t slot, uint32_t linear, uint32_t to)
{
    for (struct conn *c = conns; c; c = c->next)
        if (c->outgoing && !c->broken && c->slot == slot && c->linear == linear && c->to == to)
            return c;
    struct conn *c = conn_make();
    if (!c)
        return NULL;
    c->outgoing = c->connecting = true;
    c->node = node;
    c->slot = slot;
    c->linear = linear;
    c->to = to;
    return reach_begin(c) ? c : NULL;
}

void conn_reached(struct conn *c, int fd)
{
    c->connecting = false;
    conn_adopt(c, fd);
    watch_for(c); /* its events were the attempt's until now */
    conn_send(c);
}

/* A token bucket that holds half a millisecond, so that a late wake-up costs nothing. */
uint64_t port_book(_Atomic uint64_t *free_at, uint64_t rate, uint64_t bytes, uint64_t now)
{
    uint64_t need = (uint64_t)((__uint128_t)bytes * NS_S / rate), old = atomic_load(free_at), end;
    do
        end = max_u64(old, now > BURST_NS ? now - BURST_NS : 0) + need;
    while (!atomic_compare_exchange_weak(free_at, &old, end));
    return end > now + BURST_NS ? end - BURST_NS / 2 : 0;
}

void conn_received(struct conn *c, uint32_t linear, uint32_t bytes)
{
    uint64_t rate = proc.fab.port[linear].rate;
    if (!rate)
        return;
    uint64_t wait = port_book(&proc.reg->port[linear].rx_free, rate, bytes, now_ns());
    if (!wait)
        return;
    c->rx_pause = max_u64(c->rx_pause, wait);
    watch_for(c);
    engine_tick_at(c->rx_pause);
}

void wire_tick(uint64_t now)
{
    for (struct conn *c = conns; c; c = c->next) {
        if (c->broken)
            continue;
        if (c->connecting)
            reach_tick(c, now);
        if (c->rx_pause > now)
            engine_tick_at(c->rx_pause);
        else if (c->rx_pause) {
            c->rx_pause = 0;
            watch_for(c);
            parse_all(c);
            receive(c);
        }
        if (c->tx_pause > now)
            engine_tick_at(c->tx_pause);
        else if (c->tx_pause) {
            c->tx_pause = 0;
            conn_send(c);
        }
    }
    barrier_tick(now);
    udp_tick();
    bury();
}

uint32_t conn_ask(struct conn *c)
{
    struct frame f;
    c->ping = (c->ping + 1) & 0xffffffu;
    c->ping += !c->ping;
    reach_hello(c, &f);
    f.seq = c->ping;
    conn_reply(c, &f, NULL);
    conn_send(c);
    return c->ping;
}

static void conn_accept(int fd)
{
    struct conn *c = conn_make();
    if (!c) {
        close(fd);
        return;
    }
    conn_adopt(c, fd);
    if (!wire_watch(fd, &c->w, EPOLLIN))
        conn_break(c);
}

static void on_listen(struct watch *w, uint32_t ev)
{
    (void)w, (void)ev;
    for (int fd; (fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;)
        conn_accept(fd);
}

void conn_reply(struct conn *c, const struct frame *f, const void *payload)
{
    size_t need = FRAME_BYTES + f->length;
    if (c->ctrl_len + need > c->ctrl_cap) {
        size_t cap = (c->ctrl_cap + need) * 2;
        char *p = realloc(c->ctrl, cap);
        if (!p) {
            conn_break(c);
            return;
        }
        c->ctrl = p;
        c->ctrl_cap = cap;
    }
    frame_encode(f, wire_fabric(), (uint8_t *)c->ctrl + c->ctrl_len);
    if (payload)
        memcpy(c->ctrl + c->ctrl_len + FRAME_BYTES, payload, f->length);
    c->ctrl_len += need;
}

void conn_activate(struct conn *c, struct remote *r)
{
    if (r->active)
        return;
    r->active = true;
    r->active_next = NULL;
    if (c->active)
        c->active_last->active_next = r;
    else
        c->active = r;
    c->active_last = r;
}

static bool next_job(struct conn *c)
{
    struct read_job *j = c->jobs;
    if (!j)
        return false;
    struct frame f = j->head;
    f.offset = j->off;
    f.length = f.total - j->off < FRAME_SEGMENT ? f.total - j->off : FRAME_SEGMENT;
    uint64_t rate = proc.fab.port[j->q->linear].rate;
    if (c->tx_pause)
        return false;
    if (rate && (c->tx_pause = port_book(&proc.reg->port[j->q->linear].tx_free, rate, f.length, now_ns())))
        engine_tick_at(c->tx_pause); /* this piece may go: the bucket was not empty before it */
    frame_encode(&f, wire_fabric(), c->head);
    c->out[c->out_n++] = (struct iovec){c->head, FRAME_BYTES};
    if (f.length)
        c->out[c->out_n++] = (struct iovec){j->src.map + j->off, f.length};
    c->out_q = j->q;
    j->off += f.length;
    if (j->off == f.total) {
        c->jobs = j->next;
        c->out_mr = j->src.mr;
        free(j);
    }
    return true;
}

/* Requests of the QPs take turns, a piece each. */
static bool next_request(struct conn *c)
{
    struct remote *r;
    while ((r = c->active)) {
        c->active = r->active_next;
        r->active = false;
        if (!remote_segment(r, c))
            continue;
        conn_activate(c, r);
        return true;
    }
    return false;
}

static bool write_out(struct conn *c, struct iovec *iov, int n, size_t *done)
{
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = (size_t)n};
    dma_begin();
    ssize_t r = sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    dma_end();
    *done = r > 0 ? (size_t)r : 0;
    if (r < 0 && errno != EAGAIN && errno != EINTR)
        conn_break(c);
    return r >= 0;
}

/* The frame in c->out, as far as the socket takes it. */
static bool push_frame(struct conn *c)
{
    while (c->out_at < c->out_n) {
        size_t done;
        if (!write_out(c, &c->out[c->out_at], c->out_n - c->out_at, &done))
            return false;
        while (done) {
            struct iovec *v = &c->out[c->out_at];
            size_t step = done < v->iov_len ? done : v->iov_len;
            v->iov_base = (char *)v->iov_base + step;
            v->iov_len -= step;
            done -= step;
            c->out_at += !v->iov_len;
        }
    }
    frame_gone(c);
    return true;
}

/* The waiting small frames become the beginning of the next message. */
static void take_ctrl(struct conn *c)
{
    if (!c->ctrl_len)
        return;
    char *p = c->ctrl;
    size_t cap = c->ctrl_cap;
    c->ctrl = c->ctrl_out;
    c->ctrl_cap = c->ctrl_out_cap;
    c->ctrl_out = p;
    c->ctrl_out_cap = cap;
    c->out[c->out_n++] = (struct iovec){p, c->ctrl_len};
    c->ctrl_len = 0;
}

void conn_send(struct conn *c)
{
    if (c->connecting || c->broken)
        return;
    while (push_frame(c)) {
        /* Answers keep the order of their requests: READ data first, then what was acknowledged after it. */
        if (!c->jobs)
            take_ctrl(c);
        if (!next_job(c))
            next_request(c);
        if (!c->out_n) {
            watch_out(c, false);
            return;
        }
    }
    if (!c->broken)
        watch_out(c, true);
}

static void flush_lazy(void)
{
    for (struct conn *c = lazy ? conns : NULL; c; c = c->next) {
        if (!c->ack_lazy)
            continue;
        conn_flush_ack(c);
        conn_send(c);
    }
}

void wire_join_ack(struct qp *q, struct conn *with)
{
    for (struct conn *c = lazy ? conns : NULL; c; c = c->next)
        if (c->ack_lazy && c->ack_q == q) {
            conn_reply(with, &c->ack, NULL);
            c->ack_q = NULL;
            c->ack_lazy = false;
            lazy--;
        }
}

void wire_flush(void)
{
    if (lazy)
        flush_lazy();
}

void wire_poll(void)
{
    struct epoll_event ev[16];
    wire_flush();
    int n = epoll_wait(set_fd, ev, ARRAY_LEN(ev), 0);
    if (n > 0)
        atomic_fetch_add_explicit(&drains, 1, memory_order_relaxed);
    for (int i = 0; i < n; i++) {
        struct watch *w = ev[i].data.ptr;
        w->ready(w, ev[i].events);
    }
    bury();
}

/* A frame mostly comes from where the last one came from: one read instead of asking for all sockets first.
 */
void wire_peek(void)
{
    static unsigned turn;
    if (!hot || hot->broken || ++turn % 4 == 0) {
        wire_poll();
        return;
    }
    struct conn *c = hot;
    wire_flush();
    hot = NULL;
    receive(c);
    if (hot)
        atomic_fetch_add_explicit(&drains, 1, memory_order_relaxed);
    else if (!c->broken)
        hot = c;
    if (c->broken)
        bury();
}

static void on_set(struct watch *w, uint32_t ev)
{
    (void)w, (void)ev;
    wire_poll();
    wire_flush();
}

uint64_t wire_drains(void)
{
    return atomic_load_explicit(&drains, memory_order_relaxed);
}

bool wire_pending(void)
{
    struct pollfd p = {.fd = set_fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

void wire_attend(bool on)
{
    engine_mod(set_fd, &set_watch, on ? EPOLLIN : 0);
}

bool wire_start(void)
{
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex, &a);
    pthread_mutexattr_destroy(&a);
    set_fd = epoll_create1(EPOLL_CLOEXEC);
    listen_watch.ready = on_listen;
    set_watch.ready = on_set;
    conns = NULL;
    bool ok = set_fd >= 0 && wire_watch(listen_fd, &listen_watch, EPOLLIN) && udp_start() &&
              engine_add(set_fd, &set_watch, EPOLLIN);
    atomic_store(&wire_active, ok);
    return ok;
}

void wire_forget(void)
{
    if (!atomic_load(&wire_active))
        return;
    atomic_store(&wire_active, false);
    for (struct conn *c = conns; c; c = c->next) {
        reach_end(c);
        if (c->fd >= 0)
            close(c->fd);
    }
    close(set_fd);
    close(listen_fd);
    udp_forget();
}
