/* nfs.c: detects NFS, and acquires locks that make the client's cache consistent. /proc/self/mountinfo shows
 * whether locks of a mount are local (options nolock and local_lock); fcntl succeeds on such a mount, too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/nfs.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"

enum { LINE_SIZE = 4096 };

/* An offset behind the end of every file: no program waits for a lock of this byte. */
#define LAST_BYTE (INT64_MAX - 1)

#define PAUSE_MIN_NS (100 * 1000)
#define PAUSE_MAX_NS (100 * 1000 * 1000)

static bool locks_are_local(const struct file *f)
{
    char line[LINE_SIZE], device[64];
    struct stat st;
    bool local = false;
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    if (!mounts)
        return false;
    if (fstat(f->fd, &st) == 0) {
        snprintf(device, sizeof(device), " %u:%u ", major(st.st_dev), minor(st.st_dev));
        while (fgets(line, sizeof(line), mounts))
            local = local || (strstr(line, device) &&
                              (strstr(line, "local_lock=all") || strstr(line, "local_lock=posix")));
    }
    fclose(mounts);
    return local;
}

void nfs_probe(struct file *f)
{
    struct statfs fs;
    if (fstatfs(f->fd, &fs) != 0 || fs.f_type != NFS_SUPER_MAGIC)
        return;
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = LAST_BYTE, .l_len = 1};
    f->on_nfs = true;
    f->locks_local = locks_are_local(f);
    f->guards = file_writes(f) && !f->locks_local && fcntl(f->fd, F_OFD_SETLK, &lock) == 0;
}

/* An NFS client invalidates a file's pages and attributes when it acquires a lock from the server. */
void nfs_refresh(struct file *f)
{
    struct flock lock = {
        .l_type = file_reads(f) ? F_RDLCK : F_WRLCK, .l_whence = SEEK_SET, .l_start = LAST_BYTE, .l_len = 1};
    if (!f->on_nfs || f->locks_local || fcntl(f->fd, F_OFD_SETLK, &lock) != 0)
        return;
    lock.l_type = F_UNLCK;
    fcntl(f->fd, F_OFD_SETLK, &lock);
}

/* An NFS client that waits for a lock repeats its request after 1 to 30 seconds, or when the server notifies
 * the client, which not every protocol version supports. This pause is shorter: an eighth of the time waited
 * so far, at most 100 ms. */
void nfs_pause_between_tries(int64_t *waited_ns)
{
    const int64_t pause = MIN(MAX(*waited_ns / 8, PAUSE_MIN_NS), PAUSE_MAX_NS);
    nanosleep(&(struct timespec){.tv_nsec = (long)pause}, NULL);
    *waited_ns += pause;
}

/* If a range of the file is locked, an NFS client sends each part of a page separately and waits for the
 * server's answer. If the whole file is locked, the client sends a page once, at unlock; it must be able
 * to read the page for that. */
bool nfs_locks_whole_file(const struct file *f, uint64_t piece)
{
    return f->on_nfs && f->guards && file_reads(f) && piece < (uint64_t)sysconf(_SC_PAGESIZE);
}

int nfs_check_locks(const struct file *f)
{
    if (!f->locks_local || f->nnodes == 1)
        return 0;
    return err_set(
        MPI_ERR_IO,
        "%s: locks of this mount hold on one node only (option nolock or local_lock). Atomic mode and "
        "shared file pointers between nodes need the server's locks: mount without that option",
        f->name);
}
