/* big.h: buffers of more than 2^31 bytes on a small machine. One small file is mapped repeatedly, so that
 * gigabytes of addresses use one megabyte of memory. Data to send is periodic, and received data must show
 * the same period. The first page and the last pages are private memory, where the test checks that a
 * transfer begins and ends at the right byte.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_MPI_BIG_H
#define FP_MPI_BIG_H

#include <dlfcn.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mpitest.h"

#define BIG_2G ((MPI_Count)1 << 31)
enum { BIG_PAGE = 65536, BIG_PERIOD = 17 * BIG_PAGE, BIG_EDGE = 3 * BIG_PAGE };

struct big {
    unsigned char *at;
    unsigned char *period; /* another mapping of the repeated part, in one piece */
    size_t mapped_bytes;
};

static inline unsigned char big_value(MPI_Count i)
{
    unsigned p = (unsigned)(i % BIG_PERIOD);
    return (unsigned char)(p * 13 + p / 251 + p / 4096);
}

/* Maps a buffer of `len` bytes and the pages after its end. */
static inline struct big big_map(MPI_Count len)
{
    struct big b = {.mapped_bytes = ((size_t)len + BIG_EDGE + BIG_PERIOD) / BIG_PERIOD * BIG_PERIOD};
    int fd = memfd_create("big", MFD_CLOEXEC);
    b.at = mmap(NULL, b.mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fd < 0 || ftruncate(fd, BIG_PERIOD) != 0 || b.at == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t at = 0; at < b.mapped_bytes; at += BIG_PERIOD)
        if (mmap(b.at + at, BIG_PERIOD, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd,
                 0) == MAP_FAILED)
            MPI_Abort(MPI_COMM_WORLD, 1);
    b.period = mmap(NULL, BIG_PERIOD, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return b;
}

static inline void big_unmap(struct big *b)
{
    munmap(b->at, b->mapped_bytes);
    munmap(b->period, BIG_PERIOD);
}

/* Maps a source for sends: each byte is that of the pattern, reduced to the bits of `mask`. */
static inline struct big big_source(MPI_Count len, unsigned char mask)
{
    struct big b = big_map(len);
    for (MPI_Count i = 0; i < BIG_PERIOD; i++)
        b.period[i] = big_value(i) & mask;
    return b;
}

static inline void big_make_private(void *at, size_t len)
{
    if (mmap(at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Offset of the private pages that hold the last bytes of a transfer of `len` bytes. */
static inline size_t big_edge_offset(MPI_Count len)
{
    return (size_t)(len - 1) / BIG_PAGE * BIG_PAGE - BIG_PAGE;
}

/* Maps a target for receives of up to `len` bytes. */
static inline struct big big_target(MPI_Count len)
{
    struct big b = big_map(len);
    big_make_private(b.at, BIG_PAGE);
    big_make_private(b.at + big_edge_offset(len - BIG_PAGE), 4 * BIG_PAGE);
    return b;
}

/* Prepares the target for a transfer of `len` bytes, at most one page less than its size. */
static inline void big_clear(struct big *b, MPI_Count len)
{
    memset(b->period, 0xee, BIG_PERIOD);
    memset(b->at, 0xee, BIG_PAGE);
    memset(b->at + big_edge_offset(len), 0xee, 2 * BIG_PAGE + 64);
}

/* Checks that the target holds bytes `from` to `from + len - 1` of the pattern (the bits in `mask`) and no
 * data after them. Returns the number of wrong bytes among the checked ones. */
static inline long big_count_wrong(const struct big *b, MPI_Count from, MPI_Count len, unsigned char mask)
{
    long wrong = 0;
    for (MPI_Count i = 0; i < BIG_PAGE + BIG_PERIOD; i++)
        wrong += b->at[i] != (big_value(from + i) & mask);
    for (MPI_Count i = (MPI_Count)big_edge_offset(len); i < len; i++)
        wrong += b->at[i] != (big_value(from + i) & mask);
    for (MPI_Count i = len; i < len + 64; i++)
        wrong += b->at[i] != 0xee;
    return wrong;
}

/* Skips the test under sanitizers, whose shadow memory cannot cover gigabytes. */
static inline void big_skip_under_sanitizer(void)
{
    if (dlsym(RTLD_DEFAULT, "__asan_init") || dlsym(RTLD_DEFAULT, "__tsan_init"))
        exit(77);
}

/* Returns the count of this run: 2^31 - 1, or with BIG=0 2^31, with BIG=1 2^31 + 1. */
static inline MPI_Count big_count(int *which)
{
    const char *text = getenv("BIG");
    *which = text ? atoi(text) + 1 : 0;
    return BIG_2G - 1 + *which;
}

#endif
