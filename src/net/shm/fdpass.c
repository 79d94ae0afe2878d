/* fdpass.c: passes the shared memory of a node to its ranks if the launcher does not: the node's first rank
 * creates the memory file and sends its descriptor to the others through an abstract socket. No file remains,
 * and no right to ptrace is needed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/shared_memory.h"
#include "boot/boot.h"
#include "net/shm/segment.h"

#define PASS_TIMEOUT_MS 60000

#define ADDRESS_KEY "segment-socket"

/* Listens on an abstract socket whose name the kernel chooses, so that no other user can occupy the name. The
 * other ranks receive the name through the launcher. */
static int listen_for_receivers(struct boot *boot, int *out)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t len = sizeof(address);
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0 || bind(s, (struct sockaddr *)&address, sizeof(address.sun_family)) != 0 ||
        listen(s, (int)boot->nlocal) != 0 || getsockname(s, (struct sockaddr *)&address, &len) != 0) {
        int why = errno;
        if (s >= 0)
            close(s);
        return err_set(MPI_ERR_OTHER, "cannot open a local socket to share memory on %s: %s", boot->host,
                       err_reason(why));
    }
    *out = s;
    return boot_put(boot, ADDRESS_KEY, &address, len);
}

/* False with errno: the process at the other end belongs to another user. */
static bool same_user(int socket)
{
    struct ucred who;
    socklen_t len = sizeof(who);
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0)
        return false;
    errno = EPERM;
    return who.uid == getuid();
}

/* Waits until the socket is readable. On failure returns false and sets errno. */
static bool wait_readable(int socket)
{
    struct pollfd ready = {.fd = socket, .events = POLLIN};
    int n;
    do
        n = poll(&ready, 1, PASS_TIMEOUT_MS);
    while (n < 0 && errno == EINTR);
    if (n == 0)
        errno = ETIMEDOUT;
    return n == 1;
}

/* A message of one byte that carries a descriptor; its members point to each other. */
struct parcel {
    char byte;
    struct iovec part;
    struct msghdr message;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control; /* last member, because cmsghdr has a flexible array */
};

static void parcel_init(struct parcel *p)
{
    *p = (struct parcel){.byte = 1};
    p->part = (struct iovec){.iov_base = &p->byte, .iov_len = 1};
    p->message = (struct msghdr){.msg_iov = &p->part,
                                 .msg_iovlen = 1,
                                 .msg_control = &p->control,
                                 .msg_controllen = sizeof(p->control.room)};
}

static int send_descriptor(int socket, int fd)
{
    struct parcel p;
    parcel_init(&p);
    struct cmsghdr *c = CMSG_FIRSTHDR(&p.message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    return sendmsg(socket, &p.message, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

/* -1 with errno. */
static int pass_receive(int socket, int *fd)
{
    struct parcel p;
    parcel_init(&p);
    if (!wait_readable(socket))
        return -1;
    const ssize_t n = recvmsg(socket, &p.message, MSG_CMSG_CLOEXEC);
    if (n != 1) {
        errno = n == 0 ? ECONNRESET : errno;
        return -1;
    }
    struct cmsghdr *c = CMSG_FIRSTHDR(&p.message);
    if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int))) {
        errno =
            p.message.msg_flags & MSG_CTRUNC ? EMFILE : EBADMSG; /* no free descriptor; no descriptor sent */
        return -1;
    }
    memcpy(fd, CMSG_DATA(c), sizeof(*fd));
    return 0; /* segment_open checks the file */
}

static int send_descriptor_to_all(const struct boot *boot, int listener, int fd)
{
    for (uint32_t served = 1; served < boot->nlocal;) {
        if (!wait_readable(listener))
            return err_set(MPI_ERR_OTHER,
                           "only %u of the %u ranks on %s came for the node's shared memory within %d s",
                           served, boot->nlocal, boot->host, PASS_TIMEOUT_MS / 1000);
        int s = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (s < 0 && errno != EINTR && errno != ECONNABORTED)
            return err_set(MPI_ERR_OTHER, "cannot hand the node's shared memory to the other ranks on %s: %s",
                           boot->host, err_reason(errno));
        if (s < 0)
            continue;
        if (same_user(s) && send_descriptor(s, fd) == 0)
            served++;
        close(s);
    }
    return 0;
}

static int fdpass_fetch_descriptor(struct boot *boot, int *fd)
{
    void *address;
    size_t len;
    int rc = boot_get(boot, boot->local_ranks[0], ADDRESS_KEY, &address, &len);
    if (rc)
        return rc;
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0 || connect(s, address, (socklen_t)len) != 0 || !same_user(s) || pass_receive(s, fd) != 0)
        rc = err_set(
            MPI_ERR_OTHER,
            "rank %u on %s could not get the node's shared memory from rank %u: %s. All ranks of a node "
            "must belong to one user and share a network namespace.",
            boot->rank, boot->host, boot->local_ranks[0], err_reason(errno));
    free(address);
    if (s >= 0)
        close(s);
    return rc;
}

int fdpass_join_barrier(struct boot *boot)
{
    return boot->size > 1 && boot->node_fd < 0 ? boot_fence(boot) : 0;
}

int fdpass_exchange(struct boot *boot, int *fd)
{
    int listener = -1, rc = 0;
    if (boot->local_rank == 0) {
        *fd = shared_memory_create_empty(SHARED_MEMORY_NODE);
        rc = *fd < 0 ? err_set(MPI_ERR_NO_MEM, "cannot create shared memory: %s", err_reason(errno))
                     : listen_for_receivers(boot, &listener);
    }
    /* After this fence the first rank of every node listens and has published its address. The fence is
     * collective over the job: all ranks take part, even after an error. */
    int fence = boot_fence(boot);
    rc = rc ? rc : fence;
    if (rc == 0)
        rc = boot->local_rank == 0 ? send_descriptor_to_all(boot, listener, *fd)
                                   : fdpass_fetch_descriptor(boot, fd);
    if (listener >= 0)
        close(listener);
    return rc;
}
