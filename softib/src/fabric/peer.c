/* peer.c: the other members: mappings of their arenas, their deaths, and events for them. When a peer is
 * attached, only the first extent of its arena is mapped, which contains all tables; further extents are
 * mapped when their owner uses them. Otherwise a large job would need gigabytes of address space for each
 * peer. If a live peer cannot be attached, the reason is printed once, and the queue pair that needs the
 * peer fails.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/proc.h"
#include "base/slab.h"
#include "fabric/registry.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

/* Generation for which the refusal was reported; under proc.peers_lock. */
static uint32_t refused_gen[MEMBERS];

static void *map_file_range(int fd, uint64_t off, uint64_t bytes)
{
    void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)off);
    return m == MAP_FAILED ? NULL : m;
}

static int arena_open(const struct peer *p)
{
    return shared_open(p->pid, p->arena_fd, ARENA_BYTES);
}

/* Called if /proc shows no such descriptor of the process. True if the process is ending or has ended: its
 * files are closed before it disappears. False: /proc hides the process (hidepid=). */
static bool is_process_ending(pid_t pid)
{
    return process_read_start_time(pid) != 0 || (kill(pid, 0) != 0 && errno == ESRCH);
}

#define NO_ROOM  "Raise the limit of address space (ulimit -v)."
#define NO_FILES "Raise the limit of open files (ulimit -n)."

static void peer_report_inaccessible(struct peer *p, const char *what, const char *advice)
{
    int e = errno;
    if (e == ENOENT && is_process_ending(p->pid)) {
        errno = 0; /* no process has this id */
        return;
    }
    if (refused_gen[p->slot] != p->gen)
        softib_log("cannot reach process %d (node%u of the fabric): %s: %s. %s", p->pid,
                   proc.reg->member[p->slot].node, what, strerror(e),
                   e == EMFILE || e == ENFILE ? NO_FILES : advice);
    refused_gen[p->slot] = p->gen;
    errno = e;
}

bool peer_map_more(struct peer *p)
{
    pthread_mutex_lock(&proc.peers_lock);
    uint64_t top = min_u64(atomic_load(&p->arena->top), ARENA_BYTES), have = atomic_load(&p->mapped);
    int fd = top > have ? arena_open(p) : -1;
    while (have < top && fd >= 0) {
        unsigned i = arena_extent(have);
        if (!(p->extent[i] = map_file_range(fd, have, have)))
            break;
        atomic_store(&p->mapped, have *= 2);
    }
    if (have < top)
        peer_report_inaccessible(p, fd < 0 ? "open its memory" : "map more of its memory", NO_ROOM);
    if (fd >= 0)
        close(fd);
    pthread_mutex_unlock(&proc.peers_lock);
    return have >= top;
}

void *peer_map_address(struct peer *p, uint64_t off)
{
    if (off >= ARENA_BYTES || (off >= atomic_load(&p->mapped) && !peer_map_more(p)) ||
        off >= atomic_load(&p->mapped))
        return NULL;
    return p->extent[arena_extent(off)] + (off - (ARENA_FIRST << (arena_extent(off) - 1)));
}

static bool attach_arena(struct peer *p)
{
    int fd = arena_open(p);
    if (fd < 0) {
        peer_report_inaccessible(
            p, "open its memory through /proc",
            "The processes of a fabric must belong to one user, see each other in /proc (mount option "
            "hidepid=) and allow ptrace (prctl PR_SET_DUMPABLE).");
        return false;
    }
    p->arena = map_file_range(fd, 0, ARENA_FIRST);
    if (!p->arena)
        peer_report_inaccessible(p, "map its memory", NO_ROOM);
    close(fd);
    atomic_store(&p->mapped, ARENA_FIRST);
    return p->arena != NULL;
}

void peer_release(struct peer *p)
{
    if (!p || atomic_fetch_sub(&p->refs, 1) != 1)
        return;
    for (int i = 0; i < MR_MAPS; i++)
        for (struct mr_map *m = p->maps[i], *next; m; m = next) {
            next = m->next;
            if (m->unmap)
                m->unmap(m);
            slab_free(m, sizeof(*m));
        }
    munmap(p->arena, ARENA_FIRST);
    for (unsigned i = 1; i < ARENA_EXTENTS; i++)
        if (p->extent[i])
            munmap(p->extent[i], ARENA_FIRST << (i - 1));
    close(p->pidfd);
    free(p);
}

static void peer_on_death(struct watch *w, uint32_t ev)
{
    struct peer *p = CONTAINER_OF(w, struct peer, death);
    (void)ev;
    atomic_store(&p->dead, true);
    engine_remove_watch(p->pidfd);
    peer_release(p);
}

static void watch_death(struct peer *p)
{
    p->death.ready = peer_on_death;
    atomic_fetch_add(&p->refs, 1);
    if (!engine_add(p->pidfd, &p->death, EPOLLIN))
        atomic_fetch_sub(&p->refs, 1);
}

/* Maps the arena of the process. False with errno not 0: the process is alive but cannot be accessed; with
 * errno 0: it does not exist. */
static bool peer_attach(struct peer *p)
{
    struct reg_member *m = &proc.reg->member[p->slot];
    p->gen = atomic_load(&m->gen);
    p->pid = m->pid;
    p->arena_fd = m->arena_fd;
    if (!atomic_load(&m->live)) {
        errno = 0;
        return false;
    }
    p->pidfd = process_open_pidfd(m->pid, m->born);
    if (p->pidfd < 0) {
        if (!process_errno_means_ended())
            peer_report_inaccessible(p, "pidfd_open", "A system call filter (seccomp) may forbid it.");
        errno = process_errno_means_ended() ? 0 : errno;
        return false;
    }
    if (attach_arena(p)) {
        if (p->arena->magic == SHM_MAGIC && p->arena->slot == p->slot && atomic_load(&m->gen) == p->gen) {
            watch_death(p);
            return true;
        }
        munmap(p->arena, ARENA_FIRST);
        errno = 0;
    }
    int e = errno;
    errno = member_is_alive(p->slot) ? e : 0;
    close(p->pidfd);
    return false;
}

static bool peer_is_current(const struct peer *p)
{
    const struct reg_member *m = &proc.reg->member[p->slot];
    return !atomic_load(&p->dead) && atomic_load(&m->gen) == p->gen && atomic_load(&m->live);
}

struct peer *peer_find(uint32_t slot, int *why)
{
    *why = 0;
    if (slot < 1 || slot >= MEMBERS)
        return NULL;
    pthread_mutex_lock(&proc.peers_lock);
    struct peer *p = proc.peers[slot];
    if (p && !p->self && !peer_is_current(p)) {
        proc.peers[slot] = NULL;
        peer_release(p);
        p = NULL;
    }
    if (!p && (p = calloc(1, sizeof(*p)))) {
        p->slot = slot;
        atomic_store(&p->refs, 1); /* the table's reference; each user of the peer adds one */
        if (peer_attach(p)) {
            proc.peers[slot] = p;
        } else {
            *why = errno;
            free(p);
            p = NULL;
        }
    }
    if (p)
        atomic_fetch_add(&p->refs, 1);
    pthread_mutex_unlock(&proc.peers_lock);
    return p;
}

struct peer *peer_get(uint32_t slot)
{
    int why;
    return peer_find(slot, &why);
}

void peer_post_event(struct peer *p, enum sh_event_kind kind, uint32_t index, uint32_t detail)
{
    struct arena *a = p->arena;
    shlock_lock(&a->ev_lock);
    uint64_t t = atomic_load(&a->ev_tail);
    if (t - atomic_load(&a->ev_head) < EVENTS) {
        a->event[t % EVENTS] = (struct sh_event){kind, index, detail};
        atomic_store(&a->ev_tail, t + 1);
    }
    shlock_unlock(&a->ev_lock);
    member_ring(p->slot);
}
