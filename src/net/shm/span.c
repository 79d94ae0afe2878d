/* span.c: memory of any size for windows, in the file behind the node's segment. A span is a range of that
 * file that is allocated once and never reused: the file has addresses for years of use, and discarded pages
 * take no memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "net/shm/shm.h"

/* Spans of 2 MiB or more begin at a huge page boundary. */
#define SPAN_ALIGN ((uint64_t)2 << 20)
#define SPAN_SMALL ((uint64_t)64 << 10)

int net_span_alloc(struct net *net, size_t len, uint64_t *span)
{
    struct shm *s = (struct shm *)net->local;
    if (!s || s->segment.spans == 0 || len == 0 || len > SEGMENT_SPANS / 2)
        return MPI_ERR_NO_MEM;
    const uint64_t align = len < SPAN_ALIGN ? SPAN_SMALL : SPAN_ALIGN;
    _Atomic uint64_t *used = &s->segment.head->spans_used;
    uint64_t before = atomic_load(used), start;
    const uint64_t own = s->nlocal * NET_SPAN_OWN;
    do {
        start = ALIGN_UP(MAX(before, own), align);
        if (start + len > SEGMENT_SPANS)
            return MPI_ERR_NO_MEM;
    } while (!atomic_compare_exchange_weak(used, &before, ALIGN_UP(start + len, SPAN_SMALL)));
    *span = s->segment.spans + start;
    return 0;
}

int net_span_get_own(struct net *net, uint64_t *span)
{
    const struct shm *s = (struct shm *)net->local;
    if (!s || s->segment.spans == 0)
        return MPI_ERR_NO_MEM;
    *span = s->segment.spans;
    return 0;
}

int net_span_map(struct net *net, uint64_t span, size_t len, void **address)
{
    struct shm *s = (struct shm *)net->local;
    void *at =
        mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, s->segment.fd, (off_t)span);
    if (at == MAP_FAILED)
        return err_set(MPI_ERR_NO_MEM, "cannot map %zu bytes of the node's shared memory: %s", len,
                       err_reason(errno));
    *address = at;
    return 0;
}

void net_span_unmap(void *address, size_t len)
{
    munmap(address, len);
}

void net_span_discard_pages(struct net *net, uint64_t span, size_t len)
{
    struct shm *s = (struct shm *)net->local;
    fallocate(s->segment.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)span,
              (off_t)ALIGN_UP(len, (size_t)4096));
}
