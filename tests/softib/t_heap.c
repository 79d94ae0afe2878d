/* t_heap.c: after a device is opened, malloc takes large blocks from the heap, where registered memory can
 * be in huge pages, and freed blocks remain in the heap; unless SOFTIB_MALLOC=leave is set. On a machine
 * without huge pages nothing changes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <infiniband/verbs.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES (3u << 20)

static int has_huge_pages(void)
{
    char line[128] = "";
    FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    if (!f || !fgets(line, sizeof(line), f))
        line[0] = 0;
    if (f)
        fclose(f);
    return line[0] && !strstr(line, "[never]");
}

static int report_failure(const char *what)
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
        return report_failure("cannot open a device");
    struct mallinfo2 before = mallinfo2();
    /* mallinfo2 reports 0 bytes if malloc is replaced, for example by a sanitizer. */
    if (!has_huge_pages() || before.arena + before.hblks == 0)
        return 77;
    char *block = malloc(BYTES);
    if (!block)
        return report_failure("out of memory");
    memset(block, 1, BYTES);
    int mapped = mallinfo2().hblks > before.hblks;
    if (mapped != (getenv("SOFTIB_MALLOC") != NULL))
        return report_failure(mapped ? "a large block was not taken from the heap"
                                     : "malloc was configured in spite of SOFTIB_MALLOC=leave");
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_mr *mr = pd ? ibv_reg_mr(pd, block, BYTES, IBV_ACCESS_LOCAL_WRITE) : NULL;
    if (!mr)
        return report_failure("cannot register memory");
    for (size_t i = 0; i < BYTES; i++)
        if (block[i] != 1)
            return report_failure("the contents of the memory changed");
    ibv_dereg_mr(mr);
    ibv_dealloc_pd(pd);
    free(block);
    ibv_close_device(context);
    ibv_free_device_list(list);
    return 0;
}
