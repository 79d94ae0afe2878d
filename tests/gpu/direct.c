/* direct.c: which collective calls run directly on GPU memory, as the library's counters show: large ones,
 * if the data of all ranks of a node is in GPU memory. Sums and broadcasts in random order, with ranks
 * that choose the kind of memory in each call, are correct in all cases.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "area.h"
#include "counters.h"

#define COUNT 600000 /* elements of 4 bytes: more than GPU_COLL_MIN */
#define CALLS 60     /* longer than the history of buffer kinds in shared_all_on_device */

static MPI_T_pvar_handle staged, direct;

static void write_numbers(const struct area *a, int first)
{
    int *numbers = malloc(COUNT * sizeof(int));
    for (int i = 0; i < COUNT; i++)
        numbers[i] = first + i;
    area_write(a, 0, numbers, COUNT * sizeof(int));
    free(numbers);
}

/* Each element is factor * its index + first. */
static void expect_numbers(const struct area *a, int factor, int first)
{
    int *numbers = malloc(COUNT * sizeof(int)), wrong = 0;
    area_read(a, 0, numbers, COUNT * sizeof(int));
    for (int i = 0; i < COUNT; i++)
        wrong += numbers[i] != factor * i + first;
    EXPECT_EQ(wrong, 0);
    free(numbers);
}

static void test_sum(enum area_kind kind, bool expect_direct, bool blocking)
{
    const int size = mpitest_size;
    const unsigned long long staged_before = read_counter(staged), direct_before = read_counter(direct);
    struct area in = area_alloc(kind, COUNT * sizeof(int)), out = area_alloc(kind, COUNT * sizeof(int));
    MPI_Request request;
    write_numbers(&in, mpitest_rank);
    if (blocking) {
        MPI_Allreduce(in.at, out.at, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    } else {
        MPI_Iallreduce(in.at, out.at, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    expect_numbers(&out, size, size * (size - 1) / 2);
    EXPECT_EQ(read_counter(direct) - direct_before, expect_direct);
    if (expect_direct)
        EXPECT_EQ(read_counter(staged), staged_before);
    area_free(&in);
    area_free(&out);
}

static void test_sum_at_root(void)
{
    const unsigned long long before = read_counter(direct);
    struct area in = area_alloc(AREA_DEVICE, COUNT * sizeof(int)),
                out = area_alloc(AREA_DEVICE, COUNT * sizeof(int));
    for (int root = 0; root < mpitest_size; root++) {
        write_numbers(&in, mpitest_rank + root);
        MPI_Reduce(in.at, mpitest_rank == root ? out.at : NULL, COUNT, MPI_INT, MPI_SUM, root,
                   MPI_COMM_WORLD);
        if (mpitest_rank == root)
            expect_numbers(&out, mpitest_size, mpitest_size * (mpitest_size - 1) / 2 + mpitest_size * root);
    }
    EXPECT_EQ(read_counter(direct) - before, mpitest_size);
    area_free(&in);
    area_free(&out);
}

/* Broadcasts with changing roots: a root does not wait for the other ranks, which learn later in which
 * kind of memory the data was. */
static void test_broadcasts(void)
{
    struct area areas[2] = {area_alloc(AREA_HOST, COUNT * sizeof(int)),
                            area_alloc(AREA_DEVICE, COUNT * sizeof(int))};
    for (int i = 0; i < CALLS; i++) {
        const unsigned bits = (unsigned)i * 2654435761u >> 8;
        const struct area *a = &areas[i % 10 == 0 ? 1 : bits >> mpitest_rank & 1];
        const int root = (int)(bits >> 16) % mpitest_size;
        write_numbers(a, mpitest_rank == root ? i : -1);
        MPI_Bcast(a->at, COUNT, MPI_INT, root, MPI_COMM_WORLD);
        expect_numbers(a, 1, i);
    }
    area_free(&areas[0]);
    area_free(&areas[1]);
}

int main(int argc, char **argv)
{
    counters_begin();
    mpitest_begin(&argc, &argv);
    if (!area_load_cuda()) {
        MPI_Finalize();
        return 77;
    }
    staged = counter_open("coll_device_staged_bytes");
    direct = counter_open("coll_device_direct_calls");
    test_sum(AREA_HOST, false, true); /* later collectives of the communicator use shared memory */
    test_sum(AREA_DEVICE, true, true);
    test_sum(AREA_DEVICE, true, false);
    test_sum(mpitest_rank == 0 && mpitest_size > 1 ? AREA_HOST : AREA_DEVICE, mpitest_size == 1, true);
    test_sum(AREA_DEVICE, true, true);
    test_sum_at_root();
    test_broadcasts();
    const int rc = mpitest_end();
    counters_end();
    return rc;
}
