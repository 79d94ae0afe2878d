/* flat.c: spawn, talk, disconnect, over and over: neither memory nor open files grow. With an argument, so many times
 * (default 12; the first quarter does not count).
 *
 * ranks: 1
 * nodes: no
 * also: FISHPLATE_SHM_CMA=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <unistd.h>

#include "mpitest.h"

static long resident_kb(void)
{
    long size = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld", &size, &pages) != 2)
        pages = 0;
    if (f)
        fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static int open_files(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* Memory of other processes, and of this one for them, that is mapped here. */
static int mappings(void)
{
    char line[512];
    int n = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof(line), f))
        n += strstr(line, "fishplate") != NULL;
    if (f)
        fclose(f);
    return n;
}

static void round_trip(MPI_Comm inter, int parent)
{
    static int block[8192];
    MPI_Sendrecv_replace(block, 8192, MPI_INT, 0, 1, 0, 1, inter, MPI_STATUS_IGNORE);
    MPI_Bcast(block, 10, MPI_INT, parent ? MPI_ROOT : 0, inter);
    MPI_Comm_disconnect(&inter);
}

int main(int argc, char **argv)
{
    MPI_Comm up;
    mpitest_begin(&argc, &argv);
    MPI_Comm_get_parent(&up);
    if (up != MPI_COMM_NULL) {
        round_trip(up, 0);
        return mpitest_end();
    }
    int times = argc > 1 ? atoi(argv[1]) : 12, files = 0, shared = 0;
    long memory = 0;
    for (int i = 0; i < times; i++) {
        if (i == times / 4) {
            memory = resident_kb();
            files = open_files();
            shared = mappings();
        }
        MPI_Comm children;
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                       MPI_ERRCODES_IGNORE);
        round_trip(children, 1);
    }
    EXPECT_EQ(open_files(), files);
    EXPECT_EQ(mappings(), shared);
    long grown = resident_kb() - memory;
    if (argc > 1)
        printf("%d spawns: %ld KiB at the end, %ld KiB more than after a quarter\n", times, resident_kb(),
               grown);
#ifndef __SANITIZE_ADDRESS__ /* which keeps what is freed */
    EXPECT(grown < 512);
#endif
    return mpitest_end();
}
