/* kernels.h: `fishplate-lab kernels`: the kernels of the NAS parallel benchmarks, written from their specification
 * [NPB94], in plain MPI like the rest of bench/. Each verifies its result against the published values.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_KERNELS_H
#define FP_LAB_KERNELS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "bench/bench.h"

enum kernel_class { CLASS_S, CLASS_W, CLASS_A, CLASS_B, CLASS_COUNT };

/* One run of one kernel. */
struct kernel_run {
    MPI_Comm comm;
    int rank, size;
    enum kernel_class class;
    const char *name;
    double spoke; /* MPI_Wtime of the last line of progress */
};

struct kernel_result {
    double seconds; /* of the part that the specification times, on the slowest rank */
    double amount;  /* what was done in that time: amount / seconds is in the kernel's unit */
    bool verified;
    double error; /* the largest relative error of the values that verify, 0 where they are integers */
};

struct kernel {
    const char *name, *doc;
    const char *unit;                                  /* of the rate: "Mflop/s" */
    const char *ranks;                                 /* which numbers of ranks it takes, for people */
    bool (*takes)(int ranks, enum kernel_class class); /* NULL: any number */
    void (*run)(struct kernel_run *run, struct kernel_result *out);
};

extern const struct kernel kernel_ep, kernel_is, kernel_cg, kernel_mg, kernel_ft, kernel_lu, kernel_bt,
    kernel_sp, kernel_dt_bh, kernel_dt_wh, kernel_dt_sh, kernel_sweep, kernel_vis;

/* kernels.c: the command. Calls MPI_Init and MPI_Finalize; returns the exit status. */
int bench_kernels_main(const struct bench_host *host, int argc, char **argv);

/* support.c: functions that the kernels share. */
void *kernel_alloc(struct kernel_run *run,
                   size_t bytes);            /* zeroed; ends the job with a sentence when there is none */
double kernel_start(struct kernel_run *run); /* a barrier, then the time */
void kernel_stop(struct kernel_run *run, double started, struct kernel_result *out);
void kernel_progress(struct kernel_run *run, int done, int of); /* a line every five seconds, from rank 0 */
bool kernel_power_of_two(int ranks);
/* A square of n by n points, cut into a grid of ranks. */
struct kernel_plane {
    int ranks[2], at[2]; /* the grid of ranks, and this one's place in it */
    int first[2], count[2];
    int before[2], after[2]; /* neighbours, or MPI_PROC_NULL */
};
/* false: with this number of ranks, some have fewer than `least` points in a direction */
bool kernel_cut(int ranks, int n, int least, int out[2]);
void kernel_plane_open(struct kernel_plane *p, const struct kernel_run *run, int n);
/* Remembers the larger error; the result is verified while none is above the bound. */
void kernel_compare(struct kernel_result *out, double value, double expected, double bound);

#endif
