/* support.c: memory, time, progress and verification for the kernels.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels.h"

static const double quiet_seconds = 5;

void *kernel_alloc(struct kernel_run *run, size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p) {
        fprintf(stderr,
                "bench: rank %d cannot allocate %zu bytes for %s; use more nodes or a smaller class.\n",
                run->rank, bytes, run->name);
        MPI_Abort(run->comm, 1);
        abort(); /* not reached, but the compiler cannot know */
    }
    return p;
}

double kernel_start(struct kernel_run *run)
{
    MPI_Barrier(run->comm);
    return MPI_Wtime();
}

void kernel_stop(struct kernel_run *run, double started, struct kernel_result *out)
{
    double mine = MPI_Wtime() - started;
    MPI_Allreduce(&mine, &out->seconds, 1, MPI_DOUBLE, MPI_MAX, run->comm);
}

void kernel_progress(struct kernel_run *run, int done, int of)
{
    if (run->rank != 0 || MPI_Wtime() - run->spoke < quiet_seconds)
        return;
    run->spoke = MPI_Wtime();
    fprintf(stderr, "bench: %s, %d of %d iterations\n", run->name, done, of);
}

bool kernel_power_of_two(int ranks)
{
    return ranks > 0 && (ranks & (ranks - 1)) == 0;
}

void kernel_compare(struct kernel_result *out, double value, double expected, double bound)
{
    double error = fabs((value - expected) / expected);
    if (!(error <= bound))
        out->verified = false;
    if (!(error <= out->error))
        out->error = error;
}
