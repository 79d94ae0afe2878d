/* spawn_resources.c: repeatedly spawns as many processes as there are, exchanges messages and disconnects:
 * memory, open files and mappings do not grow. An argument sets the number of rounds, and the figures are
 * printed ten times (default 16; the first half does not count).
 *
 * A leak of any size in each spawn causes a new maximum in every round. Other growth causes only
 * occasional maxima: a table of processes grows with the 8th and the 16th spawn, and on a busy machine the
 * memory of ending processes varies by some hundred bytes. At most half of the
 * counted rounds may be maxima: of five rounds three sometimes were, of eight rounds most are not.
 *
 * ranks: 2
 * also: FISHPLATE_SHM_CMA=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

#include "mpitest.h"

/* Private memory in KiB. Shared memory does not count: it has its full size from the start and is touched
 * gradually. */
static long get_private_kib(void)
{
    long size = 0, pages = 0, shared = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld %ld", &size, &pages, &shared) != 3)
        pages = shared = 0;
    if (f)
        fclose(f);
    return (pages - shared) * (sysconf(_SC_PAGESIZE) / 1024);
}

/* The bytes that malloc has allocated; 0 if a sanitizer has replaced malloc. */
static long get_allocated_bytes(void)
{
    struct mallinfo2 now = mallinfo2();
    return (long)(now.uordblks + now.hblkhd);
}

static int count_open_files(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static int count_shared_mappings(void)
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

/* All pairs of processes exchange a large message in both directions. */
static void exchange_all_pairs(MPI_Comm inter, int parent)
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

enum resource { HEAP, FILES, MAPPINGS, KINDS };
static const char *const names[KINDS] = {"allocated bytes", "open files", "mappings"};

static void measure_resources(long now[KINDS])
{
    now[HEAP] = get_allocated_bytes();
    now[FILES] = count_open_files();
    now[MAPPINGS] = count_shared_mappings();
}

static void print_resources(int after)
{
    long now[KINDS];
    measure_resources(now);
    printf("pid %d after %d spawns: %ld KiB private, %ld B allocated, %ld files, %ld mappings\n",
           (int)getpid(), after, get_private_kib(), now[HEAP], now[FILES], now[MAPPINGS]);
    fflush(stdout);
}

/* Restarts the program without malloc's caches: until each size has its cached blocks, every round would
 * use more memory. */
static void restart_without_cache(char **argv)
{
    if (setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 0) == 0)
        execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
    if (!getenv("GLIBC_TUNABLES"))
        restart_without_cache(argv);
    MPI_Init(&argc, &argv);
    MPI_Comm up;
    MPI_Comm_get_parent(&up);
    if (up != MPI_COMM_NULL) {
        exchange_all_pairs(up, 0);
        return mpitest_end();
    }
    int times = argc > 1 ? atoi(argv[1]) : 16, first = times / 2, size, rises[KINDS] = {0};
    long memory = 0, most[KINDS] = {0}, now[KINDS];
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < times; i++) {
        MPI_Comm children;
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, size, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                       MPI_ERRCODES_IGNORE);
        exchange_all_pairs(children, 1);
        measure_resources(now);
        for (int k = 0; k < KINDS; k++) {
            rises[k] += i >= first && now[k] > most[k];
            most[k] = now[k] > most[k] ? now[k] : most[k];
        }
        if (i < first)
            memory = get_private_kib();
        if (argc > 1 && (i + 1) % (times < 10 ? 1 : times / 10) == 0)
            print_resources(i + 1);
    }
    for (int k = 0; k < KINDS; k++) {
        if (rises[k] > (times - first) / 2)
            printf("pid %d: %s grew in %d of %d rounds, to %ld\n", (int)getpid(), names[k], rises[k],
                   times - first, most[k]);
        EXPECT(rises[k] <= (times - first) / 2);
    }
    EXPECT(KEEPS_FREED || get_private_kib() - memory < 512);
    return mpitest_end();
}
