/*
 * Joining and leaving the fabric of this machine. Nothing has a name in a file system: every member
 * binds an abstract socket whose name says its pid and the descriptor of its registry memfd, and a
 * newcomer finds the others in /proc/net/unix and opens the memfd through /proc. When the last process
 * dies, by whatever means, all of it is gone. The same socket is the member's doorbell.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "proc.h"
#include "engine.h"
#include "registry.h"
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <sched.h>

struct proc proc = {.peers_lock = PTHREAD_MUTEX_INITIALIZER};
unsigned shlock_self;

static pthread_mutex_t join_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool joined;

void say(const char *fmt, ...)
{
    const char *v = getenv("SOFTIB_LOG");
    if (v && !strcmp(v, "0"))
        return;
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    fprintf(stderr, "softib: %s\n", line);
}

void spin_wait(unsigned *turn)
{
    if (++*turn % 64)
        cpu_relax();
    else
        sched_yield();
}

void shlock_take_slow(struct shlock *l)
{
    unsigned turn = 0;
    for (;;) {
        unsigned owner = atomic_load_explicit(&l->owner, memory_order_relaxed);
        /* Looking whether the owner lives costs system calls: rarely, and never for ourselves. */
        bool free = !owner || (turn % 65536 == 65535 && owner != shlock_self && !member_alive(owner));
        if (free && atomic_compare_exchange_strong_explicit(&l->owner, &owner, shlock_self,
                                                            memory_order_acquire, memory_order_relaxed))
            return;
        spin_wait(&turn);
    }
}

static int bind_name(const struct sockaddr_un *a, socklen_t len)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)a, len)) {
        int e = errno;
        close(fd);
        errno = e;
        return -1;
    }
    return fd;
}

static uint64_t process_born(pid_t pid)
{
    char path[64], buf[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, buf, sizeof(buf) - 1);
    close(fd);
    buf[n > 0 ? n : 0] = 0;
    char *p = strrchr(buf, ')'); /* the name before it may hold anything */
    unsigned long long born = 0;
    if (p)
        sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &born);
    return born;
}

/* A pidfd of the process born then; -1 when it is gone (a zombie is gone). */
static int process_watch(pid_t pid, uint64_t born)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return -1;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, 0) == 1 || process_born(pid) != born) {
        close(fd);
        return -1;
    }
    return fd;
}

bool member_alive(uint32_t slot)
{
    struct reg_member *m = &proc.reg->member[slot];
    if (!atomic_load(&m->live))
        return false;
    int fd = process_watch(m->pid, m->born);
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE;
    close(fd);
    return true;
}

static int registry_create(void)
{
    int fd = memfd_create("softib-registry", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, sizeof(struct registry)))
        return -1;
    struct registry *r = registry_map(fd);
    if (!r)
        return -1;
    r->bytes = sizeof(*r);
    r->fabric_id = proc.fab.id;
    r->began = now_ns();
    for (uint32_t i = 0; i < proc.fab.nports; i++)
        atomic_store(&r->port[i].up, proc.fab.port[i].down_at != 0);
    softib_switch_init(&r->sw, SOFTIB_SWITCH_PORTS);
    r->magic = SHM_MAGIC;
    munmap(r, sizeof(*r));
    return fd;
}

static bool arena_create(void)
{
    proc.arena_fd = memfd_create("softib-arena", MFD_CLOEXEC);
    if (proc.arena_fd < 0 || ftruncate(proc.arena_fd, ARENA_BYTES))
        return false;
    void *m = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, proc.arena_fd, 0);
    if (m == MAP_FAILED)
        return false;
    proc.arena = m;
    return true;
}

/* Under the join lock. Slots of the dead are free; wire (b) may find a slot's port number taken. */
static bool slot_claim(void)
{
    for (uint32_t s = 1; s < MEMBERS; s++) {
        struct reg_member *m = &proc.reg->member[s];
        if (atomic_load(&m->live) && member_alive(s))
            continue;
        if (!engine_listen(s))
            continue;
        atomic_store(&m->live, 0);
        atomic_fetch_add(&m->gen, 1);
        m->pid = proc.pid;
        m->arena_fd = proc.arena_fd;
        m->reg_fd = proc.reg_fd;
        m->born = process_born(proc.pid);
        m->node = proc.fab.node;
        atomic_store(&m->rung, 0);
        proc.slot = shlock_self = s;
        proc.arena->slot = s;
        proc.arena->magic = SHM_MAGIC;
        return true;
    }
    return false;
}

static int join_lock_take(void)
{
    struct sockaddr_un a;
    socklen_t len = abstract_name(&a, "softib/%016llx/lock", (unsigned long long)proc.key);
    int fd;
    while ((fd = bind_name(&a, len)) < 0 && errno == EADDRINUSE) {
        struct timespec ms = {0, 300000};
        nanosleep(&ms, NULL);
    }
    return fd;
}

static bool read_fabric(void)
{
    char err[512];
    char *text = fabric_text(err, sizeof(err));
    bool ok = text && fabric_parse(text, &proc.fab, err, sizeof(err));
    free(text);
    const char *node = getenv("SOFTIB_NODE");
    if (ok && node) {
        char *end;
        const char *digits = strncmp(node, "node", 4) ? node : node + 4;
        proc.fab.node = (uint32_t)strtoul(digits, &end, 10);
        if (end == digits || *end || proc.fab.node >= proc.fab.nodes) {
            snprintf(err, sizeof(err),
                     "SOFTIB_NODE=%s: the fabric has nodes 0 to %u (nodes= in SOFTIB_FABRIC)", node,
                     proc.fab.nodes - 1);
            ok = false;
        }
    }
    if (!ok)
        say("%s", err);
    return ok;
}

bool proc_fabric(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int state; /* 0 unread, 1 good, -1 bad */
    pthread_mutex_lock(&lock);
    if (!state)
        state = read_fabric() ? 1 : -1;
    pthread_mutex_unlock(&lock);
    return state > 0;
}

static bool self_peer(void)
{
    struct peer *p = calloc(1, sizeof(*p));
    if (!p)
        return false;
    p->slot = proc.slot;
    p->gen = atomic_load(&proc.reg->member[proc.slot].gen);
    p->pid = proc.pid;
    p->pidfd = -1;
    p->self = true;
    p->arena = proc.arena;
    atomic_store(&p->refs, 1);
    proc.self = proc.peers[proc.slot] = p;
    return true;
}

static bool join_locked(void)
{
    struct sockaddr_un a;
    proc.reg_fd = registry_find(proc.key);
    if (proc.reg_fd < 0)
        proc.reg_fd = registry_create();
    if (proc.reg_fd < 0 || !(proc.reg = registry_map(proc.reg_fd)) || !arena_create() || !slot_claim())
        return false;
    socklen_t len = bell_name(&a, proc.key, &proc.reg->member[proc.slot]);
    proc.bell_fd = bind_name(&a, len);
    proc.ring_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (proc.bell_fd < 0 || proc.ring_fd < 0 || !self_peer())
        return false;
    atomic_store(&proc.reg->member[proc.slot].live, 1);
    return true;
}

/* A child has the memory and the descriptors but not the threads: it is nobody until it joins itself. */
static void forget_after_fork(void)
{
    if (!atomic_load(&joined))
        return;
    atomic_store(&joined, false);
    close(proc.bell_fd);
    close(proc.ring_fd);
    close(proc.arena_fd);
    close(proc.reg_fd);
    engine_forget();
    memset(proc.peers, 0, sizeof(proc.peers));
    pthread_mutex_init(&proc.peers_lock, NULL);
    pthread_mutex_init(&join_lock, NULL);
}

bool proc_joined(void)
{
    return atomic_load(&joined) && proc.pid == getpid();
}

bool proc_join(void)
{
    static atomic_flag hooked = ATOMIC_FLAG_INIT;
    if (!proc_fabric())
        return false;
    pthread_mutex_lock(&join_lock);
    bool ok = atomic_load(&joined);
    if (!ok) {
        proc.pid = getpid();
        proc.key = registry_key(&proc.fab);
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        int lock = join_lock_take();
        ok = lock >= 0 && join_locked() && engine_start();
        if (!ok)
            say("cannot join the fabric \"%s\": %s", proc.fab.name, strerror(errno));
        if (lock >= 0)
            close(lock);
        if (!atomic_flag_test_and_set(&hooked))
            pthread_atfork(NULL, NULL, forget_after_fork);
        atomic_store(&joined, ok);
    }
    pthread_mutex_unlock(&join_lock);
    return ok;
}

__attribute__((destructor)) static void leave(void)
{
    if (!proc_joined())
        return;
    atomic_store(&proc.reg->member[proc.slot].live, 0);
}

void member_ring(uint32_t slot)
{
    struct reg_member *m = &proc.reg->member[slot];
    if (atomic_exchange(&m->rung, 1))
        return;
    struct sockaddr_un a;
    socklen_t len = bell_name(&a, proc.key, m);
    char token = 1;
    sendto(proc.ring_fd, &token, 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&a, len);
}

static socklen_t chan_name(struct sockaddr_un *a, uint32_t slot, uint32_t chan)
{
    return abstract_name(a, "softib/%016llx/c%u.%u.%u", (unsigned long long)proc.key, slot,
                         atomic_load(&proc.reg->member[slot].gen), chan);
}

int chan_open(uint32_t chan)
{
    struct sockaddr_un a;
    socklen_t len = chan_name(&a, proc.slot, chan);
    int fd = bind_name(&a, len);
    if (fd >= 0)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK); /* the program decides */
    return fd;
}

void chan_ring(uint32_t slot, uint32_t chan)
{
    struct sockaddr_un a;
    socklen_t len = chan_name(&a, slot, chan);
    char token = 1;
    /* A full queue is as good as success: there is a token in it. */
    sendto(proc.ring_fd, &token, 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&a, len);
}

static bool peer_attach(struct peer *p)
{
    struct reg_member *m = &proc.reg->member[p->slot];
    char path[64];
    p->gen = atomic_load(&m->gen);
    p->pid = m->pid;
    if (!atomic_load(&m->live) || (p->pidfd = process_watch(m->pid, m->born)) < 0)
        return false;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", m->pid, m->arena_fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *a = fd < 0 ? MAP_FAILED
                     : mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (a == MAP_FAILED) {
        close(p->pidfd);
        return false;
    }
    p->arena = a;
    if (p->arena->magic == SHM_MAGIC && p->arena->slot == p->slot && atomic_load(&m->gen) == p->gen) {
        engine_watch_peer(p);
        return true;
    }
    munmap(a, ARENA_BYTES);
    close(p->pidfd);
    return false;
}

void peer_put(struct peer *p)
{
    if (!p || atomic_fetch_sub(&p->refs, 1) != 1)
        return;
    for (int i = 0; i < MR_MAPS; i++)
        for (struct mr_map *m = p->maps[i], *next; m; m = next) {
            next = m->next;
            if (m->map)
                munmap(m->map, m->map_len);
            free(m);
        }
    munmap(p->arena, ARENA_BYTES);
    close(p->pidfd);
    free(p);
}

static bool peer_current(const struct peer *p)
{
    const struct reg_member *m = &proc.reg->member[p->slot];
    return !atomic_load(&p->dead) && atomic_load(&m->gen) == p->gen && atomic_load(&m->live);
}

struct peer *peer_get(uint32_t slot)
{
    if (slot < 1 || slot >= MEMBERS)
        return NULL;
    pthread_mutex_lock(&proc.peers_lock);
    struct peer *p = proc.peers[slot];
    if (p && !p->self && !peer_current(p)) {
        proc.peers[slot] = NULL;
        peer_put(p);
        p = NULL;
    }
    if (!p && (p = calloc(1, sizeof(*p)))) {
        p->slot = slot;
        atomic_store(&p->refs, 1); /* the table's; whoever watches it adds its own */
        if (peer_attach(p)) {
            proc.peers[slot] = p;
        } else {
            free(p);
            p = NULL;
        }
    }
    if (p)
        atomic_fetch_add(&p->refs, 1);
    pthread_mutex_unlock(&proc.peers_lock);
    return p;
}

void peer_event(struct peer *p, enum sh_event_kind kind, uint32_t index, uint32_t detail)
{
    struct arena *a = p->arena;
    shlock_take(&a->ev_lock);
    uint64_t t = atomic_load(&a->ev_tail);
    if (t - atomic_load(&a->ev_head) < EVENTS) {
        a->event[t % EVENTS] = (struct sh_event){kind, index, detail};
        atomic_store(&a->ev_tail, t + 1);
    }
    shlock_drop(&a->ev_lock);
    member_ring(p->slot);
}
