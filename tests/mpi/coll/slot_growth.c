/* slot_growth.c: communicators that use shared memory often get many slots, one communicator after the
 * other, until half of the node's area is used; later communicators keep few slots. All of them use shared
 * memory with correct data before, during and after the change, and return all slots: later rounds have as
 * many slots as the first.
 *
 * ranks: 2
 * nodes: no
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "counters.h"

#define COMMS     40
#define ROUNDS    3
#define CALLS     80 /* the 64th call changes the number of slots */
#define BYTES_MAX 20000

static unsigned char buf[BYTES_MAX], all[8 * BYTES_MAX];

static unsigned char data_byte(int rank, int i, int call)
{
    return (unsigned char)(rank * 41 + i * 3 + call);
}

static void fill_input(int n, int call)
{
    for (int i = 0; i < n; i++)
        buf[i] = data_byte(mpitest_rank, i, call);
}

static void expect_data(const unsigned char *data, int rank, int n, int call)
{
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += data[i] != data_byte(rank, i, call);
    EXPECT_EQ(wrong, 0);
}

/* Calls with changing roots, so that every rank writes and runs ahead of the others in turn. */
static void run_calls(MPI_Comm comm, int call)
{
    static const int sizes[] = {200, 4096, 2000, 8192, 113, BYTES_MAX, 6000};
    const int n = sizes[call % 7], root = call / 3 % mpitest_size;
    fill_input(n, call);
    if (call % 3 == 0) {
        MPI_Bcast(buf, n, MPI_BYTE, root, comm);
        expect_data(buf, root, n, call);
    } else if (call % 3 == 1) {
        MPI_Gather(buf, n, MPI_BYTE, all, n, MPI_BYTE, root, comm);
        for (int r = 0; r < mpitest_size && root == mpitest_rank; r++)
            expect_data(all + r * n, r, n, call);
    } else {
        MPI_Allgather(buf, n, MPI_BYTE, all, n, MPI_BYTE, comm);
        for (int r = 0; r < mpitest_size; r++)
            expect_data(all + r * n, r, n, call);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm comm[COMMS];
    counters_begin();
    mpitest_begin(&argc, &argv);
    MPI_T_pvar_handle shared = counter_open("coll_shared");
    for (int round = 0; round < ROUNDS; round++) {
        for (int k = 0; k < COMMS; k++)
            MPI_Comm_dup(MPI_COMM_WORLD, &comm[k]);
        const unsigned long long before = read_counter(shared);
        for (int k = 0; k < COMMS; k++)
            for (int call = 0; call < CALLS; call++)
                run_calls(comm[k], call);
        EXPECT_EQ(read_counter(shared) - before, COMMS * CALLS);
        for (int k = 0; k < COMMS; k++)
            MPI_Comm_free(&comm[k]);
    }
    counters_end();
    return mpitest_end();
}
