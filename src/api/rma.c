/* rma.c: the one-sided operations: every call is one struct rma_call, run by src/rma.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/forward.h"
#include "gpu/gpu.h"
#include "impl.h"
#include "obj/handle.h"
#include "rma/win.h"

#define SIDE(buf_, count_, type_)                                             \
    (struct rma_side)                                                         \
    {                                                                         \
        .buf = (void *)(uintptr_t)(buf_), .count = (count_), .type = (type_), \
    }

static int rma_run_call(struct rma_call *c, MPI_Request *request)
{
    struct request *r = NULL;
    c->request = request ? &r : NULL;
    int rc = rma_run(c);
    if (!rc && request)
        *request = request_handle(r);
    return rc;
}

/* Performs a put or a get or, with an operator, an accumulate. */
int rma_operate(enum rma_kind kind, const void *origin, MPI_Count origin_count, struct dtype *origin_type,
                int rank, MPI_Aint disp, MPI_Count count, struct dtype *type, struct op *op, struct win *win,
                MPI_Request *request)
{
    struct rma_call c = {.kind = kind,
                         .win = win,
                         .origin = SIDE(origin, origin_count, origin_type),
                         .rank = rank,
                         .disp = disp,
                         .count = count,
                         .type = type,
                         .op = op};
    return rma_run_call(&c, request);
}

int rma_get_accumulate(const void *origin, MPI_Count origin_count, struct dtype *origin_type, void *result,
                       MPI_Count result_count, struct dtype *result_type, int rank, MPI_Aint disp,
                       MPI_Count count, struct dtype *type, struct op *op, struct win *win,
                       MPI_Request *request)
{
    struct rma_call c = {.kind = RMA_IS_GET_ACCUMULATE,
                         .win = win,
                         .origin = SIDE(origin, origin_count, origin_type),
                         .result = SIDE(result, result_count, result_type),
                         .rank = rank,
                         .disp = disp,
                         .count = count,
                         .type = type,
                         .op = op};
    return rma_run_call(&c, request);
}

#define NEAR_MOST 4096

/* Returns the size in bytes of a short contiguous block with the same type at both ends; 0 in other cases. */
static size_t rma_block_size(MPI_Count origin_count, const struct dtype *origin_type, MPI_Count count,
                             const struct dtype *type)
{
    return origin_type == type && origin_count == count && type->contiguous && count <= NEAR_MOST &&
                   type->size <= NEAR_MOST
               ? (size_t)(count * type->size)
               : 0;
}

/* Copies a block; source and target may overlap in one window. */
static int copy_block(void *to, const void *from, size_t bytes)
{
    uint64_t word;
    if (unlikely(gpu_may_have_memory()))
        return gpu_copy(to, from, bytes);
    if (bytes == sizeof(word)) {
        memcpy(&word, from, sizeof(word));
        memcpy(to, &word, sizeof(word));
    } else {
        memmove(to, from, bytes);
    }
    return MPI_SUCCESS;
}

int impl_Put(const void *origin_addr, MPI_Count origin_count, struct dtype *origin_datatype, int target_rank,
             MPI_Aint target_disp, MPI_Count target_count, struct dtype *target_datatype, struct win *win)
{
    const size_t bytes = rma_block_size(origin_count, origin_datatype, target_count, target_datatype);
    char *at = bytes ? rma_local_address(win, target_rank, target_disp, bytes) : NULL;
    if (at)
        return copy_block(at, origin_addr, bytes);
    return rma_operate(RMA_IS_PUT, origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                       target_count, target_datatype, NULL, win, NULL);
}

int impl_Get(void *origin_addr, MPI_Count origin_count, struct dtype *origin_datatype, int target_rank,
             MPI_Aint target_disp, MPI_Count target_count, struct dtype *target_datatype, struct win *win)
{
    const size_t bytes = rma_block_size(origin_count, origin_datatype, target_count, target_datatype);
    char *at = bytes ? rma_local_address(win, target_rank, target_disp, bytes) : NULL;
    if (at)
        return copy_block(origin_addr, at, bytes);
    return rma_operate(RMA_IS_GET, origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                       target_count, target_datatype, NULL, win, NULL);
}

/* Requires a predefined datatype: the standard leaves the meaning of a derived type open. */
static int check_element(const struct dtype *t)
{
    if (t->obj.predefined)
        return MPI_SUCCESS;
    return err_set(MPI_ERR_TYPE, "datatype is a derived one; this function takes predefined datatypes");
}

int impl_Fetch_and_op(const void *origin_addr, void *result_addr, struct dtype *datatype, int target_rank,
                      MPI_Aint target_disp, struct op *op, struct win *win)
{
    int rc = check_element(datatype);
    return rc ? rc
              : rma_get_accumulate(origin_addr, 1, datatype, result_addr, 1, datatype, target_rank,
                                   target_disp, 1, datatype, op, win, NULL);
}

int impl_Compare_and_swap(const void *origin_addr, const void *compare_addr, void *result_addr,
                          struct dtype *datatype, int target_rank, MPI_Aint target_disp, struct win *win)
{
    struct rma_call c = {.kind = RMA_IS_SWAP,
                         .win = win,
                         .origin = SIDE(origin_addr, 1, datatype),
                         .result = SIDE(result_addr, 1, datatype),
                         .compare = compare_addr,
                         .rank = target_rank,
                         .disp = target_disp,
                         .count = 1,
                         .type = datatype};
    int rc = check_element(datatype);
    return rc ? rc : rma_run_call(&c, NULL);
}
