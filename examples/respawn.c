/* respawn.c: a solver whose ranks may be killed at any moment. The survivors shrink the communicator, spawn
 * as many new ranks as died, merge with them and continue from the last checkpoint. The result is bitwise
 * equal to that of a single rank.
 *
 * The solver runs Jacobi iterations for the Poisson equation on a grid, whose rows are divided among the
 * ranks. After every ROUND iterations all ranks keep a copy of the whole grid in memory: any survivor can
 * send it to the new ranks.
 *
 *     mpicc respawn.c -o respawn
 *     mpiexec -enable-recovery -n 4 ./respawn 400 10
 *
 * runs 400 rounds, and in every 10th a rank kills itself. With 0 rounds it runs while the file named by the
 * third argument exists: lab/ft/survive does so, and kills a rank every second.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <mpi-ext.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROWS  240 /* rows of the grid without its edge, whose values are 0 */
#define COLS  64
#define ROUND 20 /* iterations from one checkpoint to the next */

typedef double row[COLS + 2];

static MPI_Comm comm = MPI_COMM_WORLD;
static int rank, size, wanted; /* size: number of living ranks; wanted: number of ranks after a repair */
static row grid[ROWS + 2], next[ROWS + 2];
static struct state {
    int rounds, done, every, killed;
    char running[200];
    row grid[ROWS + 2]; /* the grid after `done` rounds */
} kept, coming;

enum { GOOD = 1, ON = 2 };

static int first_row(int r)
{
    return 1 + r * ROWS / size;
}

static void query_communicator(void)
{
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
}

/* ---- the solver ---- */

static void relax_rows(int from, int to)
{
    for (int i = from; i < to; i++)
        for (int k = 1; k <= COLS; k++)
            next[i][k] = 0.25 * (grid[i - 1][k] + grid[i + 1][k] + grid[i][k - 1] + grid[i][k + 1] +
                                 1e-3 * (double)(i * k % 7));
    memcpy(grid[from], next[from], (size_t)(to - from) * sizeof(row));
}

static int swap_edges(int from, int to)
{
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    int rc = MPI_Sendrecv(grid[from], COLS + 2, MPI_DOUBLE, up, 0, grid[to], COLS + 2, MPI_DOUBLE, down, 0,
                          comm, MPI_STATUS_IGNORE);
    if (rc == MPI_SUCCESS)
        rc = MPI_Sendrecv(grid[to - 1], COLS + 2, MPI_DOUBLE, down, 0, grid[from - 1], COLS + 2, MPI_DOUBLE,
                          up, 0, comm, MPI_STATUS_IGNORE);
    return rc;
}

/* Gathers the rows of all ranks in `next` on every rank. */
static int gather_rows(void)
{
    int *counts = malloc((size_t)size * sizeof(int)), *places = malloc((size_t)size * sizeof(int));
    for (int r = 0; r < size; r++) {
        places[r] = first_row(r) * (COLS + 2);
        counts[r] = (first_row(r + 1) - first_row(r)) * (COLS + 2);
    }
    int rc = MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DOUBLE, next, counts, places, MPI_DOUBLE, comm);
    free(counts);
    free(places);
    return rc;
}

static int solve_round(void)
{
    int from = first_row(rank), to = first_row(rank + 1), rc = MPI_SUCCESS;
    memcpy(grid, kept.grid, sizeof(grid));
    for (int i = 0; i < ROUND && rc == MPI_SUCCESS; i++) {
        rc = swap_edges(from, to);
        relax_rows(from, to);
    }
    return rc == MPI_SUCCESS ? gather_rows() : rc;
}

/* ---- after a death ---- */

/* Merges both sides of the new intercommunicator. All ranks agree on the value that they return. */
static int merge_groups(MPI_Comm inter, int are_new)
{
    MPI_Comm merged = MPI_COMM_NULL;
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    int good = MPI_Intercomm_merge(inter, are_new, &merged) == MPI_SUCCESS;
    if (!good && are_new)
        _exit(
            /* The other ranks may have excluded this new rank, so they do not agree with it; it ends and counts as dead. */
            1);
    int rc = MPIX_Comm_agree(inter, &good);
    if (rc == MPI_SUCCESS && good) {
        comm = merged;
        MPI_Comm_disconnect(&inter);
        query_communicator();
        return 1;
    }
    if (merged != MPI_COMM_NULL)
        MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    return 0;
}

/* Broadcasts the checkpoint and the next step from rank 0, which is a survivor as long as one lives. */
static int broadcast_checkpoint(void)
{
    if (rank == 0)
        coming = kept;
    int good = MPI_Bcast(&coming, sizeof(coming), MPI_BYTE, 0, comm) == MPI_SUCCESS;
    int rc = MPIX_Comm_agree(comm, &good);
    if (rc != MPI_SUCCESS || !good)
        return 0;
    kept = coming;
    return 1;
}

static int spawn_replacements(char *program)
{
    MPI_Comm inter = MPI_COMM_NULL, rest = comm;
    int good = MPI_Comm_spawn(program, MPI_ARGV_NULL, wanted - size, MPI_INFO_NULL, 0, comm, &inter,
                              MPI_ERRCODES_IGNORE) == MPI_SUCCESS;
    int rc = MPIX_Comm_agree(comm, &good);
    if (rc != MPI_SUCCESS || !good) {
        if (inter == MPI_COMM_NULL)
            return 0;
        MPIX_Comm_revoke(inter); /* new ranks must not wait for this one */
        MPI_Comm_free(&inter);
        return 0;
    }
    if (!merge_groups(inter, 0))
        return 0;
    MPI_Comm_free(&rest);
    return 1;
}

static void print_size(void)
{
    if (rank == 0) {
        printf("round %d: %d ranks\n", kept.done, size);
        fflush(stdout);
    }
}

/* Replaces dead ranks. A death during the repair is repaired in the next iteration. */
static void replace_dead_ranks(char *program)
{
    int whole = 0;
    while (!whole) {
        MPI_Comm rest;
        MPIX_Comm_revoke(comm);
        MPIX_Comm_shrink(comm, &rest);
        if (comm != MPI_COMM_WORLD)
            MPI_Comm_free(&comm);
        comm = rest;
        query_communicator();
        whole = (size == wanted || spawn_replacements(program)) && broadcast_checkpoint();
    }
    print_size();
}

static int is_last_rank(void)
{
    return kept.rounds ? kept.done + 1 >= kept.rounds : access(kept.running, F_OK) != 0;
}

static void kill_self_if_due(void)
{
    if (kept.every == 0 || kept.done % kept.every != kept.every - 1 || kept.killed == kept.done)
        return;
    kept.killed = kept.done;
    if (rank == kept.done / kept.every % size)
        raise(SIGKILL);
}

static void run_solver(char *program)
{
    for (int on = 1; on;) {
        kill_self_if_due();
        int flags = (solve_round() == MPI_SUCCESS ? GOOD : 0) | (rank == 0 && is_last_rank() ? 0 : ON);
        if (!(flags & GOOD))
            MPIX_Comm_revoke(comm);
        /* A round may succeed on one rank and fail on another: the ranks agree on whether it counts. */
        if (MPIX_Comm_agree(comm, &flags) != MPI_SUCCESS || !(flags & GOOD)) {
            replace_dead_ranks(program);
            continue;
        }
        memcpy(kept.grid, next, sizeof(next));
        kept.done++;
        on = flags & ON;
    }
}

static int result_is_right(void)
{
    memset(grid, 0, sizeof(grid));
    for (int i = 0; i < kept.done * ROUND; i++)
        relax_rows(1, ROWS + 1);
    return memcmp(grid, kept.grid, sizeof(grid)) == 0;
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    kept.killed = -1;
    if (parent == MPI_COMM_NULL) {
        kept.rounds = argc > 1 ? atoi(argv[1]) : 100;
        kept.every = argc > 2 ? atoi(argv[2]) : 0;
        snprintf(kept.running, sizeof(kept.running), "%s", argc > 3 ? argv[3] : "/nothing");
        query_communicator();
        wanted = size;
        /* after this barrier all ranks have left MPI_Init, and a death no longer ends the job */
        MPI_Barrier(comm);
        print_size();
    } else {
        if (!merge_groups(parent, 1)) {
            MPI_Finalize(); /* another rank has died: the others spawn new ranks without this one */
            return 0;
        }
        wanted = size;
        if (!broadcast_checkpoint())
            replace_dead_ranks(argv[0]);
    }
    run_solver(argv[0]);
    int right = result_is_right();
    if (rank == 0)
        printf("%d ranks, %d iterations: the answer is %s\n", size, kept.done * ROUND,
               right ? "right" : "WRONG");
    if (comm != MPI_COMM_WORLD)
        MPI_Comm_free(&comm);
    MPI_Finalize();
    return !right;
}
