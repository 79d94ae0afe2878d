/* collectives.c: threads run collectives and messages on separate communicators at once; a user's
 * reduction function queries the size of its datatype.
 *
 * ranks: 2 1 3 4 5 8
 * also: FISHPLATE_SPIN_US=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "threadtest.h"

enum { ROUNDS = 40, WORDS = 3000 };

static MPI_Comm comms[THREADS];
static MPI_Op op;

static void add_elements(void *in, void *inout, int *len, MPI_Datatype *type)
{
    int size = 0;
    MPI_Type_size(*type, &size);
    for (int i = 0; i < *len; i++)
        ((int *)inout)[i] += ((int *)in)[i] * (size == (int)sizeof(int));
}

static void *run_collectives(void *number)
{
    int me = (int)(long)number, sum = mpitest_size * (mpitest_size - 1) / 2;
    MPI_Comm comm = comms[me];
    long failures = 0;
    int *words = malloc(WORDS * sizeof(int)), *all = malloc(WORDS * sizeof(int));
    for (int i = 0; i < ROUNDS; i++) {
        int n = i % 4 == 3 ? WORDS : 1, root = i % mpitest_size, token = -1;
        for (int k = 0; k < n; k++)
            words[k] = mpitest_rank + me;
        MPI_Allreduce(words, all, n, MPI_INT, i % 2 ? op : MPI_SUM, comm);
        failures += WRONG(all[0] != sum + me * mpitest_size || all[n - 1] != all[0]);
        words[0] = mpitest_rank == root ? i * 100 + me : -1;
        MPI_Bcast(words, 1, MPI_INT, root, comm);
        failures += WRONG(words[0] != i * 100 + me);
        MPI_Sendrecv(&mpitest_rank, 1, MPI_INT, (mpitest_rank + 1) % mpitest_size, 0, &token, 1, MPI_INT,
                     (mpitest_rank + mpitest_size - 1) % mpitest_size, 0, comm, MPI_STATUS_IGNORE);
        failures += WRONG(token != (mpitest_rank + mpitest_size - 1) % mpitest_size);
        MPI_Barrier(comm);
    }
    free(words);
    free(all);
    return (void *)failures;
}

int main(int argc, char **argv)
{
    threadtest_begin(&argc, &argv);
    MPI_Op_create(add_elements, 1, &op);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    threadtest_run(run_collectives);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&comms[i]);
    MPI_Op_free(&op);
    return mpitest_end();
}
