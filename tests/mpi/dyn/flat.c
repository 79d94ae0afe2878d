/* flat.c: spawn as many as there are, talk, disconnect, over and over: neither memory nor open files nor mappings grow. With
 * an argument, that number of times, and the figures are printed ten times (default 16; the first half does not count).
 *
 * What is left behind by each spawn shows as a new maximum in every round, however little it is. A pool that once needs one
 * more block than before does so now and then: a table of processes grows with the 8th and the 16th spawn, and on a busy machine some
 * hundred bytes of processes that are about to end come and go. Of five rounds that made three new maxima at times; of eight it does not.
 *
 * ranks: 2
 * also: FISHPLATE_SHM_CMA=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

#include "mpitest.h"

/* Private memory in KiB. Shared memory has its size from the start and is only touched bit by bit. */
static long private_kb(void)
{
    long size = 0, pages = 0, shared = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld %ld", &size, &pages, &shared) != 3)
        pages = shared = 0;
    if (f)
        fclose(f);
    return (pages - shared) * (sysconf(_SC_PAGESIZE) / 1024);
}

/* The bytes that malloc has allocated; 0 where a sanitizer has replaced it. */
static long flat_allocated(void)
{
    struct mallinfo2 now = mallinfo2();
    return (long)(now.uordblks + now.hblkhd);
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

/* The number of mappings that are shared with other processes. */
static int flat_mappings(void)
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

/* All pairs: each connection carries a large message in both directions. */
static void round_trip(MPI_Comm inter, int parent)
{
    static int block[8192];
    int rank, size;
    MPI_Comm_rank(inter, &rank);
    MPI_Comm_remote_size(inter, &size);
    for (int i = 0; i < size; i++) {
        const int other = (size + i - rank) % size;
        MPI_Sendrecv_replace(block, 8192, MPI_INT, other, 1, other, 1, inter, MPI_STATUS_IGNORE);
    }
    MPI_Bcast(block, 10, MPI_INT, parent ? rank == 0 ? MPI_ROOT : MPI_PROC_NULL : 0, inter);
    MPI_Comm_disconnect(&inter);
}

#ifdef __SANITIZE_ADDRESS__
enum { KEEPS_FREED = 1 };
#else
enum { KEEPS_FREED = 0 };
#endif

enum what { HEAP, FILES, MAPPINGS, KINDS };
static const char *const names[KINDS] = {"allocated bytes", "open files", "mappings"};

static void test_level(long now[KINDS])
{
    now[HEAP] = flat_allocated();
    now[FILES] = open_files();
    now[MAPPINGS] = flat_mappings();
}

static void flat_print(int after)
{
    long now[KINDS];
    test_level(now);
    printf("pid %d after %d spawns: %ld KiB private, %ld B allocated, %ld files, %ld mappings\n",
           (int)getpid(), after, private_kb(), now[HEAP], now[FILES], now[MAPPINGS]);
    fflush(stdout);
}

/* Starts the program again without malloc's caches: until each size has its few cached blocks, every round would use
 * more. */
static void without_cache(char **argv)
{
    if (setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 0) == 0)
        execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
    if (!getenv("GLIBC_TUNABLES"))
        without_cache(argv);
    MPI_Init(&argc, &argv);
    MPI_Comm up;
    MPI_Comm_get_parent(&up);
    if (up != MPI_COMM_NULL) {
        round_trip(up, 0);
        return mpitest_end();
    }
    int times = argc > 1 ? atoi(argv[1]) : 16, first = times / 2, size, rises[KINDS] = {0};
    long memory = 0, most[KINDS] = {0}, now[KINDS];
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < times; i++) {
        MPI_Comm children;
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, size, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                       MPI_ERRCODES_IGNORE);
        round_trip(children, 1);
        test_level(now);
        for (int k = 0; k < KINDS; k++) {
            rises[k] += i >= first && now[k] > most[k];
            most[k] = now[k] > most[k] ? now[k] : most[k];
        }
        if (i < first)
            memory = private_kb();
        if (argc > 1 && (i + 1) % (times < 10 ? 1 : times / 10) == 0)
            flat_print(i + 1);
    }
    for (int k = 0; k < KINDS; k++) {
        if (rises[k] > (times - first) / 2)
            printf("pid %d: %s rose in %d of %d rounds, to %ld\n", (int)getpid(), names[k], rises[k],
                   times - first, most[k]);
        EXPECT(rises[k] <= (times - first) / 2);
    }
    EXPECT(KEEPS_FREED || private_kb() - memory < 512);
    return mpitest_end();
}
