/* mapped.c: writes small pieces through a mapping of the file. A page that cannot be allocated (no space,
 * quota, disk error) must not end in SIGBUS: all pages are populated first (MADV_POPULATE_WRITE), and if that
 * fails, system calls write the same bytes and report the error. bus.h detects a file that is truncated
 * afterwards.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "io/posix.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#define XFS_MAGIC  0x58465342
#define TURN_SPINS 32
/* Limit of the wait for a turn: the time in which the kernel writes a few batches. */
#define TURN_WAIT_NS (2 * 1000 * 1000)

/* True if locks work. Without locks no rank may read, modify and write a range. */
static bool has_locks(struct file *f)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    if (fcntl(f->fd, F_OFD_SETLK, &lock) != 0)
        return errno == EAGAIN || errno == EACCES; /* another process holds the lock */
    posix_unlock(f, 0, 1);
    return true;
}

/* Mappings are not used on file systems that several nodes write, since whole pages are written back, and
 * not on file systems on which a page that was written before may need new space (btrfs). */
void mapped_probe(struct file *f)
{
    struct statfs fs;
    const int both = MPI_MODE_RDWR;
    if (fstatfs(f->fd, &fs) != 0)
        return;
    const bool disk = fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == XFS_MAGIC;
    f->in_memory = fs.f_type == TMPFS_MAGIC;
    f->near = disk || f->in_memory;
    const bool mapped = f->maps; /* rank 0 probes a second time after the broadcast of the hints */
    f->maps = f->near && (f->amode & both) == both && f->hints.map != IO_DISABLE;
    if (f->maps && !mapped)
        bus_open();
    if (mapped && !f->maps)
        bus_close();
    f->guards = file_writes(f) && disk && has_locks(f);
}

void mapped_close_watch(struct file *f)
{
    if (f->maps)
        bus_close();
}

/* A write of one byte at the end makes the file long enough. The byte is one that the caller is about to
 * write. Unlike ftruncate, the write cannot remove bytes that another rank has just appended.
 *
 * Another rank may be extending a file that is long enough: ext4 publishes the new length first and then
 * clears the bytes between the old end and the new one, under the file's lock in the kernel (seen on Linux
 * 6.18; XFS was not tried). Stores through a mapping do not wait for that lock, and the clearing would
 * overwrite them. Updating the file times waits for the lock at little cost. */
static bool mapped_lengthen_file(struct file *f, int64_t to)
{
    struct stat st;
    if (fstat(f->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    if (st.st_size < to)
        return pwrite(f->fd, "", 1, to - 1) == 1;
    if (!f->in_memory)
        mapped_update_times(f);
    return true;
}

bool mapped_open(struct mapped *m, struct file *f, int64_t from, int64_t to, int64_t reach)
{
    const int64_t begin = from - from % sysconf(_SC_PAGESIZE);
    const size_t length = (size_t)(to - begin);
    if (!f->maps || !mapped_lengthen_file(f, reach))
        return false;
    void *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, begin);
    if (at == MAP_FAILED)
        return false;
    *m = (struct mapped){.base = (char *)at + (from - begin), .watch = {.at = at, .length = length}};
    return true;
}

bool mapped_prefault(const struct mapped *m, uint64_t skip, uint64_t len)
{
    char *at = m->base + skip;
    const size_t in_page = (uintptr_t)at % (uintptr_t)sysconf(_SC_PAGESIZE);
    return madvise(at - in_page, in_page + len, MADV_POPULATE_WRITE) == 0;
}

void mapped_close(struct mapped *m)
{
    munmap(m->watch.at, m->watch.length);
}

void mapped_update_times(struct file *f)
{
    futimens(f->fd, NULL);
}

bool mapped_try_take_turn(struct file *f)
{
    return atomic_load_explicit(f->turn, memory_order_relaxed) == 0 && atomic_exchange(f->turn, 1) == 0;
}

/* Waits for the node's turn for a limited time. The rank that has the turn may be waiting for a disk or
 * have died; without the turn the kernel's file lock still keeps the data correct. */
bool mapped_turn_wait(struct file *f)
{
    uint64_t until = 0;
    while (!mapped_try_take_turn(f)) {
        for (int i = 0; i < TURN_SPINS; i++)
            cpu_relax();
        const uint64_t now = clock_ns();
        until = until ? until : now + TURN_WAIT_NS;
        if (now > until)
            return false;
    }
    return true;
}

void mapped_release_turn(struct file *f)
{
    atomic_store_explicit(f->turn, 0, memory_order_release);
}
