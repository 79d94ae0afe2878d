/* pack.c: packs and unpacks whole messages, and copies between two typed buffers through a window that
 * fits in the first-level cache.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "dt/device_pack.h"
#include "dt/layout.h"

#define WINDOW 8192

/* The root of the layout of `count` elements. One element needs no loop node around its layout. */
static const struct dt_node *layout_root(const struct dtype *t, MPI_Count count, struct dt_node *space,
                                         int64_t *offset)
{
    if (count == 1) {
        *offset = t->layout->offset;
        return t->layout->node;
    }
    dt_layout_top(t, count, space, offset);
    return space;
}

int dt_pack_all(const struct dtype *t, MPI_Count count, const void *buffer, void *out)
{
    struct dt_node space;
    int64_t offset;
    if (unlikely(dt_is_device(buffer, count, t)))
        return dt_device_pack_all(t, count, buffer, out);
    const struct dt_node *top = layout_root(t, count, &space, &offset);
    dt_node_pack(top, ptr_add(buffer, offset), 0, top->size, out);
    return 0;
}

int dt_unpack_all(const struct dtype *t, MPI_Count count, void *buffer, const void *in, size_t len)
{
    struct dt_node space;
    int64_t offset;
    if (unlikely(dt_is_device(buffer, count, t)))
        return dt_device_unpack_all(t, count, buffer, in, len);
    const struct dt_node *top = layout_root(t, count, &space, &offset);
    dt_node_unpack(top, ptr_add(buffer, offset), 0, MIN(len, top->size), in);
    return 0;
}

int dt_copy(const void *from, MPI_Count from_count, const struct dtype *from_type, void *to,
            MPI_Count to_count, const struct dtype *to_type)
{
    struct dt_node source, target;
    int64_t source_offset, target_offset;
    dt_layout_top(from_type, from_count, &source, &source_offset);
    dt_layout_top(to_type, to_count, &target, &target_offset);
    char *mem_from = ptr_add(from, source_offset), *mem_to = ptr_add(to, target_offset);
    uint64_t len = MIN(source.size, target.size);

    if (unlikely(dt_is_device(from, from_count, from_type) || dt_is_device(to, to_count, to_type))) {
        const int rc = dt_device_copy(from, from_count, from_type, to, to_count, to_type, len);
        if (rc)
            return rc;
    } else if (len > 0 && source.type == NODE_BLOCK && target.type == NODE_BLOCK) {
        memmove(mem_to, mem_from, len);
    } else if (target.type == NODE_BLOCK) {
        dt_node_pack(&source, mem_from, 0, len, mem_to);
    } else if (source.type == NODE_BLOCK) {
        dt_node_unpack(&target, mem_to, 0, len, mem_from);
    } else {
        char window[WINDOW];
        for (uint64_t at = 0; at < len; at += WINDOW) {
            uint64_t end = MIN(at + WINDOW, len);
            dt_node_pack(&source, mem_from, at, end, window);
            dt_node_unpack(&target, mem_to, at, end, window);
        }
    }
    return source.size > target.size
               ? err_set(MPI_ERR_TRUNCATE, "%llu bytes were copied to a buffer that holds %llu",
                         (unsigned long long)source.size, (unsigned long long)target.size)
               : 0;
}
