/* segment.c: maps the node's shared memory and waits until all ranks of the node have done so.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "net/shm/segment.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/shared_memory.h"
#include "base/tunable.h"
#include "boot/boot.h"

#define LAYOUT_VERSION 3u

static void segment_measure(struct segment *s)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    s->rank_size = ALIGN_UP(sizeof(struct segment_rank) + ring_extra_bytes(s->data_lines, s->nlocal), page);
    s->size = ALIGN_UP(sizeof(struct segment_head), page) + s->rank_size * s->nlocal + SEGMENT_AREA_SIZE;
}

/* Checks that all ranks have the same layout: otherwise they would misinterpret each other's memory. */
static int segment_check_layout(struct segment *s)
{
    uint32_t mine =
        LAYOUT_VERSION << 24 | (uint32_t)__builtin_ctz(s->data_lines) << 16 | (s->nlocal & 0xffff);
    uint32_t seen = 0;
    if (atomic_compare_exchange_strong(&s->head->settings, &seen, mine) || seen == mine)
        return 0;
    return err_set(MPI_ERR_OTHER,
                   "ranks of this node disagree on the layout of shared memory (%08x here, %08x elsewhere): "
                   "give all ranks the same FISHPLATE_SHM_RING and the same version of the library",
                   mine, seen);
}

/* Sets the size of the file, if no rank has done so. The size includes spans, unless the size of files is
 * limited (a file that grows past the limit kills the process). */
static bool segment_size_file(struct segment *s)
{
    struct rlimit limit;
    const uint64_t spans = ALIGN_UP((uint64_t)s->size, (uint64_t)2 << 20);
    const bool limited = getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
    if (!shared_memory_seal(s->fd, limited ? s->size : spans + SEGMENT_SPANS) &&
        !shared_memory_seal(s->fd, s->size))
        return false;
    if (shared_memory_is_valid(s->fd, SHARED_MEMORY_NODE, spans + SEGMENT_SPANS))
        s->spans = spans;
    errno = EPERM; /* another process sent a wrong file, or disagrees about its size */
    return shared_memory_is_valid(s->fd, SHARED_MEMORY_NODE, s->size);
}

static int segment_map(struct segment *s)
{
    segment_measure(s);
    if (!segment_size_file(s)) {
        const int why = errno;
        if (access("/proc/self/fd", X_OK) != 0)
            return err_set(
                MPI_ERR_UNSUPPORTED_OPERATION,
                "the ranks of a node share memory through /proc, which is not mounted here; mount it: mount "
                "-t proc proc /proc");
        return err_set(MPI_ERR_NO_MEM, "cannot size the node's shared memory to %zu bytes: %s", s->size,
                       err_reason(why));
    }
    void *base = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, s->fd, 0);
    if (base == MAP_FAILED)
        return err_set(MPI_ERR_NO_MEM, "cannot map %zu bytes of shared memory: %s", s->size,
                       err_reason(errno));
    s->head = base;
    s->ranks = (char *)base + ALIGN_UP(sizeof(struct segment_head), (size_t)sysconf(_SC_PAGESIZE));
    s->area = s->ranks + s->rank_size * s->nlocal;
    return segment_check_layout(s);
}

int segment_open(struct boot *boot, uint32_t data_lines, struct segment *out)
{
    struct segment s = {.nlocal = boot->nlocal,
                        .data_lines = data_lines,
                        .fd = boot->node_fd,
                        .own_fd = boot->node_fd < 0}; /* boot closes a descriptor of the launcher */
    int rc = s.own_fd ? fdpass_exchange(boot, &s.fd) : 0;
    rc = rc ? rc : segment_map(&s);
    if (rc != 0) {
        segment_close(&s);
        return rc;
    }
    *out = s;
    return 0;
}

void segment_close(struct segment *s)
{
    if (s->head)
        munmap(s->head, s->size);
    if (s->own_fd && s->fd >= 0)
        close(s->fd);
}

static int report_missing_ranks(struct segment *s, struct boot *boot, int64_t seconds)
{
    char list[256] = "";
    size_t used = 0;
    int missing = 0;
    for (uint32_t i = 0; i < s->nlocal; i++) {
        if (atomic_load(&segment_rank(s, i)->present))
            continue;
        if (missing++ < 16 && used < sizeof(list))
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%u", missing > 1 ? ", " : "",
                                     boot->local_ranks[i]);
    }
    return err_set(MPI_ERR_OTHER,
                   "%d of the %u ranks on %s did not reach MPI_Init within %lld seconds: rank %s%s. They may "
                   "have ended, hang, or wait for input; FISHPLATE_INIT_TIMEOUT changes the limit",
                   missing, s->nlocal, boot->host, (long long)seconds, list, missing > 16 ? ", ..." : "");
}

int segment_wait_all_present(struct segment *s, struct boot *boot)
{
    const struct tunable *limit = tunables_find("INIT_TIMEOUT");
    int64_t seconds = limit ? limit->value : 60;
    atomic_store(&segment_rank(s, boot->local_rank)->present, 1);
    uint32_t count = atomic_fetch_add(&s->head->arrived, 1) + 1;
    if (count == s->nlocal) {
        syscall(SYS_futex, &s->head->arrived, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
        return 0;
    }
    uint64_t deadline = clock_ns() + (uint64_t)seconds * 1000000000u;
    while ((count = atomic_load(&s->head->arrived)) < s->nlocal) {
        uint64_t now = clock_ns();
        if (now >= deadline)
            return report_missing_ranks(s, boot, seconds);
        uint64_t left = deadline - now;
        struct timespec t = {.tv_sec = (time_t)(left / 1000000000u), .tv_nsec = (long)(left % 1000000000u)};
        syscall(SYS_futex, &s->head->arrived, FUTEX_WAIT, count, &t, NULL, 0);
    }
    return 0;
}

uint32_t segment_cpus(const struct segment *s)
{
    uint32_t total = 0;
    for (size_t w = 0; w < SEGMENT_CPUS / 64; w++) {
        uint64_t any = 0;
        for (uint32_t i = 0; i < s->nlocal; i++)
            any |= segment_rank(s, i)->cpus[w];
        total += (uint32_t)__builtin_popcountll(any);
    }
    return total;
}
