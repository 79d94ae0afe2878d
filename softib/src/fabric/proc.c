/* proc.c: joins and leaves the fabric of this machine. No file has a name in a file system. Every member
 * binds an abstract socket whose name contains its process id and the descriptor of its registry memfd; a
 * new member finds the others in /proc/net/unix and opens the memfd through /proc. The kernel frees
 * everything when the last process ends, also if it is killed. The same socket is the member's doorbell.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/proc.h"
#include "base/slab.h"
#include "fabric/gid.h"
#include "fabric/joinlock.h"
#include "fabric/registry.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

static pthread_mutex_t join_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool joined;
static const struct machine *machine;

static int registry_create(void)
{
    int fd = shared_create("softib-registry", sizeof(struct registry));
    if (fd < 0)
        return -1;
    struct registry *r = registry_map(fd);
    if (!r)
        return -1;
    r->bytes = sizeof(*r);
    r->key = proc.key;
    r->began = now_ns();
    for (uint32_t i = 0; i < proc.fab.nports; i++)
        atomic_store(&r->port[i].up, proc.fab.port[i].down_at != 0);
    softib_switch_init(&r->sw, SOFTIB_SWITCH_PORTS);
    for (uint32_t i = 0; proc.fab.switches > 1 && i < proc.fab.switches; i++)
        softib_leaf_init(&r->leaf[i], SOFTIB_SWITCH_PORTS, (uint16_t)i);
    r->magic = SHM_MAGIC;
    munmap(r, sizeof(*r));
    return fd;
}

/* Creates the arena's file with its full length; unused parts take no memory. If the address space is
 * limited, a smaller part is mapped, in which fewer queues fit. */
static bool arena_create(void)
{
    proc.arena_fd = shared_create("softib-arena", ARENA_BYTES);
    if (proc.arena_fd < 0)
        return false;
    for (proc.arena_bytes = ARENA_BYTES; proc.arena_bytes >= ARENA_FIRST; proc.arena_bytes /= 2) {
        void *m = mmap(NULL, proc.arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                       proc.arena_fd, 0);
        if (m == MAP_FAILED)
            continue;
        proc.arena = m;
        atomic_store(&proc.arena->top, ARENA_FIRST);
        return true;
    }
    return false;
}

/* Claims a free slot, or the slot of a dead member, under the join lock. Slots whose network port is in
 * use are skipped. */
static bool claim_member_slot(void)
{
    const uint64_t born = process_read_start_time(proc.pid);
    if (!born) /* others could confuse this process with a later one, or with a zombie */
        return false;
    for (uint32_t s = 1; s < MEMBERS; s++) {
        struct reg_member *m = &proc.reg->member[s];
        if (atomic_load(&m->live) && member_is_alive(s))
            continue;
        if (!machine->listen(s))
            continue;
        atomic_store(&m->live, 0);
        const unsigned generation = atomic_fetch_add(&m->gen, 1) + 1;
        memset(&proc.reg->hold[s], 0, sizeof(proc.reg->hold[s])); /* holds of the dead member */
        if (atomic_load(&proc.reg->slots) <= s)
            atomic_store(&proc.reg->slots, s + 1);
        m->pid = proc.pid;
        m->arena_fd = proc.arena_fd;
        m->reg_fd = proc.reg_fd;
        m->born = born;
        m->nonce = random_u64();
        m->node = proc.fab.node;
        atomic_store(&m->rung, 0);
        proc.slot = s;
        shlock_self = shlock_name(s, generation, MEMBERS);
        proc.arena->slot = s;
        proc.arena->magic = SHM_MAGIC;
        return true;
    }
    return false;
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
    ok = ok && gid_read_interfaces(&proc.fab, err, sizeof(err));
    if (!ok)
        softib_log("%s", err);
    return ok;
}

bool proc_read_fabric(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int state; /* 0: not read; 1: valid; -1: invalid */
    pthread_mutex_lock(&lock);
    if (!state)
        state = read_fabric() ? 1 : -1;
    pthread_mutex_unlock(&lock);
    return state > 0;
}

static bool attach_self(void)
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
    atomic_store(&p->mapped, ARENA_BYTES);
    atomic_store(&p->refs, 1);
    proc.self = proc.peers[proc.slot] = p;
    return true;
}

/* Removes the queue pairs of the dead process that had this slot from all multicast groups: new queue pairs
 * of this process may have the same numbers, and would count as members already. */
static void clear_groups_of_slot(void)
{
    shlock_lock(&proc.reg->lock);
    for (int i = 0; i < GROUPS; i++) {
        struct reg_group *g = &proc.reg->group[i];
        unsigned left = 0;
        if (!atomic_load(&g->used))
            continue;
        for (int k = 0; k < GROUP_QPS; k++) {
            if (atomic_load(&g->qpn[k]) >> QP_BITS == proc.slot)
                atomic_store(&g->qpn[k], 0);
            left |= atomic_load(&g->qpn[k]);
        }
        if (!left)
            atomic_store(&g->used, 0);
    }
    shlock_unlock(&proc.reg->lock);
}

static bool join_fabric_locked(void)
{
    struct sockaddr_un a;
    proc.reg_fd = registry_find(proc.key);
    if (proc.reg_fd < 0)
        proc.reg_fd = registry_create();
    if (proc.reg_fd < 0 || !(proc.reg = registry_map(proc.reg_fd)) || !arena_create() || !claim_member_slot())
        return false;
    socklen_t len = member_doorbell_name(&a, proc.key, &proc.reg->member[proc.slot]);
    proc.bell_fd = bind_name(&a, len);
    proc.ring_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (proc.bell_fd < 0 || proc.ring_fd < 0 || !attach_self())
        return false;
    atomic_store(&proc.reg->member[proc.slot].live, 1);
    clear_groups_of_slot(); /* takes a lock, whose owner must be live */
    return true;
}

/* Ends the membership in a forked child, which has the memory and the descriptors, but not the threads.
 * The child may join again as a member of its own. */
static void leave_after_fork(void)
{
    if (!atomic_load(&joined))
        return;
    atomic_store(&joined, false);
    close(proc.bell_fd);
    close(proc.ring_fd);
    close(proc.arena_fd);
    close(proc.reg_fd);
    machine->forget();
    slab_after_fork();
    memset(proc.peers, 0, sizeof(proc.peers));
    pthread_mutex_init(&proc.peers_lock, NULL);
    pthread_mutex_init(&join_lock, NULL);
}

bool proc_has_joined(void)
{
    return atomic_load(&joined) && proc.pid == getpid();
}

/* Permits the members to copy from and to this process's memory, for which the kernel requires the right
 * to trace it. If Yama restricts tracing to ancestors, access is given to SOFTIB_PTRACER, the common
 * ancestor of all members, and its descendants, or without that variable to all processes of the user. */
static void permit_member_access(void)
{
    const char *v = getenv("SOFTIB_PTRACER");
    char *end;
    unsigned long pid = v ? strtoul(v, &end, 10) : 0;
    if (v && (!pid || *end)) {
        softib_log("SOFTIB_PTRACER=%s is not a process ID: no other process may copy to or from this one", v);
        return;
    }
    /* prctl fails if Yama is absent, where no permission is needed, and if the process id is unknown: a
     * container has its own process ids. */
    if (!v || prctl(PR_SET_PTRACER, pid, 0, 0, 0))
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

static bool proc_is_mounted(void)
{
    if (!access("/proc/self/fd", X_OK))
        return true;
    softib_log(
        "cannot join the fabric \"%s\": /proc/self/fd: %s. Processes of a fabric find each other through "
        "/proc: mount it",
        proc.fab.name, strerror(errno));
    return false;
}

static bool proc_join_fabric(void)
{
    static atomic_flag hooked = ATOMIC_FLAG_INIT;
    if (!proc_is_mounted() || !machine->ready())
        return false;
    proc.pid = getpid();
    proc.key = registry_key(&proc.fab);
    permit_member_access();
    int lock = joinlock_acquire(proc.key);
    bool ok = lock >= 0 && join_fabric_locked() && machine->start();
    int e = errno;
    if (!ok)
        softib_log("cannot join the fabric \"%s\": %s%s", proc.fab.name, strerror(e),
                   e == EMFILE || e == ENFILE ? ". Raise the limit of open files (ulimit -n)"
                   : e == ENOMEM              ? ". Raise the limit of address space (ulimit -v)"
                                              : "");
    if (lock >= 0)
        close(lock);
    if (!atomic_flag_test_and_set(&hooked))
        pthread_atfork(NULL, NULL, leave_after_fork);
    errno = e;
    return ok;
}

bool proc_join(const struct machine *m)
{
    if (!proc_read_fabric()) {
        errno = EINVAL;
        return false;
    }
    pthread_mutex_lock(&join_lock);
    machine = m;
    bool ok = atomic_load(&joined) || proc_join_fabric();
    atomic_store(&joined, ok);
    pthread_mutex_unlock(&join_lock);
    return ok;
}

__attribute__((destructor)) static void proc_leave_fabric(void)
{
    if (!proc_has_joined())
        return;
    atomic_store(&proc.reg->member[proc.slot].live, 0);
}
