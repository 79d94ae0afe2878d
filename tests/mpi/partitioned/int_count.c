/* int_count.c: partitioned messages of programs that were compiled with a header in which the count is an
 * int, as in the MPI Forum's stubs of the ABI: the calls here go through pointers of that type, and
 * through the _c functions that this header adds. Both exchange messages with programs whose count is an
 * MPI_Count (docs/install.md).
 *
 * ranks: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

typedef int int_send(const void *, int, int, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request *);
typedef int int_recv(void *, int, int, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request *);

enum { PARTITIONS = 4, COUNT = 3, CALLS = 3 };

/* Called through pointers of another type, volatile so that no compiler compares the types. */
static int_send *volatile psend_int = (int_send *)(void (*)(void))MPI_Psend_init;
static int_recv *volatile precv_int = (int_recv *)(void (*)(void))MPI_Precv_init;

static void open_send(int call_kind, int *data, MPI_Request *r)
{
    if (call_kind == 0)
        psend_int(data, PARTITIONS, COUNT, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_INFO_NULL, r);
    else if (call_kind == 1)
        MPI_Psend_init_c(data, PARTITIONS, COUNT, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_INFO_NULL, r);
    else
        MPI_Psend_init(data, PARTITIONS, COUNT, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_INFO_NULL, r);
}

static void open_recv(int call_kind, int *data, MPI_Request *r)
{
    if (call_kind == 0)
        precv_int(data, PARTITIONS, COUNT, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_INFO_NULL, r);
    else if (call_kind == 1)
        MPI_Precv_init_c(data, PARTITIONS, COUNT, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_INFO_NULL, r);
    else
        MPI_Precv_init(data, PARTITIONS, COUNT, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_INFO_NULL, r);
}

int main(int argc, char **argv)
{
    int data[PARTITIONS * COUNT];
    MPI_Request r;
    mpitest_begin(&argc, &argv);
    for (int call_kind = 0; call_kind < CALLS * CALLS; call_kind++) {
        for (int i = 0; i < PARTITIONS * COUNT; i++)
            data[i] = mpitest_rank == 0 ? 10 * call_kind + i : -1;
        if (mpitest_rank == 0)
            open_send(call_kind % CALLS, data, &r);
        else
            open_recv(call_kind / CALLS, data, &r);
        MPI_Start(&r);
        if (mpitest_rank == 0)
            MPI_Pready_range(0, PARTITIONS - 1, r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        for (int i = 0; i < PARTITIONS * COUNT; i++)
            EXPECT_EQ(data[i], 10 * call_kind + i);
        MPI_Request_free(&r);
    }
    return mpitest_end();
}
