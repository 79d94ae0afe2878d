/* fdpass.c: passes the shared memory of a node to its ranks when another launcher started the job: the node's
 * first rank creates it and sends its descriptor to the others through an abstract socket. No file is left
 * behind, and no right to ptrace is needed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "boot/boot.h"
#include "net/shm/segment.h"

#define PASS_TIMEOUT_MS 60000

/* A launcher's name of the job can be longer than an address: the name is hashed (FNV-1a), not cut. */
static socklen_t pass_address(const struct boot *boot, struct sockaddr_un *address)
{
    uint64_t job = 0xcbf29ce484222325u;
    for (const char *c = boot->job; *c; c++)
        job = (job ^ (unsigned char)*c) * 0x100000001b3u;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "fishplate-%u-%016llx-%u",
                     (unsigned)getuid(), (unsigned long long)job, boot->node);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int pass_listen(const struct boot *boot, int *out)
{
    struct sockaddr_un address;
    socklen_t len = pass_address(boot, &address);
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0 || bind(s, (struct sockaddr *)&address, len) != 0 || listen(s, (int)boot->nlocal) != 0) {
        int why = errno;
        if (s >= 0)
            close(s);
        return err_set(MPI_ERR_OTHER, "cannot open a local socket to share memory on %s: %s", boot->host,
                       err_reason(why));
    }
    *out = s;
    return 0;
}

static bool same_user(int socket)
{
    struct ucred who;
    socklen_t len = sizeof(who);
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 && who.uid == getuid();
}

/* A message of one byte that carries a descriptor; it points into itself. */
struct parcel {
    char byte;
    struct iovec part;
    struct msghdr message;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control; /* last: the head has no fixed size */
};

static void parcel_open(struct parcel *p)
{
    *p = (struct parcel){.byte = 1};
    p->part = (struct iovec){.iov_base = &p->byte, .iov_len = 1};
    p->message = (struct msghdr){.msg_iov = &p->part,
                                 .msg_iovlen = 1,
                                 .msg_control = &p->control,
                                 .msg_controllen = sizeof(p->control.room)};
}

static int pass_one(int socket, int fd)
{
    struct parcel p;
    parcel_open(&p);
    struct cmsghdr *c = CMSG_FIRSTHDR(&p.message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    return sendmsg(socket, &p.message, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

static int pass_receive(int socket, int *fd)
{
    struct parcel p;
    struct pollfd ready = {.fd = socket, .events = POLLIN};
    parcel_open(&p);
    if (poll(&ready, 1, PASS_TIMEOUT_MS) != 1 || recvmsg(socket, &p.message, MSG_CMSG_CLOEXEC) != 1)
        return -1;
    struct cmsghdr *c = CMSG_FIRSTHDR(&p.message);
    if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int)))
        return -1;
    memcpy(fd, CMSG_DATA(c), sizeof(*fd));
    return 0;
}

static int pass_to_all(const struct boot *boot, int listener, int fd)
{
    for (uint32_t served = 1; served < boot->nlocal;) {
        struct pollfd ready = {.fd = listener, .events = POLLIN};
        if (poll(&ready, 1, PASS_TIMEOUT_MS) != 1)
            return err_set(MPI_ERR_OTHER,
                           "only %u of the %u ranks on %s came for the node's shared memory within %d s",
                           served, boot->nlocal, boot->host, PASS_TIMEOUT_MS / 1000);
        int s = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (s < 0 && errno != EINTR && errno != ECONNABORTED)
            return err_set(MPI_ERR_OTHER, "cannot hand the node's shared memory to the other ranks on %s: %s",
                           boot->host, err_reason(errno));
        if (s < 0)
            continue;
        if (same_user(s) && pass_one(s, fd) == 0)
            served++;
        close(s);
    }
    return 0;
}

static int pass_fetch(const struct boot *boot, int *fd)
{
    struct sockaddr_un address;
    socklen_t len = pass_address(boot, &address);
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc = 0;
    if (s < 0 || connect(s, (struct sockaddr *)&address, len) != 0 || !same_user(s) ||
        pass_receive(s, fd) != 0)
        rc = err_set(
            MPI_ERR_OTHER,
            "rank %u on %s could not get the node's shared memory from rank %u: %s. All ranks of a node "
            "must belong to one user and share a network namespace.",
            boot->rank, boot->host, boot->local_ranks[0], err_reason(errno));
    if (s >= 0)
        close(s);
    return rc;
}

int fdpass_exchange(struct boot *boot, int *fd)
{
    int listener = -1, rc = 0;
    if (boot->local_rank == 0) {
        *fd = memfd_create("fishplate", MFD_CLOEXEC);
        if (*fd < 0)
            return err_set(MPI_ERR_NO_MEM, "cannot create shared memory: %s", err_reason(errno));
        rc = pass_listen(boot, &listener);
    }
    int fence =
        boot_barrier(boot); /* every node's first rank listens now; taken by all, also after an error */
    rc = rc ? rc : fence;
    if (rc == 0)
        rc = boot->local_rank == 0 ? pass_to_all(boot, listener, *fd) : pass_fetch(boot, fd);
    if (listener >= 0)
        close(listener);
    return rc;
}
