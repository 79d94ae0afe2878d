/* device.h: collective calls whose buffers are in GPU memory. The call runs on copies of these buffers in host memory, which are
 * filled before it begins and copied back after it has completed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_DEVICE_H
#define FP_COLL_DEVICE_H

#include "coll/select/call.h"
#include "gpu/gpu.h"

bool coll_args_on_device(const struct coll_args *args);

/* False unless a buffer of the call is in GPU memory. */
static inline bool coll_is_on_device(const struct coll_args *args)
{
    return gpu_may_have_memory() && coll_args_on_device(args);
}

/* Runs the call by `run` on copies of its buffers. */
int coll_device_run(const struct coll_args *args, int (*run)(const struct coll_args *copies));

/* A request made by `make`, which completes after the result has been copied back. */
int coll_device_make(const struct coll_args *args, enum coll_form form,
                     int (*make)(const struct coll_args *copies, enum coll_form form, struct request **out),
                     struct request **out);

#endif
