/* device_accumulate.c: accumulates and GPU memory. Buffers of the origin in GPU memory are copied to host
 * memory, which accumulates read and write element by element. The memory of a window in GPU memory is
 * changed by the process that owns it alone, piece by piece in host memory, so that its changes exclude
 * each other.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dt/device_pack.h"
#include "rma/rma.h"

static bool side_on_device(const struct rma_side *s)
{
    return s->type && dt_is_device(s->buf, s->count, s->type);
}

bool rma_is_on_device(const struct rma_call *c)
{
    return gpu_may_have_memory() && (side_on_device(&c->origin) || side_on_device(&c->result) ||
                                     (c->compare && gpu_memory_is_device(c->compare)));
}

/* A copy in host memory of a buffer, with the same layout. */
struct host_copy {
    char *host;
    size_t size;
    struct rma_side side;
};

static int copy_side(struct host_copy *h, const struct rma_side *s)
{
    MPI_Aint gap;
    if (!side_on_device(s))
        return 0;
    h->size = (size_t)dt_span(s->type, s->count, &gap);
    h->host = gpu_get_buffer(h->size);
    if (!h->host)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a copy of a buffer in GPU memory");
    h->side = (struct rma_side){.buf = ptr_add(h->host, -gap), .count = s->count, .type = s->type};
    return dt_copy(s->buf, s->count, s->type, h->side.buf, s->count, s->type);
}

static void drop_copy(struct host_copy *h)
{
    if (h->host)
        gpu_put_buffer(h->host, h->size);
}

/* Runs the call on host copies of its GPU buffers. `direct`: the result is complete on return; otherwise
 * it arrives in a frame and the operation's cursor stores it in GPU memory. */
int rma_run_on_copies(const struct rma_call *c, bool direct,
                      int (*run)(const struct rma_call *copies, void *arg), void *arg)
{
    const struct rma_side *r = &c->result, compare = {(void *)(uintptr_t)c->compare, 1, c->type};
    struct host_copy origin = {0}, result = {0}, compared = {0};
    struct rma_call copies = *c;
    int rc = copy_side(&origin, &c->origin);
    if (!rc && c->compare)
        rc = copy_side(&compared, &compare);
    if (!rc && direct)
        rc = copy_side(&result, r);
    if (origin.host)
        copies.origin = origin.side;
    if (compared.host)
        copies.compare = compared.side.buf;
    if (result.host)
        copies.result = result.side;
    if (!rc)
        rc = run(&copies, arg);
    if (!rc && result.host)
        rc = dt_copy(result.side.buf, r->count, r->type, r->buf, r->count, r->type);
    drop_copy(&origin);
    drop_copy(&compared);
    drop_copy(&result);
    return rc;
}

int device_apply(const struct op *op, struct dtype *basic, const void *in, void *target, void *fetched,
                 size_t n)
{
    const size_t extent = (size_t)basic->extent, most = GPU_STAGING_SIZE / extent;
    char *elements = gpu_get_staging();
    int rc = elements ? 0 : err_set(MPI_ERR_NO_MEM, "out of memory for elements of a window in GPU memory");
    for (size_t at = 0; at < n && !rc; at += most) {
        const size_t count = MIN(most, n - at), bytes = count * extent;
        char *there = (char *)target + at * extent;
        rc = gpu_copy(elements, there, bytes);
        if (!rc && fetched)
            memcpy((char *)fetched + at * extent, elements, bytes);
        if (rc || !in)
            continue;
        op_apply(op, (const char *)in + at * extent, elements, (MPI_Count)count, basic);
        rc = gpu_copy(there, elements, bytes);
    }
    if (elements)
        gpu_put_staging(elements);
    return rc;
}

int device_swap(size_t size, const void *value, const void *compare, void *target, void *fetched)
{
    char old[16];
    int rc = gpu_copy(old, target, size);
    if (!rc && memcmp(old, compare, size) == 0)
        rc = gpu_copy(target, value, size);
    if (!rc)
        memcpy(fetched, old, size);
    return rc;
}
