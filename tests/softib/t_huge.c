/* t_huge.c: new memory is brought together into huge pages when it is registered, but a program that never
 * uses any of it again does not go on paying for that: after some hundred regions they stay as they are.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE    (2ul << 20)
#define REGIONS 400

/* KiB in huge pages of the mapping that holds the address. */
static long huge_kib(const void *p)
{
    char line[512];
    unsigned long from, to;
    long kib = 0;
    int here = 0;
    FILE *f = fopen("/proc/self/smaps", "r");
    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            here = (uintptr_t)p >= from && (uintptr_t)p < to;
        else if (here && sscanf(line, "AnonHugePages: %ld", &kib) == 1)
            break;
    }
    if (f)
        fclose(f);
    return kib;
}

static int failed(const char *what)
{
    fprintf(stderr, "t_huge: %s\n", what);
    return 1;
}

int main(void)
{
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    struct ibv_context *context = list && n > 0 ? ibv_open_device(list[0]) : NULL;
    struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
    long first = 0, last = 0;
    if (!pd)
        return failed("no device");
    for (int i = 0; i < REGIONS; i++) {
        char *map = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (map == MAP_FAILED)
            return failed("no memory");
        char *block = (char *)(((uintptr_t)map + HUGE - 1) & ~(HUGE - 1));
        memset(block, i, HUGE);
        if (i == 0 && huge_kib(block))
            return 77; /* all memory is in huge pages here */
        struct ibv_mr *mr = ibv_reg_mr(pd, block, HUGE, IBV_ACCESS_LOCAL_WRITE);
        if (!mr)
            return failed("no region");
        last = huge_kib(block);
        first = i == 0 ? last : first;
        for (size_t k = 0; k < HUGE; k += 4096)
            if (block[k] != (char)i)
                return failed("the memory has changed");
        ibv_dereg_mr(mr);
        munmap(map, 2 * HUGE);
        if (!first)
            return 77; /* no huge pages to be had */
    }
    ibv_dealloc_pd(pd);
    ibv_close_device(context);
    ibv_free_device_list(list);
    return last ? failed("memory that is never used again is still brought together") : 0;
}
