/* faults.c: failures of the GPU driver in the middle of a job, with softcuda, whose calls fail on demand
 * (SOFTCUDA_FAIL): the call uses a slower path or returns an error at the affected ranks; it never crashes
 * or hangs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <sys/wait.h>
#include <unistd.h>

#include "area.h"
#include "mpitest.h"

#define COUNT 600000 /* elements of 4 bytes: more than GPU_COLL_MIN */
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

/* Checks a sum while the driver functions named in `functions` fail at rank 0: the result is correct or, if
 * `fails`, every rank gets an error. */
static void test_sum(const char *functions, int fails)
{
    struct area in = area_alloc(AREA_DEVICE, BYTES), out = area_alloc(AREA_DEVICE, BYTES);
    write_numbers(&in);
    if (mpitest_rank == 0)
        fail_calls(functions);
    const int rc = MPI_Allreduce(in.at, out.at, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    fail_calls("");
    if ((rc != MPI_SUCCESS) != fails) {
        char text[MPI_MAX_ERROR_STRING];
        int length;
        MPI_Error_string(rc, text, &length);
        fprintf(stderr, "rank %d: sum while these functions fail at rank 0: \"%s\": %s\n", mpitest_rank,
                functions, text);
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
static void test_both_sides_fail(const struct area *a, int count)
{
    struct area good = area_alloc(AREA_DEVICE, BYTES);
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

static void test_device_is_lost(void)
{
    struct area a = area_alloc(AREA_DEVICE, BYTES);
    fail_calls("cuMemcpyAsync,cuMemcpy2DAsync_v2,cuIpcOpenMemHandle_v2");
    test_both_sides_fail(&a, COUNT);
    area_free(&a);
}

static void test_buffer_spans_two_allocations(void)
{
    struct area whole = area_alloc(AREA_DEVICE, BYTES), part = area_alloc(AREA_DEVICE, BYTES - 4096);
    test_both_sides_fail(mpitest_rank == 0 ? &part : &whole, COUNT);
    test_both_sides_fail(mpitest_rank == 1 ? &part : &whole, COUNT);
    area_free(&whole);
    area_free(&part);
}

/* The receiver gets the announcement after the sender has freed the memory of the message. */
static void test_memory_freed_in_flight(void)
{
    struct area a = area_alloc(AREA_DEVICE, BYTES);
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

/* A forked child that calls exit runs the library's destructors, without an effect on the parent. */
static void test_child_exits(void)
{
    const pid_t child = fork();
    int status = -1;
    if (child == 0)
        _exit(0);
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    test_sum("", 0);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    if (!area_load_cuda()) {
        MPI_Finalize();
        return 77;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    test_sum("", 0); /* later collectives of the communicator use shared memory */
    test_sum("cuMemAlloc_v2", 0);
    test_sum("cuMemHostAlloc", 0);
    test_sum("cuModuleLoadData", 0);
    test_sum("cuIpcGetMemHandle", 0);
    test_sum("cuIpcOpenMemHandle_v2", 0);
    test_sum("cuLaunchKernel", 1);
    test_sum("", 0);
    test_device_is_lost();
    test_buffer_spans_two_allocations();
    test_memory_freed_in_flight();
    test_child_exits();
    int total = 0;
    MPI_Allreduce(&mpitest_failures, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    /* MPI_Finalize must return although these calls fail, as after a reset of the contexts. */
    fail_calls("cuCtxPushCurrent_v2,cuStreamSynchronize");
    MPI_Finalize();
    return total > 0;
}
