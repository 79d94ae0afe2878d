/* member.c: the members of the fabric on this machine: liveness of their processes, doorbells, completion
 * channels, and the owners of shared locks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/proc.h"
#include "fabric/registry.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

struct proc proc = {.peers_lock = PTHREAD_MUTEX_INITIALIZER};
unsigned shlock_self;

/* Start time of a process; 0 with errno if /proc does not report it. */
uint64_t process_read_start_time(pid_t pid)
{
    char path[64], buf[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, buf, sizeof(buf) - 1);
    close(fd);
    buf[n > 0 ? n : 0] = 0;
    char *p = strrchr(buf, ')'); /* the command name before it may contain any character */
    unsigned long long born = 0;
    errno = ESRCH;
    if (p)
        sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &born);
    return born;
}

bool process_errno_means_ended(void)
{
    return errno == ESRCH || errno == ENOENT;
}

int process_open_pidfd(pid_t pid, uint64_t born)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return -1;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    bool dead = poll(&p, 1, 0) == 1;
    uint64_t is = dead ? 0 : process_read_start_time(pid);
    if (is == born || (!is && !dead && !process_errno_means_ended()))
        return fd;
    close(fd);
    errno = ESRCH;
    return -1;
}

bool member_is_alive(uint32_t slot)
{
    return atomic_load(&proc.reg->member[slot].live) && member_is_running(slot);
}

bool member_is_running(uint32_t slot)
{
    struct reg_member *m = &proc.reg->member[slot];
    int fd = process_open_pidfd(m->pid, m->born);
    if (fd >= 0) {
        close(fd);
        return true;
    }
    if (process_errno_means_ended())
        return false;
    /* pidfd_open failed for another reason: no free descriptor, or a seccomp filter. */
    uint64_t born = process_read_start_time(m->pid);
    return born ? born == m->born : !process_errno_means_ended() && (!kill(m->pid, 0) || errno == EPERM);
}

void member_ring(uint32_t slot)
{
    struct reg_member *m = &proc.reg->member[slot];
    if (atomic_exchange(&m->rung, 1))
        return;
    struct sockaddr_un a;
    socklen_t len = member_doorbell_name(&a, proc.key, m);
    char token = 1;
    sendto(proc.ring_fd, &token, 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&a, len);
}

static socklen_t make_channel_name(struct sockaddr_un *a, uint32_t slot, uint32_t chan)
{
    return abstract_name(a, "softib/%016llx/c%u.%016llx.%u", (unsigned long long)proc.key, slot,
                         (unsigned long long)proc.reg->member[slot].nonce, chan);
}

int channel_open_socket(uint32_t chan)
{
    struct sockaddr_un a;
    socklen_t len = make_channel_name(&a, proc.slot, chan);
    int fd = bind_name(&a, len);
    if (fd >= 0)
        /* Reads block by default; the program may set O_NONBLOCK. */
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

void channel_send_token(uint32_t slot, uint32_t chan)
{
    struct sockaddr_un a;
    socklen_t len = make_channel_name(&a, slot, chan);
    char token = 1;
    /* The call fails if the socket's queue is full: then the queue contains a token already. */
    sendto(proc.ring_fd, &token, 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&a, len);
}

bool shlock_owner_alive(unsigned owner)
{
    const uint32_t slot = owner % MEMBERS;
    return shlock_name(slot, atomic_load(&proc.reg->member[slot].gen), MEMBERS) == owner &&
           member_is_alive(slot);
}

void shlock_lock_contended(struct shlock *l)
{
    unsigned turn = 0;
    for (;;) {
        unsigned owner = atomic_load_explicit(&l->owner, memory_order_relaxed);
        /* The check whether the owner is alive takes system calls: it is made rarely, and not if this
         * process is the owner. */
        bool free = !owner || (turn % 65536 == 65535 && owner != shlock_self && !shlock_owner_alive(owner));
        if (free && atomic_compare_exchange_strong_explicit(&l->owner, &owner, shlock_self,
                                                            memory_order_acquire, memory_order_relaxed))
            return;
        spin_wait(&turn);
    }
}
