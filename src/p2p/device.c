/* device.c: see device.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/device.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/gpu.h"

static COUNTER(staged, "p2p_device_staged_bytes",
               "Bytes of messages in GPU memory that moved through staging buffers in host memory.");

/* Opens a cursor over the request's data in the layout of its datatype. */
static void open_cursor(const struct p2p_request *r, struct dt_cursor *c)
{
    if (r->block)
        dt_cursor_init(c, dtype_from(MPI_BYTE), (MPI_Count)r->length, r->buf);
    else
        dt_cursor_init(c, r->type, r->count, r->buf);
}

/* Allocates `len` bytes of host memory, freed with the request. */
static int stage_get(struct p2p_request *r, size_t len)
{
    r->stage_pinned = len <= GPU_STAGING_SIZE;
    r->stage = r->stage_pinned ? gpu_get_staging() : malloc(len);
    return r->stage
               ? 0
               : err_set(MPI_ERR_NO_MEM, "out of memory for staging a message of %llu bytes in GPU memory",
                         (unsigned long long)r->length);
}

void request_put_stage(struct p2p_request *r)
{
    if (r->stage_pinned)
        gpu_put_staging(r->stage);
    else
        free(r->stage);
    r->stage = NULL;
}

/* The frame has to wait: pinned memory is scarce, so ordinary memory holds the data meanwhile. */
static int keep_copy(struct p2p_request *r)
{
    void *copy = malloc(r->length);
    if (!copy)
        return err_set(MPI_ERR_NO_MEM,
                       "out of memory for a message of %llu bytes that waits for its receiver",
                       (unsigned long long)r->length);
    memcpy(copy, r->stage, r->length);
    request_put_stage(r);
    r->stage = r->buf = copy;
    r->stage_pinned = false;
    r->block = true;
    r->device = false;
    return ERR_AGAIN;
}

/* The program must not have freed the data of a message of `bytes` bytes that is under way. */
static int check_memory(const struct p2p_request *r, uint64_t bytes)
{
    struct gpu_range range;
    if (!r->block && r->buf == MPI_BOTTOM)
        return 0;
    /* Not by gpu_memory_is_device, which would record that freed memory is host memory. */
    if (gpu_find_range(r->block ? r->buf : ptr_add(r->buf, r->type->true_lb), &range) == 0)
        return r->block ? gpu_check_buffer(r->buf, bytes) : 0;
    return err_set(
        MPI_ERR_BUFFER,
        "The buffer at %p of a message under way was in GPU memory and no longer is. Complete the send or "
        "receive before the memory is freed.",
        (void *)r->buf);
}

int device_send_frame(struct p2p_request *r)
{
    struct dt_cursor c;
    int rc = stage_get(r, r->length);
    if (rc)
        return rc;
    rc = check_memory(r, r->length);
    if (rc)
        return rc;
    open_cursor(r, &c);
    dt_cursor_pack(&c, r->stage, r->length);
    counter_add(&staged, r->length);
    rc = c.error ? c.error : peer_send_now(r->peer, &r->header, r->stage, r->length);
    return rc == ERR_AGAIN ? keep_copy(r) : rc;
}

/* From pinned memory by a copy engine: short copies from ordinary memory run on the compute engine, and two processes that take
 * turns on that wait 150 us for each other (docs/gpu.md). */
int device_deliver(struct p2p_request *r, const void *payload, size_t len)
{
    struct dt_cursor c;
    if (len == 0)
        return 0;
    int rc = check_memory(r, len);
    if (!rc)
        rc = stage_get(r, len);
    if (rc)
        return rc;
    memcpy(r->stage, payload, len);
    open_cursor(r, &c);
    dt_cursor_unpack(&c, r->stage, len);
    request_put_stage(r);
    counter_add(&staged, len);
    return c.error;
}

/* ---- R3: a staging buffer holds bytes part->staged_from to part->staged_to of the message ---- */

int device_pieces_begin(struct p2p_request *r, uint64_t from)
{
    struct pieces_part *part = &r->pieces;
    const int rc = check_memory(r, part->bytes);
    if (rc)
        return rc;
    open_cursor(r, &part->cursor);
    dt_cursor_seek(&part->cursor, from);
    part->staged_from = part->staged_to = from;
    return stage_get(r, (size_t)MIN(part->bytes - from, GPU_STAGING_SIZE));
}

int device_pieces_next(struct p2p_request *r, size_t most, const char **data, size_t *len)
{
    struct pieces_part *part = &r->pieces;
    if (part->moved == part->staged_to) {
        const size_t n = (size_t)MIN(part->bytes - part->moved, GPU_STAGING_SIZE);
        const int rc = check_memory(r, part->bytes);
        if (rc)
            return rc;
        dt_cursor_pack(&part->cursor, r->stage, n);
        counter_add(&staged, n);
        if (part->cursor.error)
            return part->cursor.error;
        part->staged_from = part->moved;
        part->staged_to = part->moved + n;
    }
    *data = (const char *)r->stage + (part->moved - part->staged_from);
    *len = (size_t)MIN(part->staged_to - part->moved, most);
    return 0;
}

void device_pieces_store(struct p2p_request *r, const char *data, size_t len)
{
    struct pieces_part *part = &r->pieces;
    const uint64_t end = part->staged_to + len;
    while (len > 0 && r->base.error == 0) {
        const size_t used = (size_t)(part->staged_to - part->staged_from);
        const size_t n = MIN(len, GPU_STAGING_SIZE - used);
        memcpy((char *)r->stage + used, data, n);
        part->staged_to += n;
        data += n;
        len -= n;
        if (used + n < GPU_STAGING_SIZE && part->staged_to < part->bytes)
            return;
        r->base.error = check_memory(r, part->bytes);
        if (r->base.error == 0)
            dt_cursor_unpack(&part->cursor, r->stage, used + n);
        counter_add(&staged, used + n);
        part->staged_from = part->staged_to;
        r->base.error = r->base.error ? r->base.error : part->cursor.error;
    }
    part->staged_to = end;
}
