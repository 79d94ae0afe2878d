/* cma.c: cross-memory attach, repeated until all bytes are moved, because the kernel may copy less than was
 * requested.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "net/shm/cma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>

#include "base/err.h"

#define CHUNK ((size_t)1 << 30) /* bytes of one call, below the kernel's limit */

typedef ssize_t cma_call(pid_t, const struct iovec *, unsigned long, const struct iovec *, unsigned long,
                         unsigned long);

static int cma_move(cma_call *call, const char *verb, pid_t pid, char *local, uint64_t remote, size_t len)
{
    while (len > 0) {
        size_t part = MIN(len, CHUNK);
        struct iovec here = {.iov_base = local, .iov_len = part};
        struct iovec there = {.iov_base = (void *)(uintptr_t)remote, .iov_len = part};
        ssize_t n = call(pid, &here, 1, &there, 1, 0);
        if (n <= 0) {
            if (n < 0 && errno == EINTR)
                continue;
            if (n < 0 && errno == ESRCH)
                return err_set(MPIX_ERR_PROC_FAILED, "process %d has died", (int)pid);
            return err_set(MPI_ERR_OTHER, "cannot %s %zu bytes in the memory of process %d: %s", verb, len,
                           (int)pid, n < 0 ? err_reason(errno) : "nothing was moved");
        }
        local += n;
        remote += (uint64_t)n;
        len -= (size_t)n;
    }
    return 0;
}

int cma_read(pid_t pid, void *local, uint64_t remote, size_t len)
{
    return cma_move(process_vm_readv, "read", pid, local, remote, len);
}

int cma_write(pid_t pid, const void *local, uint64_t remote, size_t len)
{
    return cma_move(process_vm_writev, "write", pid, (char *)(uintptr_t)local, remote, len);
}

/* Moves all pieces by one call. After a partial transfer, or above CHUNK, moves each separately. */
int cma_move_pieces(pid_t pid, bool write, const struct net_piece *pieces, size_t count)
{
    struct iovec here[NET_PIECES_MAX], there[NET_PIECES_MAX];
    size_t all = 0;
    for (size_t i = 0; i < count; i++) {
        here[i] = (struct iovec){.iov_base = pieces[i].local, .iov_len = pieces[i].length};
        there[i] =
            (struct iovec){.iov_base = (void *)(uintptr_t)pieces[i].remote, .iov_len = pieces[i].length};
        all += pieces[i].length;
    }
    cma_call *call = write ? process_vm_writev : process_vm_readv;
    if (all <= CHUNK && call(pid, here, count, there, count, 0) == (ssize_t)all)
        return 0;
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = cma_move(call, write ? "write" : "read", pid, pieces[i].local, pieces[i].remote,
                      pieces[i].length);
    return rc;
}

int cma_test_read(pid_t pid, uint64_t remote, uint64_t value)
{
    uint64_t found = ~value;
    struct iovec here = {.iov_base = &found, .iov_len = sizeof(found)};
    struct iovec there = {.iov_base = (void *)(uintptr_t)remote, .iov_len = sizeof(found)};
    return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)sizeof(found) && found == value;
}

void cma_permit_access(const char *launcher)
{
#ifdef PR_SET_PTRACER
    char *end;
    unsigned long pid = launcher ? strtoul(launcher, &end, 10) : 0;
    /* Without Yama both calls fail, and are not needed. */
    if (pid == 0 || *end || prctl(PR_SET_PTRACER, pid, 0, 0, 0) != 0)
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
#endif
}
