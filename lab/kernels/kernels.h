/* kernels.h: `fishplate-lab kernels`: the kernels of the NAS parallel benchmarks, written from their
 * specification [NPB94], in plain MPI like the rest of bench/. Each verifies its result against the published
 * values.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_KERNELS_H
#define FP_LAB_KERNELS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "bench/bench.h"

enum kernel_class { CLASS_S, CLASS_W, CLASS_A, CLASS_B, CLASS_COUNT };

/* State of one run of one kernel. */
struct kernel_run {
    MPI_Comm comm;
    int rank, size;
    enum kernel_class class;
    const char *name;
    double progress_time; /* MPI_Wtime of the last progress line */
};

struct kernel_result {
    double seconds; /* time of the part that the specification times, on the slowest rank */
    double amount;  /* operations in that time, in the unit of the kernel's rate */
    bool verified;
    double error; /* largest relative error of the verified values; 0 for integers */
};

struct kernel {
    const char *name, *doc;
    const char *unit;  /* unit of the rate: "Mflop/s" */
    const char *ranks; /* permitted numbers of ranks, as text for the user */
    bool (*accepts_ranks)(int ranks, enum kernel_class class); /* NULL: accepts any number of ranks */
    void (*run)(struct kernel_run *run, struct kernel_result *out);
};

extern const struct kernel kernel_ep, kernel_is, kernel_cg, kernel_mg, kernel_ft, kernel_lu, kernel_bt,
    kernel_sp, kernel_dt_bh, kernel_dt_wh, kernel_dt_sh, kernel_sweep, kernel_vis;

/* kernels.c: the command. Calls MPI_Init and MPI_Finalize; returns the exit status. */
int bench_kernels_main(const struct bench_host *host, int argc, char **argv);

/* support.c: functions that the kernels share. */
/* Returns zeroed memory; prints an error and ends the job if memory is exhausted. */
void *kernel_alloc(struct kernel_run *run, size_t bytes);
double kernel_start(struct kernel_run *run); /* executes a barrier and returns MPI_Wtime */
void kernel_stop(struct kernel_run *run, double started, struct kernel_result *out);
/* prints a progress line on rank 0 every five seconds */
void kernel_progress(struct kernel_run *run, int done, int of);
bool kernel_is_power_of_two(int ranks);
/* A square of n by n points distributed over a grid of ranks. */
struct kernel_plane {
    int ranks[2], at[2]; /* size of the grid of ranks, position of this rank in it */
    int first[2], count[2];
    int before[2], after[2]; /* neighbouring ranks, or MPI_PROC_NULL */
};
/* false: some ranks would have fewer than `least` points in a direction */
bool kernel_divide_plane(int ranks, int n, int least, int out[2]);
void kernel_plane_open(struct kernel_plane *p, const struct kernel_run *run, int n);
/* Records the largest relative error; the result counts as verified while no error exceeds the bound. */
void kernel_verify_value(struct kernel_result *out, double value, double expected, double bound);

#endif
