/* checkpoint.c: a computation that saves its state in a file every few steps and can restart from it, also
 * with another number of ranks. All ranks share one file; each writes and reads its part of the array
 * through a view.
 *
 *     mpicc checkpoint.c -o checkpoint
 *     mpiexec -n 4 ./checkpoint            runs to the end, then shows that a restart gives the same result
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CELLS = 12000, STEPS = 20, EVERY = 8 };

static int rank, size;

/* The part of the array that this rank owns. */
struct part {
    int first, count;
    double *cells;
};

/* Ends the program on a file error. By default file operations return errors, so the program must check
 * them. */
static void check_file_error(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static struct part make_part(void)
{
    struct part p;
    p.first = (int)((long)CELLS * rank / size);
    p.count = (int)((long)CELLS * (rank + 1) / size) - p.first;
    p.cells = malloc((size_t)p.count * sizeof(double));
    for (int i = 0; i < p.count; i++)
        p.cells[i] = p.first + i;
    return p;
}

static void compute_step(struct part *p, int step)
{
    for (int i = 0; i < p->count; i++)
        p->cells[i] = 0.5 * p->cells[i] + step;
}

/* Sets the view of a rank to its part of the array. The file begins with the number of completed steps,
 * followed by the array. */
static void set_view(MPI_File f, const struct part *p)
{
    MPI_Datatype mine;
    int whole = CELLS;
    MPI_Type_create_subarray(1, &whole, &p->count, &p->first, MPI_ORDER_C, MPI_DOUBLE, &mine);
    MPI_Type_commit(&mine);
    check_file_error(MPI_File_set_view(f, sizeof(double), MPI_DOUBLE, mine, "native", MPI_INFO_NULL),
                     "setting the view");
    MPI_Type_free(&mine);
}

/* Writes a checkpoint to a new file and renames it only when it is complete and on disk, so that one valid
 * checkpoint always exists. */
static void save_checkpoint(const struct part *p, int step, const char *name)
{
    char fresh[256];
    MPI_File f;
    double done = step;
    snprintf(fresh, sizeof(fresh), "%s.new", name);
    check_file_error(
        MPI_File_open(MPI_COMM_WORLD, fresh, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &f),
        "opening");
    if (rank == 0)
        check_file_error(MPI_File_write_at(f, 0, &done, 1, MPI_DOUBLE, MPI_STATUS_IGNORE),
                         "writing the number of steps");
    set_view(f, p);
    check_file_error(MPI_File_write_all(f, p->cells, p->count, MPI_DOUBLE, MPI_STATUS_IGNORE), "writing");
    check_file_error(MPI_File_sync(f), "bringing the checkpoint to disk");
    check_file_error(MPI_File_close(&f), "closing");
    if (rank == 0 && rename(fresh, name) != 0)
        perror(name);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Reads the checkpoint; returns the number of completed steps, 0 if there is no checkpoint. */
static int restore_checkpoint(struct part *p, const char *name)
{
    MPI_File f;
    MPI_Status status;
    double done = 0;
    int got = 0, code = MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &f), class;
    MPI_Error_class(code, &class);
    if (class == MPI_ERR_NO_SUCH_FILE)
        return 0;
    check_file_error(code, "opening the checkpoint");
    check_file_error(MPI_File_read_at_all(f, 0, &done, 1, MPI_DOUBLE, MPI_STATUS_IGNORE),
                     "reading the number of steps");
    set_view(f, p);
    check_file_error(MPI_File_read_all(f, p->cells, p->count, MPI_DOUBLE, &status), "reading");
    MPI_Get_count(&status, MPI_DOUBLE, &got);
    if (got != p->count)
        check_file_error(MPI_ERR_IO, "the checkpoint is too short");
    check_file_error(MPI_File_close(&f), "closing");
    return (int)done;
}

static double run_computation(const char *name)
{
    struct part p = make_part();
    double mine = 0, sum = 0;
    const int start = restore_checkpoint(&p, name);
    if (rank == 0)
        printf("begin at step %d\n", start);
    for (int step = start; step < STEPS; step++) {
        compute_step(&p, step);
        if ((step + 1) % EVERY == 0)
            save_checkpoint(&p, step + 1, name);
    }
    for (int i = 0; i < p.count; i++)
        mine += p.cells[i];
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    free(p.cells);
    return sum;
}

int main(int argc, char **argv)
{
    char name[64];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int number = (int)getpid();
    MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(name, sizeof(name), "checkpoint-%d.dat", number);
    /* the second run starts from the checkpoint of the first */
    const double whole = run_computation(name), again = run_computation(name);
    if (rank == 0)
        printf("%s: %.3f\n", whole == again ? "the restart gives the same result" : "the restart differs",
               again);
    if (rank == 0)
        MPI_File_delete(name, MPI_INFO_NULL);
    MPI_Finalize();
    return whole == again ? 0 : 1;
}
