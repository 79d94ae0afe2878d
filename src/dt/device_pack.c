/* device_pack.c: chooses how typed data in device memory is copied: a single block by one copy, equally
 * spaced rows by one strided copy, other layouts by a kernel with a list of blocks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dt/device_pack.h"

#include <string.h>

#include "base/err.h"
#include "dt/layout.h"
#include "gpu/kernels.h"

#define SEGMENTS_MOST (GPU_STAGING_SIZE / sizeof(struct gpu_segment))

/* A copy between packed data and a layout in device memory, in one direction. */
struct device_move {
    char *dense;
    bool unpacks;
    struct gpu_segment *segments; /* in a staging buffer, which kernels can read */
    char *window;                 /* staging for dense memory that kernels cannot access; else NULL */
};

static int move_block(const struct device_move *m, char *device, char *dense, size_t size)
{
    return m->unpacks ? gpu_copy(device, dense, size) : gpu_copy(dense, device, size);
}

/* Copies rows of equal length at equal distances by a strided copy. */
static int move_rows(const struct device_move *m, char *device, int64_t stride, size_t width, size_t rows)
{
    return m->unpacks ? gpu_copy_rows(device, (size_t)stride, m->dense, width, width, rows)
                      : gpu_copy_rows(m->dense, width, device, (size_t)stride, width, rows);
}

/* Copies block by block, for memory that the kernels cannot access. */
static int move_segments_singly(const struct device_move *m, char *base, char *dense, size_t count)
{
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        const struct gpu_segment *s = &m->segments[i];
        rc = move_block(m, base + s->offset, dense + s->start, s->length);
    }
    return rc;
}

static int move_segments(const struct device_move *m, char *base, char *dense, size_t count, size_t size)
{
    char *reachable = m->window ? m->window : dense;
    if (m->window && m->unpacks)
        memcpy(m->window, dense, size);
    int rc = m->unpacks ? gpu_scatter(base, reachable, m->segments, count)
                        : gpu_gather(reachable, base, m->segments, count);
    if (rc == ERR_AGAIN)
        return move_segments_singly(m, base, dense, count);
    if (rc == 0 && m->window && !m->unpacks)
        memcpy(dense, m->window, size);
    return rc;
}

/* Collects blocks until the list or the window is full. */
static int move_blocks(const struct device_move *m, struct dt_cursor *c, size_t len)
{
    const size_t most = m->window ? GPU_STAGING_SIZE : SIZE_MAX;
    int rc = 0;
    for (size_t done = 0; done < len && rc == 0;) {
        char *base = NULL;
        size_t count = 0, size = 0;
        while (count < SEGMENTS_MOST && size < MIN(most, len - done)) {
            void *piece;
            const size_t n = dt_cursor_next(c, MIN(most, len - done) - size, &piece);
            if (!base)
                base = piece;
            m->segments[count++] =
                (struct gpu_segment){.offset = (char *)piece - base, .start = size, .length = n};
            size += n;
        }
        rc = move_segments(m, base, m->dense + done, count, size);
        done += size;
    }
    return rc;
}

/* True if the range consists of whole rows of equal distance; *device is the address of the first one. */
static bool find_whole_rows(const struct dt_cursor *c, size_t len, char **device, int64_t *stride,
                            size_t *width)
{
    struct dt_node top;
    int64_t offset;
    dt_layout_top(c->type, c->count, &top, &offset);
    if (top.type != NODE_LOOP || top.loop.child->type != NODE_BLOCK)
        return false;
    *stride = top.loop.stride;
    *width = top.loop.child->size;
    *device = ptr_add(c->buffer, offset + (int64_t)(c->position / *width) * *stride);
    /* Drivers limit the distance of rows to 2 GiB. */
    return c->position % *width == 0 && len % *width == 0 && *stride >= (int64_t)*width &&
           *stride < INT32_MAX;
}

/* Copies data that lies in several kinds of memory: each block separately. */
static int copy_blocks_separately(const struct device_move *m, struct dt_cursor *c, size_t len)
{
    int rc = 0;
    for (size_t done = 0; done < len && rc == 0;) {
        void *piece;
        const size_t n = dt_cursor_next(c, len - done, &piece);
        rc = move_block(m, piece, m->dense + done, n);
        done += n;
    }
    return rc;
}

static int device_copy(struct dt_cursor *c, void *dense, size_t len, bool unpacks)
{
    struct device_move m = {.dense = dense, .unpacks = unpacks};
    char *device;
    int64_t stride;
    size_t width;
    void *first;
    if (find_whole_rows(c, len, &device, &stride, &width)) {
        const int rc = move_rows(&m, device, stride, width, len / width);
        c->position += rc == 0 ? len : 0;
        return rc;
    }
    const uint64_t start = c->position;
    if (dt_cursor_next(c, len, &first) == len)
        return move_block(&m, first, dense, len);
    dt_cursor_seek(c, start);
    if (c->buffer == MPI_BOTTOM)
        return copy_blocks_separately(&m, c, len);
    struct gpu_range range;
    m.segments = gpu_get_staging();
    if (gpu_find_range(dense, &range) != 0)
        m.window = gpu_get_staging();
    int rc = !m.segments || (gpu_find_range(dense, &range) != 0 && !m.window)
                 ? err_set(MPI_ERR_NO_MEM, "out of memory for copies of GPU memory")
                 : move_blocks(&m, c, len);
    if (m.segments)
        gpu_put_staging(m.segments);
    if (m.window)
        gpu_put_staging(m.window);
    return rc;
}

int dt_device_pack(struct dt_cursor *c, void *out, size_t len)
{
    return len ? device_copy(c, out, len, false) : 0;
}

int dt_device_unpack(struct dt_cursor *c, const void *in, size_t len)
{
    return len ? device_copy(c, (void *)(uintptr_t)in, len, true) : 0;
}

bool dt_device_is_buffer(const struct dtype *t, MPI_Count count, const void *buffer)
{
    struct dt_cursor c;
    void *piece;
    MPI_Aint offset;
    if (count == 0 || t->size == 0)
        return false;
    if (buffer != MPI_BOTTOM || dt_is_contiguous_block(t, count, &offset))
        return gpu_memory_is_device(ptr_add(buffer, t->true_lb));
    dt_cursor_open(&c, t, count, buffer);
    while (dt_cursor_next(&c, SIZE_MAX, &piece) > 0)
        if (gpu_memory_is_device(piece))
            return true;
    return false;
}

static size_t finish_partial_move(struct dt_cursor *c, uint64_t start, size_t len, int rc)
{
    if (rc && !c->error)
        c->error = rc;
    dt_cursor_seek(c, start + len);
    return len;
}

size_t dt_device_pack_some(struct dt_cursor *c, void *out, size_t len)
{
    const uint64_t start = c->position;
    return finish_partial_move(c, start, len, dt_device_pack(c, out, len));
}

size_t dt_device_unpack_some(struct dt_cursor *c, const void *in, size_t len)
{
    const uint64_t start = c->position;
    return finish_partial_move(c, start, len, dt_device_unpack(c, in, len));
}

int dt_device_pack_all(const struct dtype *t, MPI_Count count, const void *buffer, void *out)
{
    struct dt_cursor c;
    dt_cursor_init(&c, t, count, buffer);
    return dt_device_pack(&c, out, (size_t)(count * t->size));
}

int dt_device_unpack_all(const struct dtype *t, MPI_Count count, void *buffer, const void *in, size_t len)
{
    struct dt_cursor c;
    dt_cursor_init(&c, t, count, buffer);
    return dt_device_unpack(&c, in, MIN(len, (size_t)(count * t->size)));
}

/* Copies between two layouts; through a staging buffer unless one of them is contiguous. */
int dt_device_copy(const void *from, MPI_Count from_count, const struct dtype *from_type, void *to,
                   MPI_Count to_count, const struct dtype *to_type, uint64_t len)
{
    struct dt_cursor source, target;
    MPI_Aint offset;
    if (len == 0)
        return 0;
    dt_cursor_init(&source, from_type, from_count, from);
    dt_cursor_init(&target, to_type, to_count, to);
    if (source.is_device && dt_is_contiguous_block(to_type, to_count, &offset))
        return dt_device_pack(&source, ptr_add(to, offset), len);
    if (target.is_device && dt_is_contiguous_block(from_type, from_count, &offset))
        return dt_device_unpack(&target, ptr_add(from, offset), len);
    void *window = gpu_get_staging();
    if (!window)
        return err_set(MPI_ERR_NO_MEM, "out of memory for copies of GPU memory");
    for (uint64_t at = 0; at < len && !source.error && !target.error; at += GPU_STAGING_SIZE) {
        const size_t n = (size_t)MIN(len - at, GPU_STAGING_SIZE);
        dt_cursor_pack(&source, window, n);
        dt_cursor_unpack(&target, window, n);
    }
    gpu_put_staging(window);
    return source.error ? source.error : target.error;
}

int dt_host_copy_make(struct dt_host_copy *copy, const void *buffer, MPI_Count count, const struct dtype *t)
{
    MPI_Aint gap;
    copy->size = (size_t)dt_span(t, count, &gap);
    copy->memory = gpu_get_buffer(copy->size);
    if (!copy->memory)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a copy of %zu bytes of GPU memory", copy->size);
    copy->buffer = ptr_add(copy->memory, -gap);
    return dt_copy(buffer, count, t, copy->buffer, count, t);
}

int dt_host_copy_open(struct dt_host_copy *copy, const void *buffer, MPI_Count count, const struct dtype *t)
{
    *copy = (struct dt_host_copy){.buffer = (void *)(uintptr_t)buffer};
    return dt_is_device(buffer, count, t) ? dt_host_copy_make(copy, buffer, count, t) : 0;
}

int dt_host_copy_store(const struct dt_host_copy *copy, void *buffer, MPI_Count count, const struct dtype *t)
{
    return copy->memory ? dt_copy(copy->buffer, count, t, buffer, count, t) : 0;
}

void dt_host_copy_close(struct dt_host_copy *copy)
{
    if (copy->memory)
        gpu_put_buffer(copy->memory, copy->size);
}
