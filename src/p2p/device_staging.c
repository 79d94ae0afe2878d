/* device_staging.c: moves data of device memory through staging buffers in host memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/device_staging.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/gpu.h"

static COUNTER(staged, "p2p_device_staged_bytes",
               "Bytes of messages in GPU memory that moved through staging buffers in host memory.");

#define DESCRIPTORS_MOST 64 /* of exported memory; a process often has a limit of 1024 open files */

/* Opens a cursor over the request's data in the layout of its datatype. */
static void open_data_cursor(const struct p2p_request *r, struct dt_cursor *c)
{
    if (r->block)
        dt_cursor_init(c, dtype_from_handle(MPI_BYTE), (MPI_Count)r->length, r->buf);
    else
        dt_cursor_init(c, r->type, r->count, r->buf);
}

/* Returns the device part of the request, allocated at the first call; NULL: out of memory. */
static struct device_part *get_device_part(struct p2p_request *r)
{
    if (!r->device_part && (r->device_part = calloc(1, sizeof(*r->device_part)))) {
        r->device_part->descriptor = -1;
        r->device_part->r = r;
        list_init(&r->device_part->link);
    }
    return r->device_part;
}

int device_chunk_poll(struct device_part *stage, uint64_t i)
{
    struct staging_half *half = &stage->half[i % 2];
    const int rc = half->is_copying ? gpu_poll_copy(&half->transfer) : 0;
    half->is_copying = rc == ERR_AGAIN;
    return rc;
}

/* Waits until no copy uses half i % 2; returns 0 or the error of the copy. */
static int wait_for_half(struct device_part *stage, uint64_t i)
{
    int rc;
    while ((rc = device_chunk_poll(stage, i)) == ERR_AGAIN)
        ;
    return rc;
}

void device_watch(struct p2p_request *r)
{
    struct p2p *p = r->base.p2p;
    if (!list_empty(&r->device_part->link))
        return;
    if (list_empty(&p->staged)) {
        list_append(&p->net->hooks, &p->staged_hook.link);
        p->net->unrung++; /* no doorbell rings when a GPU has finished */
    }
    list_append(&p->staged, &r->device_part->link);
}

void device_unwatch(struct p2p_request *r)
{
    struct p2p *p = r->base.p2p;
    if (list_empty(&r->device_part->link))
        return;
    list_remove(&r->device_part->link);
    if (list_empty(&p->staged)) {
        list_remove(&p->staged_hook.link);
        p->net->unrung--;
    }
}

/* Frees the staging buffer, if there is one. No write may use it. */
static void stage_free(struct p2p_request *r)
{
    struct device_part *stage = r->device_part;
    struct transport *t = stage->is_registered ? r->peer->transport : NULL;
    for (uint64_t i = 0; i < 2; i++)
        wait_for_half(stage, i);
    device_unwatch(r);
    if (t)
        t->ops->mem_release(t, &stage->mem);
    stage->is_registered = false;
    if (stage->memory && stage->is_pinned)
        gpu_put_staging(stage->memory);
    else
        free(stage->memory);
    stage->memory = NULL;
}

/* Allocates `len` bytes of host memory. */
static int stage_allocate(struct p2p_request *r, size_t len)
{
    struct device_part *stage = get_device_part(r);
    if (stage) {
        stage_free(r); /* STAGED was not possible: the message moves in frames */
        stage->is_pinned = len <= GPU_STAGING_SIZE;
        stage->memory = stage->is_pinned ? gpu_get_staging() : malloc(len);
    }
    return stage && stage->memory
               ? 0
               : err_set(MPI_ERR_NO_MEM, "out of memory for staging a message of %llu bytes in GPU memory",
                         (unsigned long long)r->length);
}

static bool has_descriptor(const struct p2p_request *r)
{
    return r->device_part && r->device_part->descriptor >= 0;
}

bool device_can_store_descriptor(const struct p2p_request *r)
{
    return r->base.p2p->descriptors < DESCRIPTORS_MOST || has_descriptor(r);
}

static void close_descriptor(struct p2p_request *r)
{
    if (!has_descriptor(r))
        return;
    close(r->device_part->descriptor);
    r->device_part->descriptor = -1;
    r->base.p2p->descriptors--;
}

bool device_store_descriptor(struct p2p_request *r, int descriptor)
{
    if (!get_device_part(r)) {
        close(descriptor);
        return false;
    }
    close_descriptor(r);
    r->device_part->descriptor = descriptor;
    r->base.p2p->descriptors++;
    return true;
}

void request_free_device_part(struct p2p_request *r)
{
    stage_free(r);
    close_descriptor(r);
    free(r->device_part);
    r->device_part = NULL;
}

/* Moves the data of a frame that cannot be sent yet from pinned memory, which is scarce, to ordinary
 * memory. */
static int copy_to_host_memory(struct p2p_request *r)
{
    struct device_part *stage = r->device_part;
    if (stage->is_pinned) {
        char *copy = malloc(r->length);
        if (!copy)
            return err_set(MPI_ERR_NO_MEM,
                           "out of memory for a message of %llu bytes that waits for its receiver",
                           (unsigned long long)r->length);
        memcpy(copy, stage->memory, r->length);
        stage_free(r);
        stage->memory = copy;
        stage->is_pinned = false;
    }
    r->buf = stage->memory;
    r->block = true;
    r->device = false;
    return ERR_AGAIN;
}

/* Checks that the program has not freed the data of a message of `bytes` bytes that is in progress. */
static int check_memory(const struct p2p_request *r, uint64_t bytes)
{
    struct gpu_range range;
    if (!r->device || (!r->block && r->buf == MPI_BOTTOM))
        return 0;
    /* gpu_memory_is_device would record that freed memory is host memory. */
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
    int rc = stage_allocate(r, r->length);
    if (rc)
        return rc;
    rc = check_memory(r, r->length);
    if (rc)
        return rc;
    open_data_cursor(r, &c);
    void *const packed = r->device_part->memory;
    dt_cursor_pack(&c, packed, r->length);
    counter_add(&staged, r->length);
    rc = c.error ? c.error : peer_send_now(r->peer, &r->header, packed, r->length);
    return rc == ERR_AGAIN ? copy_to_host_memory(r) : rc;
}

/* Copies received data to GPU memory through pinned memory by a copy engine. Short copies from ordinary
 * memory use the compute engine, on which two processes that use it in turns wait 140 us for each turn
 * (docs/gpu.md). */
int device_deliver(struct p2p_request *r, const void *payload, size_t len)
{
    struct dt_cursor c;
    if (len == 0)
        return 0;
    int rc = check_memory(r, len);
    if (!rc)
        rc = stage_allocate(r, len);
    if (rc)
        return rc;
    void *const packed = r->device_part->memory;
    memcpy(packed, payload, len);
    open_data_cursor(r, &c);
    dt_cursor_unpack(&c, packed, len);
    stage_free(r);
    counter_add(&staged, len);
    return c.error;
}

/* ---- R3 ----
 *
 * The message moves in chunks of half a staging buffer: while the GPU copies one chunk, frames carry another.
 * A copy of n bytes to pinned memory takes 7.5 us + n / 53 GB/s on an H200 (docs/gpu.md), frames carry
 * 10 GB/s:
 *
 *     chunk      copy      rate of copies    first and last chunk, which nothing overlaps
 *      64 KiB     9.1 us     7.2 GB/s        18 us
 *     128 KiB    10.0 us    13   GB/s        20 us
 *     256 KiB    12.4 us    21   GB/s        25 us
 *     512 KiB    17.4 us    30   GB/s        35 us
 *
 * 256 KiB keeps the copies shorter than the frames at up to 20 GB/s. */

char *device_chunk_memory(const struct device_part *stage, uint64_t i)
{
    return stage->memory + i % 2 * DEVICE_CHUNK;
}

int device_chunk_start(struct p2p_request *r, uint64_t i, size_t n, bool out)
{
    struct pieces_part *part = &r->pieces;
    struct device_part *stage = r->device_part;
    char *const half = device_chunk_memory(stage, i);
    char *const there = r->buf + part->staged_from + i * DEVICE_CHUNK;
    int rc = check_memory(r, part->bytes);
    if (rc)
        return rc;
    counter_add(&staged, n);
    if (r->block && r->device) {
        rc = gpu_start_copy(out ? half : there, out ? there : half, n, &stage->half[i % 2].transfer);
        stage->half[i % 2].is_copying = rc == 0;
        return rc;
    }
    if (out)
        dt_cursor_pack(&part->cursor, half, n);
    else
        dt_cursor_unpack(&part->cursor, half, n);
    return part->cursor.error;
}

int device_pieces_begin(struct p2p_request *r, uint64_t from)
{
    struct pieces_part *part = &r->pieces;
    part->staged_from = from;
    part->staged = 0;
    part->failed = check_memory(r, part->bytes);
    if (part->failed)
        return part->failed;
    open_data_cursor(r, &part->cursor);
    dt_cursor_seek(&part->cursor, from);
    return part->failed = stage_allocate(r, GPU_STAGING_SIZE);
}

/* Two chunks are copied or hold data: the one that is being sent, and the next one. */
int device_pieces_next(struct p2p_request *r, size_t most, const char **data, size_t *len)
{
    struct pieces_part *part = &r->pieces;
    const uint64_t total = part->bytes - part->staged_from, sent = part->moved - part->staged_from;
    const uint64_t i = sent / DEVICE_CHUNK;
    while (part->staged < total && part->staged < (i + 2) * DEVICE_CHUNK) {
        const size_t n = (size_t)MIN(total - part->staged, DEVICE_CHUNK);
        const int rc = device_chunk_start(r, part->staged / DEVICE_CHUNK, n, true);
        if (rc)
            return rc;
        part->staged += n;
    }
    const int rc = wait_for_half(r->device_part, i);
    if (rc)
        return rc;
    *data = device_chunk_memory(r->device_part, i) + sent % DEVICE_CHUNK;
    *len = (size_t)MIN(MIN(part->staged - sent, DEVICE_CHUNK - sent % DEVICE_CHUNK), most);
    return 0;
}

/* Returns after the last chunk has reached the program's buffer. */
void device_pieces_store(struct p2p_request *r, const char *data, size_t len)
{
    struct pieces_part *part = &r->pieces;
    const uint64_t total = part->bytes - part->staged_from;
    while (len > 0 && part->failed == 0) {
        const uint64_t i = part->staged / DEVICE_CHUNK;
        const size_t used = part->staged % DEVICE_CHUNK, n = MIN(len, DEVICE_CHUNK - used);
        if (used == 0)
            part->failed = wait_for_half(r->device_part, i);
        memcpy(device_chunk_memory(r->device_part, i) + used, data, n);
        part->staged += n;
        data += n;
        len -= n;
        if (part->failed == 0 && (used + n == DEVICE_CHUNK || part->staged == total))
            part->failed = device_chunk_start(r, i, used + n, false);
    }
    part->staged += len;
    for (uint64_t i = 0; r->device_part && part->staged == total && i < 2; i++) {
        const int rc = wait_for_half(r->device_part, i);
        part->failed = part->failed ? part->failed : rc;
    }
    /* an earlier MPI_ERR_TRUNCATE takes precedence */
    r->base.error = r->base.error ? r->base.error : part->failed;
}
