/* mapped.c: see mapped.h. A page that cannot be had (no space, quota, disk error) must not end in SIGBUS: the kernel is
 * asked for all pages first (MADV_POPULATE_WRITE), and where that fails system calls write the same bytes and report the
 * error. A file that is cut after that is seen by bus.h.
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
/* About the time in which the kernel copies a few batches. */
#define TURN_WAIT_NS (2 * 1000 * 1000)

/* Tried once: where locks do not work, no rank may read, modify and write a block. */
static bool has_locks(struct file *f)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    if (fcntl(f->fd, F_OFD_SETLK, &lock) != 0)
        return errno == EAGAIN || errno == EACCES; /* somebody has one */
    posix_unlock(f, 0, 1);
    return true;
}

/* Not on file systems that several nodes write (a page is written back as a whole), nor where a page that was written
 * before may need new space (btrfs). */
void mapped_probe(struct file *f)
{
    struct statfs fs;
    const int both = MPI_MODE_RDWR;
    if (fstatfs(f->fd, &fs) != 0)
        return;
    const bool disk = fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == XFS_MAGIC;
    f->in_memory = fs.f_type == TMPFS_MAGIC;
    f->near = disk || f->in_memory;
    const bool mapped = f->maps; /* rank 0 asks twice */
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

/* One byte at the end makes the file long enough. It is one that the caller is about to write, and unlike ftruncate it
 * cannot cut off what another rank has just added.
 *
 * A file that is long enough may have become so just now: ext4 publishes the new length first and then clears what lies between the old
 * end and the new one, under the file's lock in the kernel (seen on Linux 6.18; XFS was not tried). A mapping does not ask for that lock, and what is stored before
 * that is lost. So it is asked for here, by a call that takes it and costs little. */
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
    m->length = (size_t)(to - begin);
    if (!f->maps || !mapped_lengthen_file(f, reach))
        return false;
    m->at = mmap(NULL, m->length, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, begin);
    if (m->at == MAP_FAILED)
        return false;
    m->base = (char *)m->at + (from - begin);
    return true;
}

bool mapped_prefault(const struct mapped *m, uint64_t skip, uint64_t len)
{
    const uintptr_t at = (uintptr_t)m->base + skip, begin = at - at % (uintptr_t)sysconf(_SC_PAGESIZE);
    return madvise((char *)m->at + (begin - (uintptr_t)m->at), at + len - begin, MADV_POPULATE_WRITE) == 0;
}

void mapped_begin(struct mapped *m)
{
    bus_watch_begin(&m->watch, m->at, m->length);
}

bool mapped_end(struct mapped *m)
{
    return bus_watch_end(&m->watch);
}

void mapped_close(struct mapped *m)
{
    munmap(m->at, m->length);
}

void mapped_update_times(struct file *f)
{
    futimens(f->fd, NULL);
}

bool mapped_try_take_turn(struct file *f)
{
    return atomic_load_explicit(f->turn, memory_order_relaxed) == 0 && atomic_exchange(f->turn, 1) == 0;
}

/* Waits for the node's turn for a limited time. The rank that has the turn may be waiting for a disk or have died;
 * without the turn the kernel's file lock still keeps the data correct. */
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
