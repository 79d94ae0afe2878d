/* copy.c: copies between two processes of this machine: by direct stores if the other process's memory is
 * mapped, else by process_vm_writev and process_vm_readv. The last byte of a copy must become visible
 * last: a direct copy ends with a release store; a cross-memory copy has the last byte in a separate
 * iovec, because the kernel acquires and releases the target's memory lock between two iovecs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "memory/copy.h"
#include "base/dma.h"
#include "memory/gpu.h"
#include "memory/share.h"
#include <stdlib.h>

#define STAGE_BYTES ((size_t)1 << 20)

static void store_last_byte_last(char *dst, const char *src, size_t n)
{
    if (!n)
        return;
    if (n == 8 && !((uintptr_t)dst & 7)) { /* an aligned word: one store for all bytes */
        uint64_t v;
        memcpy(&v, src, 8);
        __atomic_store_n((uint64_t *)(void *)dst, v, __ATOMIC_RELEASE);
        return;
    }
    char last = src[n - 1]; /* read first: a program may send a buffer to itself */
    if (n > 1)
        memmove(dst, src, n - 1);
    __atomic_store_n(dst + n - 1, last, __ATOMIC_RELEASE);
}

static bool copy_is_all_mapped(const struct rseg *s, int n)
{
    for (int i = 0; i < n; i++)
        if (!s[i].map)
            return false;
    return true;
}

/* Copies by the CUDA driver, which stores bytes in any order: all bytes but the last, then the last byte. */
static bool gpu_move_last_last(char *to, const char *from, size_t n)
{
    char last;
    if (n > 1 && !gpu_move(to, from, n - 1))
        return false;
    if (gpu_is_device_memory((uintptr_t)to))
        return gpu_move(to + n - 1, from + n - 1, 1);
    if (!gpu_move(&last, from + n - 1, 1))
        return false;
    __atomic_store_n(to + n - 1, last, __ATOMIC_RELEASE);
    return true;
}

/* memmove or, for the last piece, store_last_byte_last. False: the driver of a device reported an error. */
static bool move_piece(char *to, const char *from, size_t n, bool last)
{
    if (UNLIKELY(atomic_load_explicit(&gpu_used, memory_order_relaxed)) && n && gpu_involved(to, from))
        return last ? gpu_move_last_last(to, from, n) : gpu_move(to, from, n);
    if (last)
        store_last_byte_last(to, from, n);
    else
        memmove(to, from, n);
    return true;
}

void copy_last_byte_last(char *dst, const char *src, size_t n)
{
    dma_begin();
    move_piece(dst, src, n, true);
    dma_end();
}

/* Copies between two lists; the last piece is stored with its last byte last, for receivers that poll it. */
static bool copy_direct_to_remote(const struct rseg *dst, const struct iovec *src, uint64_t n)
{
    uint64_t doff = 0, soff = 0;
    while (n) {
        uint64_t step = min_u64(n, min_u64(dst->len - doff, src->iov_len - soff));
        char *d = dst->map + doff;
        const char *s = (const char *)src->iov_base + soff;
        n -= step;
        if (!move_piece(d, s, step, !n))
            return false;
        if ((doff += step) == dst->len)
            dst++, doff = 0;
        if ((soff += step) == src->iov_len)
            src++, soff = 0;
    }
    return true;
}

static bool copy_direct_from_remote(const struct rseg *src, const struct iovec *dst, uint64_t n)
{
    uint64_t doff = 0, soff = 0;
    while (n) {
        uint64_t step = min_u64(n, min_u64(src->len - soff, dst->iov_len - doff));
        char *d = (char *)dst->iov_base + doff;
        n -= step;
        if (!move_piece(d, src->map + soff, step, !n))
            return false;
        if ((soff += step) == src->len)
            src++, soff = 0;
        if ((doff += step) == dst->iov_len)
            dst++, doff = 0;
    }
    return true;
}

/* Fills `out` with the first n bytes of a segment list. split: the last byte is a separate iovec. */
static unsigned long remote_iov(const struct rseg *s, uint64_t n, bool split, struct iovec *out)
{
    unsigned long k = 0;
    for (; n; s++) {
        uint64_t len = min_u64(n, s->len);
        n -= len;
        if (!len)
            continue;
        if (!n && split && len > 1) {
            out[k++] = (struct iovec){(void *)(uintptr_t)s->addr, len - 1};
            out[k++] = (struct iovec){(void *)(uintptr_t)(s->addr + len - 1), 1};
        } else {
            out[k++] = (struct iovec){(void *)(uintptr_t)s->addr, len};
        }
    }
    return k;
}

static bool check_cross_copy(struct peer *p, ssize_t r, uint64_t n)
{
    if (r == (ssize_t)n)
        return true;
    if (r < 0 && errno == ESRCH)
        atomic_store(&p->dead, true);
    else if (r < 0 && errno != EFAULT && !atomic_exchange(&p->refused, true))
        softib_log(
            "cannot copy to or from the memory of process %d: process_vm_writev: %s. A system call filter "
            "(seccomp), Yama (kernel.yama.ptrace_scope above 1) or PR_SET_DUMPABLE forbids it: allow it "
            "(for a container: --cap-add SYS_PTRACE), or set wire=tcp in SOFTIB_FABRIC, which does not "
            "need it",
            p->pid, strerror(errno));
    return false;
}

static bool copy_cross_process_out(struct peer *to, const struct iovec *src, unsigned long ns,
                                   const struct iovec *dst, unsigned long nd, uint64_t n)
{
    return check_cross_copy(to, share_move(to->pid, false, src, ns, dst, nd), n);
}

/* Copies through a buffer between device memory of this process and memory of another process that is not
 * mapped: the kernel cannot copy between them directly. */
static bool copy_through_buffer(struct peer *p, bool inward, const struct iovec *far, int nfar,
                                const struct iovec *near, int nnear, uint64_t n)
{
    char *buffer = malloc(STAGE_BYTES);
    bool good = buffer != NULL;
    for (uint64_t at = 0; good && at < n; at += STAGE_BYTES) {
        const uint64_t bytes = min_u64(n - at, STAGE_BYTES);
        const bool splits = !inward && at + bytes == n && bytes > 1; /* the last byte is stored last */
        struct iovec there[MAX_SGE + 2], here[MAX_SGE + 1];
        int nt = iov_slice(far, nfar, at, bytes - splits, there);
        const int nh = iov_slice(near, nnear, at, bytes, here);
        if (splits)
            nt += iov_slice(far, nfar, n - 1, 1, there + nt);
        const struct iovec staged = {buffer, bytes};
        if (inward)
            good = check_cross_copy(p, share_move(p->pid, true, &staged, 1, there, (unsigned long)nt), bytes);
        char *place = buffer;
        for (int i = 0; good && i < nh; place += here[i++].iov_len)
            good = inward ? gpu_move(here[i].iov_base, place, here[i].iov_len)
                          : gpu_move(place, here[i].iov_base, here[i].iov_len);
        if (good && !inward)
            good = copy_cross_process_out(p, &staged, 1, there, (unsigned long)nt, bytes);
    }
    free(buffer);
    return good;
}

/* True if a piece is device memory, which only gpu_move can access. */
static bool copy_needs_buffer(const struct iovec *near, int n)
{
    return UNLIKELY(atomic_load_explicit(&gpu_used, memory_order_relaxed)) &&
           gpu_list_has_device_memory(near, (unsigned long)n);
}

bool copy_to_peer(struct peer *to, struct rseg *dst, int nd, const struct iovec *src, int ns, uint64_t n)
{
    if (!n)
        return true;
    if (copy_is_all_mapped(dst, nd)) {
        dma_begin();
        const bool good = copy_direct_to_remote(dst, src, n);
        dma_end();
        return good;
    }
    struct iovec riov[MAX_SGE + 1];
    unsigned long k;
    if (copy_needs_buffer(src, ns)) {
        k = remote_iov(dst, n, false, riov);
        return copy_through_buffer(to, false, riov, (int)k, src, ns, n);
    }
    if (n >= SHARE_MIN && share_is_worthwhile(to)) {
        /* Two processes copy all bytes but the last one in parallel; the last byte follows. */
        k = remote_iov(dst, n - 1, false, riov);
        if (share_copy(to, false, riov, (int)k, src, ns, n - 1)) {
            struct iovec last, end;
            k = remote_iov(dst, n, false, riov);
            iov_slice(riov, (int)k, n - 1, 1, &end);
            iov_slice(src, ns, n - 1, 1, &last);
            return copy_cross_process_out(to, &last, 1, &end, 1, 1);
        }
    }
    k = remote_iov(dst, n, n > 1, riov);
    return copy_cross_process_out(to, src, (unsigned long)ns, riov, k, n);
}

bool copy_from_peer(struct peer *from, const struct rseg *src, int nsrc, const struct iovec *dst, int nd,
                    uint64_t n)
{
    if (!n)
        return true;
    if (copy_is_all_mapped(src, nsrc)) {
        /* An RDMA READ is executed after the writes before it on its connection. */
        atomic_thread_fence(memory_order_seq_cst);
        dma_begin();
        const bool good = copy_direct_from_remote(src, dst, n);
        dma_end();
        return good;
    }
    struct iovec riov[MAX_SGE + 1];
    unsigned long k = remote_iov(src, n, false, riov);
    if (copy_needs_buffer(dst, nd))
        return copy_through_buffer(from, true, riov, (int)k, dst, nd, n);
    if (n >= SHARE_MIN && share_is_worthwhile(from) && share_copy(from, true, riov, (int)k, dst, nd, n))
        return true;
    return check_cross_copy(from, share_move(from->pid, true, dst, (unsigned long)nd, riov, k), n);
}

static void direct_atomic(char *at, bool cas, uint64_t operand, uint64_t swap, uint64_t *old)
{
    uint64_t *word = (uint64_t *)(void *)at;
    *old = operand;
    dma_begin();
    if (cas)
        __atomic_compare_exchange_n(word, old, swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    else
        *old = __atomic_fetch_add(word, operand, __ATOMIC_SEQ_CST);
    dma_end();
}

bool copy_atomic(struct peer *at, const struct rseg *s, bool cas, uint64_t operand, uint64_t swap,
                 uint64_t *old)
{
    struct shlock *unit = &at->arena->atomic_unit;
    if (s->mr->access & MR_GPU)
        return false; /* the CUDA driver has no atomic operations for the processor */
    if (s->map && s->mr->fd >= 0) {
        direct_atomic(s->map, cas, operand, swap, old);
        return true;
    }
    /* Atomic among HCAs, which is what IBV_ATOMIC_HCA promises: one lock of the target's arena stands for
     * its atomic unit.
     */
    if (s->map) {
        shlock_lock(unit);
        direct_atomic(s->map, cas, operand, swap, old);
        shlock_unlock(unit);
        return true;
    }
    if (proc.fab.atomics_global)
        return false; /* two system calls are not atomic towards the target's processor */
    struct iovec l = {old, 8}, r = {(void *)(uintptr_t)s->addr, 8};
    shlock_lock(unit);
    bool ok = check_cross_copy(at, process_vm_readv(at->pid, &l, 1, &r, 1, 0), 8);
    uint64_t fresh = cas ? swap : *old + operand;
    if (ok && (!cas || *old == operand)) {
        l.iov_base = &fresh;
        ok = check_cross_copy(at, process_vm_writev(at->pid, &l, 1, &r, 1, 0), 8);
    }
    shlock_unlock(unit);
    return ok;
}
