/* unprivileged.c: softib finds the descriptors of the library's shared memory (flags of barriers, windows)
 * in a process without privileges too. Softib keeps a descriptor of each file that it found; without a
 * descriptor each access would need a system call.
 *
 * ranks: 2
 * nodes: only 2
 * env: FISHPLATE_COLL=barrier=rdma
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dirent.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mpitest.h"

static void drop_privileges(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2];
    memset(none, 0, sizeof(none));
    EXPECT_EQ(syscall(SYS_capset, &head, none), 0);
}

/* Returns the number of descriptors of memfd files with this name. */
static int count_descriptors(const char *name)
{
    char link[300], to[300], want[100];
    DIR *all = opendir("/proc/self/fd");
    int n = 0;
    snprintf(want, sizeof(want), "/memfd:%s (", name);
    for (struct dirent *e; all && (e = readdir(all));) {
        snprintf(link, sizeof(link), "/proc/self/fd/%.200s", e->d_name);
        const ssize_t len = readlink(link, to, sizeof(to) - 1);
        to[len > 0 ? len : 0] = 0;
        n += strncmp(to, want, strlen(want)) == 0;
    }
    if (all)
        closedir(all);
    return n;
}

int main(int argc, char **argv)
{
    MPI_Win win[3];
    char *memory;
    drop_privileges();
    mpitest_begin(&argc, &argv);
    for (int i = 0; i < 100; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(count_descriptors("fishplate-barrier"), 1);
    for (int i = 0; i < 3; i++) {
        MPI_Win_allocate(100, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win[i]);
        EXPECT_EQ(count_descriptors("fishplate-window"), i + 1);
    }
    for (int i = 0; i < 3; i++)
        MPI_Win_free(&win[i]);
    return mpitest_end();
}
