/* faults.c: what programs see if the GPU library fails in the middle of a job, on softcuda, whose calls
 * fail on demand (SOFTCUDA_FAIL): the result of a slower path, or an error at the ranks concerned; never a
 * crash or a wait without end.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <sys/wait.h>
#include <unistd.h>

#include "area.h"
#include "mpitest.h"

#define COUNT 600000 /* of 4 bytes: more than GPU_COLL_MIN */
#define BYTES (COUNT * sizeof(int))

static void fail_calls(const char *functions)
{
    setenv("SOFTCUDA_FAIL", functions, 1);
}

static void write_numbers(const struct area *a)
{
    int *numbers = malloc(BYTES);
    for (int i = 0; i < COUNT; i++)
        numbers[i] = i;
    area_write(a, 0, numbers, BYTES);
    free(numbers);
}

static void expect_numbers(const struct area *a, int factor)
{
    int *numbers = malloc(BYTES), wrong = 0;
    area_read(a, 0, numbers, BYTES);
    for (int i = 0; i < COUNT; i++)
        wrong += numbers[i] != factor * i;
    EXPECT_EQ(wrong, 0);
    free(numbers);
}

/* Checks a sum while these functions fail at rank 0: the result is right, or every rank gets an error if
 * `fails`. */
static void sum(const char *functions, int fails)
{
    struct area in = area_new(AREA_DEVICE, BYTES), out = area_new(AREA_DEVICE, BYTES);
    write_numbers(&in);
    if (mpitest_rank == 0)
        fail_calls(functions);
    const int rc = MPI_Allreduce(in.at, out.at, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    fail_calls("");
    if ((rc != MPI_SUCCESS) != fails) {
        char text[MPI_MAX_ERROR_STRING];
        int length;
        MPI_Error_string(rc, text, &length);
        fprintf(stderr, "rank %d: sum while rank 0 fails in \"%s\": %s\n", mpitest_rank, functions, text);
    }
    if (fails)
        EXPECT(rc != MPI_SUCCESS);
    else
        EXPECT_EQ(rc, MPI_SUCCESS);
    if (rc == MPI_SUCCESS)
        expect_numbers(&out, mpitest_size);
    area_free(&in);
    area_free(&out);
}

/* A large message of rank 0 whose sender fails: both ranks return an error, and the next message arrives. */
static void both_fail(const struct area *a, int count)
{
    struct area good = area_new(AREA_DEVICE, BYTES);
    const int rc = mpitest_rank == 0
                       ? MPI_Send(a->at, count, MPI_INT, 1, 1, MPI_COMM_WORLD)
                       : MPI_Recv(a->at, count, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    fail_calls("");
    EXPECT(rc != MPI_SUCCESS);
    write_numbers(&good);
    if (mpitest_rank == 0)
        MPI_Send(good.at, COUNT, MPI_INT, 1, 2, MPI_COMM_WORLD);
    else
        MPI_Recv(good.at, COUNT, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect_numbers(&good, 1);
    area_free(&good);
}

static void device_is_lost(void)
{
    struct area a = area_new(AREA_DEVICE, BYTES);
    fail_calls("cuMemcpyAsync,cuMemcpy2DAsync_v2,cuIpcOpenMemHandle_v2");
    both_fail(&a, COUNT);
    area_free(&a);
}

static void buffer_spans_two_allocations(void)
{
    struct area whole = area_new(AREA_DEVICE, BYTES), part = area_new(AREA_DEVICE, BYTES - 4096);
    both_fail(mpitest_rank == 0 ? &part : &whole, COUNT);
    both_fail(mpitest_rank == 1 ? &part : &whole, COUNT);
    area_free(&whole);
    area_free(&part);
}

/* The receiver learns of the message after the sender has freed its memory. */
static void memory_is_freed_under_way(void)
{
    struct area a = area_new(AREA_DEVICE, BYTES);
    MPI_Request request = MPI_REQUEST_NULL;
    int rc;
    if (mpitest_rank == 0) {
        MPI_Isend(a.at, COUNT, MPI_INT, 1, 3, MPI_COMM_WORLD, &request);
        area_free(&a);
        MPI_Barrier(MPI_COMM_WORLD);
        rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        rc = MPI_Recv(a.at, COUNT, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        area_free(&a);
    }
    EXPECT(rc != MPI_SUCCESS);
}

/* A child that ends by exit runs the library's destructors; the parent goes on. */
static void child_exits(void)
{
    const pid_t child = fork();
    int status = -1;
    if (child == 0)
        _exit(0);
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    sum("", 0);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    if (!area_start()) {
        MPI_Finalize();
        return 77;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    sum("", 0); /* shared memory is ready from now on */
    sum("cuMemAlloc_v2", 0);
    sum("cuMemHostAlloc", 0);
    sum("cuModuleLoadData", 0);
    sum("cuIpcGetMemHandle", 0);
    sum("cuIpcOpenMemHandle_v2", 0);
    sum("cuLaunchKernel", 1);
    sum("", 0);
    device_is_lost();
    buffer_spans_two_allocations();
    memory_is_freed_under_way();
    child_exits();
    int total = 0;
    MPI_Allreduce(&mpitest_failures, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    fail_calls("cuCtxPushCurrent_v2,cuStreamSynchronize"); /* the program has destroyed its contexts */
    MPI_Finalize();
    return total > 0;
}
