/* device_collectives.h: collective calls whose buffers are in GPU memory. Large calls run directly on these
 * buffers: messages transfer the data, GPU kernels reduce it (coll_device_is_direct). Other calls run on
 * copies of these buffers in host memory, which are filled before the call begins and copied back after it
 * has completed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_DEVICE_COLLECTIVES_H
#define FP_COLL_DEVICE_COLLECTIVES_H

#include "coll/select/call.h"
#include "gpu/gpu.h"

bool coll_args_on_device(const struct coll_args *args);

/* True if a buffer of the call is in GPU memory. */
static inline bool coll_is_on_device(const struct coll_args *args)
{
    return gpu_may_have_memory() && coll_args_on_device(args);
}

/* True if the schedule runs directly on buffers in GPU memory. Each rank decides independently: the sender
 * and the receiver of a message may use different kinds of memory. */
bool coll_device_is_direct(const struct coll_args *args);

/* Smallest call in bytes (struct coll_where) that runs directly on GPU memory; the same at every rank. */
uint64_t coll_device_min_bytes(int ranks);

/* Callback that runs the call on host copies of its buffers; `request` is NULL for a blocking call.
 * ERR_AGAIN: the call cannot run on copies, and nothing was done. */
typedef int coll_device_call(void *arg, const struct coll_args *copies, struct request **request);

int coll_device_run(const struct coll_args *args, coll_device_call *run, void *arg);

/* Creates a request that completes after the result has been copied back to the GPU. */
int coll_device_make(const struct coll_args *args, enum coll_form form, coll_device_call *make, void *arg,
                     struct request **out);

#endif
