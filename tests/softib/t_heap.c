/* t_heap.c: once a device is open, large blocks come from the heap, where registered memory can lie in huge
 * pages, and a block that was freed stays there; unless the user has said that malloc is to be left alone. On
 * a machine without huge pages nothing changes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <infiniband/verbs.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES (3u << 20)

static int huge_pages_here(void)
{
    char line[128] = "";
    FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    if (!f || !fgets(line, sizeof(line), f))
        line[0] = 0;
    if (f)
        fclose(f);
    return line[0] && !strstr(line, "[never]");
}

static int heap_failed(const char *what)
{
    fprintf(stderr, "t_heap: %s\n", what);
    return 1;
}

int main(void)
{
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    struct ibv_context *context = list && n > 0 ? ibv_open_device(list[0]) : NULL;
    if (!context)
        return heap_failed("no device");
    struct mallinfo2 before = mallinfo2();
    if (!huge_pages_here() || before.arena + before.hblks == 0) /* or another malloc: a sanitizer's */
        return 77;
    char *block = malloc(BYTES);
    if (!block)
        return heap_failed("no memory");
    memset(block, 1, BYTES);
    int mapped = mallinfo2().hblks > before.hblks;
    if (mapped != (getenv("SOFTIB_MALLOC") != NULL))
        return heap_failed(mapped ? "a large block was mapped by itself" : "malloc was not left alone");
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_mr *mr = pd ? ibv_reg_mr(pd, block, BYTES, IBV_ACCESS_LOCAL_WRITE) : NULL;
    if (!mr)
        return heap_failed("no region");
    for (size_t i = 0; i < BYTES; i++)
        if (block[i] != 1)
            return heap_failed("the memory has changed");
    ibv_dereg_mr(mr);
    ibv_dealloc_pd(pd);
    free(block);
    ibv_close_device(context);
    ibv_free_device_list(list);
    return 0;
}
