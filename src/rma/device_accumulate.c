/* device_accumulate.c: accumulates and GPU memory. The elements of a window in GPU memory are changed by
 * kernels, which read the operand in memory that the GPU accesses. Other buffers of the origin in GPU
 * memory are copied to host memory.
 *
 * Ranks of the node map each other's windows (win_device_share): puts and gets are copies by a GPU, and
 * accumulates of several ranks exclude each other by the lock of the target's elements. Where the memory
 * cannot be mapped, its owner alone changes it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "coll/coll.h"
#include "dt/device_pack.h"
#include "dt/kernel.h"
#include "rma/rma.h"
#include "rma/window_memory.h"

static bool rma_side_is_on_device(const struct rma_side *s)
{
    return s->type && dt_is_device(s->buf, s->count, s->type);
}

bool rma_needs_copies(const struct rma_call *c, const char *at)
{
    if (gpu_may_have_memory() && at && gpu_memory_is_device(at) && c->kind != RMA_IS_SWAP &&
        accumulate_is_unpacked(c))
        return false; /* device_apply() reads operands in GPU memory */
    return gpu_may_have_memory() && (rma_side_is_on_device(&c->origin) || rma_side_is_on_device(&c->result) ||
                                     (c->compare && gpu_memory_is_device(c->compare)));
}

/* Runs the call on host copies of its GPU buffers. `direct`: the result is complete on return; otherwise
 * it arrives in a frame and the operation's cursor stores it in GPU memory. */
int rma_run_on_copies(const struct rma_call *c, bool direct,
                      int (*run)(const struct rma_call *copies, void *arg), void *arg)
{
    struct dt_host_copy origin = {0}, result = {0}, compare = {0};
    struct rma_call copies = *c;
    int rc = 0;
    if (c->origin.type) {
        rc = dt_host_copy_open(&origin, c->origin.buf, c->origin.count, c->origin.type);
        copies.origin.buf = origin.buffer;
    }
    if (!rc && c->compare) {
        rc = dt_host_copy_open(&compare, c->compare, 1, c->type);
        copies.compare = compare.buffer;
    }
    if (!rc && direct && c->result.type) {
        rc = dt_host_copy_open(&result, c->result.buf, c->result.count, c->result.type);
        copies.result.buf = result.buffer;
    }
    if (!rc)
        rc = run(&copies, arg);
    if (!rc)
        rc = dt_host_copy_store(&result, c->result.buf, c->result.count, c->result.type);
    dt_host_copy_close(&origin);
    dt_host_copy_close(&compare);
    dt_host_copy_close(&result);
    return rc;
}

/* Applies `n` elements at `in`, which a GPU can access, to the target. MPI_NO_OP does not read `in`. */
static int change_elements(const struct op *op, struct dtype *basic, const void *in, void *target,
                           void *fetched, size_t n)
{
    const size_t bytes = n * (size_t)basic->extent;
    const int rc = fetched ? gpu_copy(fetched, target, bytes) : 0;
    if (rc || op->code == OP_NO_OP)
        return rc;
    return op->code == OP_REPLACE ? gpu_copy(target, in, bytes)
                                  : op_apply_on_device(op, in, target, (MPI_Count)n, basic);
}

int device_apply(const struct op *op, struct dtype *basic, const char *in, char *target, char *fetched,
                 size_t n)
{
    const size_t extent = (size_t)basic->extent, most = GPU_STAGING_SIZE / extent;
    if (op->code == OP_NO_OP || gpu_is_accessible(in))
        return change_elements(op, basic, in, target, fetched, n);
    char *const staging = gpu_get_staging();
    int rc = staging ? 0 : err_set(MPI_ERR_NO_MEM, "out of memory for elements of a window in GPU memory");
    for (size_t at = 0; at < n && !rc; at += most) {
        const size_t count = MIN(most, n - at), start = at * extent;
        memcpy(staging, in + start, count * extent);
        rc = change_elements(op, basic, staging, target + start, fetched ? fetched + start : NULL, count);
    }
    if (staging)
        gpu_put_staging(staging);
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

/* ---- windows of other ranks of this node ---- */

int win_device_share(struct win *w, struct comm *parent)
{
    struct gpu_range range;
    struct gpu_export mine = {.fd = -1};
    const uintptr_t start = (uintptr_t)w->memory;
    struct dtype *const byte = dtype_from_handle(MPI_BYTE);
    w->exports = calloc((size_t)w->comm->size, sizeof(*w->exports));
    const int rc = win_agree_on_creation(
        w, parent, w->exports ? 0 : win_error(w, MPI_ERR_NO_MEM, "out of memory for the window"));
    if (rc)
        return rc;
    if (w->mine->on_device && gpu_find_range(w->memory, &range) == 0 &&
        (size_t)w->size <= range.size - (start - range.start) && gpu_synchronize_copies(w->memory) == 0 &&
        gpu_export_range(&range, &mine) != 0)
        mine = (struct gpu_export){.fd = -1};
    w->descriptor = mine.fd;
    struct coll_args a = {.kind = COLL_ALLGATHER,
                          .name = "window in GPU memory",
                          .comm = parent,
                          .send = {.buf = &mine, .count = sizeof(mine), .type = byte},
                          .recv = {.buf = w->exports, .count = sizeof(mine), .type = byte}};
    return coll_run(&a);
}

char *win_device_map(struct win_peer *p)
{
    const struct win *w = p->win;
    void *mapping;
    if (!w->exports || !w->exports[p->rank].size || !p->slot ||
        gpu_import_range(&w->exports[p->rank], &mapping))
        return NULL;
    p->import = mapping;
    return (char *)mapping + (p->at.base - w->exports[p->rank].start);
}

void win_device_close(struct win *w)
{
    if (w->exports && w->descriptor >= 0)
        close(w->descriptor);
    free(w->exports);
}
