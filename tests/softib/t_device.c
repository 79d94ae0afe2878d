/* t_device.c: copies while device memory is registered, with a simulated driver that stores bytes in any
 * order: receivers that poll the last byte of a message find the rest complete. And mappings of other
 * members' regions: a mapping in use survives the deregistration of its region, and a mapping of freed
 * device memory is removed before the next region is mapped.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "expect.h"
#include "memory/copy.h"
#include "memory/gpu.h"
#include "memory/share.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES (3u << 20)
#define OWNER 2

struct proc proc;
unsigned shlock_self = 1;
atomic_bool gpu_used = true;

/* ---- simulated driver: [device, device + BYTES) is device memory ---- */

static char device[BYTES], host[BYTES], other[BYTES];
static const char *end;          /* end of the message that is copied */
static bool last_byte_too_early; /* the last byte of the message was stored together with others */
static int device_mapped;        /* number of mappings of device memory */

static bool is_device(const char *p)
{
    return p >= device && p < device + BYTES;
}

bool gpu_is_device_memory(uint64_t addr)
{
    return is_device((const char *)(uintptr_t)addr);
}

bool gpu_involved(const char *to, const char *from)
{
    return is_device(to) || is_device(from);
}

bool gpu_list_has_device_memory(const struct iovec *iov, unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        if (is_device(iov[i].iov_base))
            return true;
    return false;
}

bool gpu_move(char *to, const char *from, size_t n)
{
    last_byte_too_early |= to + n == end && n > 1;
    memmove(to, from, n);
    return true;
}

char *gpu_map(const struct gpu_handle *handle, void **map)
{
    (void)handle;
    device_mapped++;
    *map = device;
    return device;
}

void gpu_unmap(void *map)
{
    (void)map;
    device_mapped--;
}

/* ---- other parts of softib ---- */

bool share_is_worthwhile(struct peer *p)
{
    (void)p;
    return false;
}

bool share_copy(struct peer *p, bool inward, const struct iovec *far, int nfar, const struct iovec *near,
                int nnear, uint64_t n)
{
    (void)p, (void)inward, (void)far, (void)nfar, (void)near, (void)nnear, (void)n;
    return false;
}

/* Replaces process_vm_readv and process_vm_writev within this process. The kernel may store the bytes of a
 * piece in any order: the last byte of a message must be a separate piece. */
static ssize_t move_pieces(const struct iovec *near, const struct iovec *far, unsigned long nfar, bool inward)
{
    ssize_t at = 0;
    for (unsigned long i = 0; i < nfar; i++) {
        char *there = far[i].iov_base, *here = (char *)near->iov_base + at;
        last_byte_too_early |= !inward && there + far[i].iov_len == end && far[i].iov_len > 1;
        memmove(inward ? here : there, inward ? there : here, far[i].iov_len);
        at += (ssize_t)far[i].iov_len;
    }
    return at;
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *l, unsigned long nl, const struct iovec *r,
                         unsigned long nr, unsigned long flags)
{
    (void)pid, (void)flags;
    EXPECT(nl == 1);
    return move_pieces(l, r, nr, true);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *l, unsigned long nl, const struct iovec *r,
                          unsigned long nr, unsigned long flags)
{
    (void)pid, (void)flags;
    EXPECT(nl == 1);
    return move_pieces(l, r, nr, false);
}

void shlock_lock_contended(struct shlock *l)
{
    (void)l;
    abort();
}

void peer_post_event(struct peer *p, enum sh_event_kind kind, uint32_t index, uint32_t detail)
{
    (void)p, (void)kind, (void)index, (void)detail;
}

void *peer_map_address(struct peer *p, uint64_t off)
{
    (void)p, (void)off;
    return NULL;
}

int shared_open_checked(int pid, int fd, uint64_t from, uint64_t length)
{
    (void)pid, (void)from, (void)length;
    return dup(fd);
}

/* ---- copies ---- */

static void copy_and_check(struct peer *to, char *target, const char *source, bool mapped)
{
    struct sh_mr region = {.length = BYTES, .fd = -1};
    struct rseg seg = {.addr = (uintptr_t)target, .len = BYTES, .map = mapped ? target : NULL, .mr = &region};
    const struct iovec iov = {(void *)(uintptr_t)source, BYTES};
    for (unsigned i = 0; i < BYTES; i++)
        ((char *)(uintptr_t)source)[i] = (char)(i * 7 + i / 1000);
    memset(target, 0, BYTES);
    last_byte_too_early = false;
    end = target + BYTES;
    EXPECT(copy_to_peer(to, &seg, 1, &iov, 1, BYTES));
    EXPECT(!memcmp(target, source, BYTES));
    EXPECT(!last_byte_too_early);
}

/* ---- mappings ---- */

static void make_region(struct peer *owner, uint32_t index, uint32_t access, int fd)
{
    struct sh_mr *s = &owner->arena->mr[index];
    *s = (struct sh_mr){.access = access, .length = 4096, .fd = fd, .serial = index};
    atomic_store(&s->rkey, index << MR_SHIFT | 1);
}

static bool hold_region(struct peer *owner, uint32_t index, struct rseg *out)
{
    return mr_hold_remote(owner, index << MR_SHIFT | 1, 0, 0, 4096, 0, out);
}

static void test_mapping_in_use_stays(struct peer *owner)
{
    const int mine = memfd_create("t_device", MFD_CLOEXEC), fd = memfd_create("t_device", MFD_CLOEXEC);
    struct rseg used, next;
    EXPECT(mine >= 0 && fd >= 0 && !ftruncate(fd, 4096) && !ftruncate(mine, 4096));
    EXPECT(pwrite(mine, "m", 1, 0) == 1);
    make_region(owner, 1, 0, mine);
    EXPECT(hold_region(owner, 1, &used) && used.map);
    /* The owner has called ibv_dereg_mr, which waits until the mapping is no longer used. */
    atomic_store(&owner->arena->mr[1].rkey, 0);
    for (uint32_t i = 2; i < 100; i++) {
        make_region(owner, i, 0, fd);
        EXPECT(hold_region(owner, i, &next) && next.map);
        mr_release(&next);
    }
    EXPECT(used.map && *used.map == 'm'); /* the mapping was neither removed nor replaced */
    mr_release(&used);
    close(mine);
    close(fd);
}

static void test_stale_device_memory_is_unmapped(struct peer *owner)
{
    struct rseg s;
    for (uint32_t i = 200; i < 210; i++) {
        make_region(owner, i, MR_GPU, -1);
        EXPECT(hold_region(owner, i, &s) && s.map == device);
        mr_release(&s);
        EXPECT(device_mapped == 1);
        atomic_store(&owner->arena->mr[i].rkey, 0);
    }
}

int main(void)
{
    struct peer *owner = calloc(1, sizeof(*owner));
    struct arena *arena = mmap(NULL, sizeof(*arena), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    proc.reg = mmap(NULL, sizeof(*proc.reg), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!owner || arena == MAP_FAILED || proc.reg == MAP_FAILED)
        return 1;
    proc.slot = 1;
    proc.arena = arena;
    owner->slot = OWNER;
    owner->arena = arena;
    owner->mapped = sizeof(*arena);
    owner->pid = getpid();
    copy_and_check(owner, other, host, true);
    copy_and_check(owner, host, device, true);
    copy_and_check(owner, device, host, true);
    copy_and_check(owner, host, device, false);
    test_mapping_in_use_stays(owner);
    test_stale_device_memory_is_unmapped(owner);
    free(owner);
    return failures != 0;
}
