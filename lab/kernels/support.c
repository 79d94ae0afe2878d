/* support.c: memory, time, progress, division of a plane among ranks, and verification for the kernels.
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
                "fishplate-lab kernels: rank %d cannot allocate %zu bytes for %s; use more nodes or a "
                "smaller class.\n",
                run->rank, bytes, run->name);
        MPI_Abort(run->comm, 1);
        abort(); /* not reached; for the compiler */
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
    if (run->rank != 0 || MPI_Wtime() - run->progress_time < quiet_seconds)
        return;
    run->progress_time = MPI_Wtime();
    fprintf(stderr, "fishplate-lab kernels: %s, %d of %d iterations\n", run->name, done, of);
}

bool kernel_is_power_of_two(int ranks)
{
    return ranks > 0 && (ranks & (ranks - 1)) == 0;
}

bool kernel_divide_plane(int ranks, int n, int least, int out[2])
{
    for (int y = (int)sqrt((double)ranks); y >= 1; y--)
        if (ranks % y == 0) {
            out[0] = ranks / y;
            out[1] = y;
            return n / out[0] >= least && n / out[1] >= least;
        }
    return false;
}

void kernel_plane_open(struct kernel_plane *p, const struct kernel_run *run, int n)
{
    kernel_divide_plane(run->size, n, 1, p->ranks);
    p->at[0] = run->rank % p->ranks[0];
    p->at[1] = run->rank / p->ranks[0];
    for (int d = 0; d < 2; d++) {
        int each = n / p->ranks[d], more = n % p->ranks[d], stride = d == 0 ? 1 : p->ranks[0];
        p->count[d] = each + (p->at[d] < more);
        p->first[d] = p->at[d] * each + (p->at[d] < more ? p->at[d] : more);
        p->before[d] = p->at[d] > 0 ? run->rank - stride : MPI_PROC_NULL;
        p->after[d] = p->at[d] < p->ranks[d] - 1 ? run->rank + stride : MPI_PROC_NULL;
    }
}

void kernel_verify_value(struct kernel_result *out, double value, double expected, double bound)
{
    double error = fabs((value - expected) / expected);
    if (!(error <= bound))
        out->verified = false;
    if (!(error <= out->error))
        out->error = error;
}
