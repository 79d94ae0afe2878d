/* windows.c: one-sided operations with buffers and windows in all kinds of memory, compared with the same
 * operations in host memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "area.h"

static int rank, size, errors;
static unsigned seeds;

/* The arguments of one operation on the window of the next rank, which holds 4 * count elements. */
struct call {
    void *origin, *result;
    int count;
    MPI_Datatype type; /* datatype of origin and target */
    MPI_Win window;
    MPI_Aint at; /* displacement in the target window, in bytes */
    int target;
};

static void run_put(const struct call *c)
{
    MPI_Put(c->origin, c->count, c->type, c->target, c->at, c->count, c->type, c->window);
}

static void run_get(const struct call *c)
{
    MPI_Get(c->result, c->count, c->type, c->target, c->at, c->count, c->type, c->window);
}

static void run_accumulate(const struct call *c)
{
    MPI_Accumulate(c->origin, c->count, c->type, c->target, c->at, c->count, c->type, MPI_SUM, c->window);
}

static void run_replace(const struct call *c)
{
    MPI_Accumulate(c->origin, c->count, c->type, c->target, c->at, c->count, c->type, MPI_REPLACE, c->window);
}

static void run_get_accumulate(const struct call *c)
{
    MPI_Get_accumulate(c->origin, c->count, c->type, c->result, c->count, c->type, c->target, c->at, c->count,
                       c->type, MPI_BXOR, c->window);
}

static void run_atomic_read(const struct call *c)
{
    MPI_Get_accumulate(NULL, 0, MPI_INT, c->result, c->count, c->type, c->target, c->at, c->count, c->type,
                       MPI_NO_OP, c->window);
}

static void run_fetch_and_op(const struct call *c)
{
    MPI_Fetch_and_op(c->origin, c->result, MPI_INT64_T, c->target, c->at, MPI_SUM, c->window);
    MPI_Fetch_and_op(c->origin, (char *)c->result + 8, MPI_INT, c->target, c->at + 8, MPI_MAX, c->window);
}

/* The first call compares with a value that differs from the window's, the second with the window's value. */
static void run_compare_and_swap(const struct call *c)
{
    MPI_Compare_and_swap(c->origin, (char *)c->origin + 8, c->result, MPI_INT64_T, c->target, c->at,
                         c->window);
    MPI_Win_fence(0, c->window);
    MPI_Get(c->result, 8, MPI_BYTE, c->target, c->at, 8, MPI_BYTE, c->window);
    MPI_Win_fence(0, c->window);
    MPI_Compare_and_swap(c->origin, c->result, (char *)c->result + 16, MPI_INT64_T, c->target, c->at,
                         c->window);
}

static void wait_all(MPI_Request *q, int n)
{
    MPI_Waitall(n, q, MPI_STATUSES_IGNORE);
}

static void run_with_requests(const struct call *c)
{
    MPI_Request q[2];
    MPI_Win_fence(0, c->window);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, c->window);
    MPI_Win_lock_all(0, c->window);
    MPI_Rput(c->origin, c->count, c->type, c->target, c->at, c->count, c->type, c->window, &q[0]);
    wait_all(q, 1);
    MPI_Win_flush(c->target, c->window);
    MPI_Rget(c->result, c->count, c->type, c->target, c->at, c->count, c->type, c->window, &q[0]);
    MPI_Raccumulate(c->origin, c->count, c->type, c->target, c->at, c->count, c->type, MPI_BAND, c->window,
                    &q[1]);
    wait_all(q, 2);
    MPI_Win_unlock_all(c->window);
    MPI_Win_fence(0, c->window);
}

static const struct {
    const char *name;
    void (*run)(const struct call *c);
} calls[] = {
    {"put", run_put},
    {"get", run_get},
    {"accumulate", run_accumulate},
    {"replace", run_replace},
    {"get_accumulate", run_get_accumulate},
    {"get_accumulate with MPI_NO_OP", run_atomic_read},
    {"fetch_and_op", run_fetch_and_op},
    {"compare_and_swap", run_compare_and_swap},
    {"operations with requests", run_with_requests},
};
#define CALLS (sizeof(calls) / sizeof(*calls))

static void compare_areas(const struct area *got, const struct area *wanted, const char *what,
                          const char *buffer)
{
    char *bytes = malloc(got->size);
    area_read(got, 0, bytes, got->size);
    for (size_t i = 0; i < got->size; i++)
        if (bytes[i] != wanted->at[i]) {
            printf("rank %d: %s: byte %zu of %zu of the %s is 0x%02x, in host memory 0x%02x\n", rank, what, i,
                   got->size, buffer, (unsigned char)bytes[i], (unsigned char)wanted->at[i]);
            errors++;
            break;
        }
    free(bytes);
}

/* Runs the operation on a window of the given memory with the given buffers. */
static void run_in_window(size_t which, const struct area *memory, const struct area *origin,
                          const struct area *result, struct call c, int dynamic)
{
    MPI_Aint base = 0, bases[16];
    if (dynamic) {
        MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &c.window);
        MPI_Win_attach(c.window, memory->at, (MPI_Aint)memory->size);
        MPI_Get_address(memory->at, &base);
    } else {
        MPI_Win_create(memory->at, (MPI_Aint)memory->size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &c.window);
    }
    MPI_Allgather(&base, 1, MPI_AINT, bases, 1, MPI_AINT, MPI_COMM_WORLD);
    c.target = (rank + 1) % size;
    c.at = bases[c.target] + 64;
    c.origin = origin->at;
    c.result = result->at;
    MPI_Win_fence(0, c.window);
    calls[which].run(&c);
    MPI_Win_fence(0, c.window);
    if (dynamic)
        MPI_Win_detach(c.window, memory->at);
    MPI_Win_free(&c.window);
}

static void test_operation(size_t which, int count, MPI_Datatype type, enum area_kind window,
                           enum area_kind buffers, int dynamic)
{
    struct call c = {.count = count, .type = type};
    MPI_Aint lb, extent;
    char what[160];
    MPI_Type_get_extent(type, &lb, &extent);
    const size_t room = (size_t)(extent * (count + 1)) + 128;
    struct area memory = area_alloc(window, room), origin = area_alloc(buffers, room),
                result = area_alloc(buffers, room);
    struct area host_memory = area_alloc(AREA_HOST, room), host_origin = area_alloc(AREA_HOST, room),
                host_result = area_alloc(AREA_HOST, room);
    const struct area *const all[2][3] = {{&memory, &origin, &result},
                                          {&host_memory, &host_origin, &host_result}};
    const unsigned seed = 100 * ++seeds + (unsigned)rank;
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 3; k++)
            area_fill(all[i][k], seed + 20 * (unsigned)k);
        run_in_window(which, all[i][0], all[i][1], all[i][2], c, dynamic);
    }
    snprintf(what, sizeof(what), "%s, %s window%s, %s buffers, %d elements", calls[which].name,
             area_names[window], dynamic ? " (dynamic)" : "", area_names[buffers], count);
    compare_areas(&memory, &host_memory, what, "window");
    compare_areas(&origin, &host_origin, what, "origin buffer");
    compare_areas(&result, &host_result, what, "result buffer");
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++)
            area_free((struct area *)all[i][k]);
}

#define ELEMENTS 5000
#define TURNS    20

/* All ranks, the owner too, add to the same elements of each window, and fetch and add to a counter. */
static void test_concurrent_accumulates(enum area_kind window, enum area_kind buffer)
{
    struct area memory = area_alloc(window, ELEMENTS * sizeof(double)),
                ones = area_alloc(buffer, ELEMENTS * sizeof(double)),
                counters = area_alloc(window, sizeof(int64_t));
    double *values = calloc(ELEMENTS, sizeof(*values));
    int64_t one = 1, old, total = 0;
    MPI_Win w, c;
    area_write(&memory, 0, values, memory.size);
    area_write(&counters, 0, &total, sizeof(total));
    for (int i = 0; i < ELEMENTS; i++)
        values[i] = 1;
    area_write(&ones, 0, values, ones.size);
    MPI_Win_create(memory.at, (MPI_Aint)memory.size, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    MPI_Win_create(counters.at, sizeof(int64_t), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &c);
    MPI_Win_lock_all(0, w);
    MPI_Win_lock_all(0, c);
    for (int i = 0; i < TURNS * size; i++) {
        MPI_Accumulate(ones.at, ELEMENTS, MPI_DOUBLE, i % size, 0, ELEMENTS, MPI_DOUBLE, MPI_SUM, w);
        MPI_Fetch_and_op(&one, &old, MPI_INT64_T, i % size, 0, MPI_SUM, c);
        MPI_Win_flush(i % size, c);
    }
    MPI_Win_unlock_all(w);
    MPI_Win_unlock_all(c);
    MPI_Barrier(MPI_COMM_WORLD);
    area_read(&memory, 0, values, memory.size);
    area_read(&counters, 0, &total, sizeof(total));
    MPI_Win_free(&w);
    MPI_Win_free(&c);
    for (int i = 0; i < ELEMENTS && errors < 10; i++)
        if (values[i] != TURNS * size) {
            printf("rank %d: %s window: element %d is %g, expected %d\n", rank, area_names[window], i,
                   values[i], TURNS * size);
            errors++;
        }
    if (total != TURNS * size) {
        printf("rank %d: %s window: the counter is %lld, expected %d\n", rank, area_names[window],
               (long long)total, TURNS * size);
        errors++;
    }
    free(values);
    area_free(&memory);
    area_free(&ones);
    area_free(&counters);
}

/* Rank 0 computes, without calls of MPI, until the operations of the last rank are complete. */
static void test_target_outside_mpi(void)
{
    struct area memory = area_alloc(AREA_DEVICE, 3 * sizeof(int));
    const int zero[3] = {5, 5, 5};
    int mine[3] = {1, 2, 3}, seen[3];
    volatile int *done;
    MPI_Comm node;
    MPI_Win w, shared;
    MPI_Aint bytes;
    int near, unit;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &near);
    /* The window can be mapped only if all ranks are on one node, devices access each other's memory, and no
     * driver calls fail. */
    const char *peers = getenv("SOFTCUDA_PEERS");
    if (near < size || size < 2 || getenv("SOFTCUDA_FAIL") || (peers && strcmp(peers, "0") == 0))
        return;
    MPI_Win_allocate_shared(rank == 0 ? sizeof(int) : 0, 1, MPI_INFO_NULL, node, (void *)&done, &shared);
    MPI_Win_shared_query(shared, 0, &bytes, &unit, (void *)&done);
    area_write(&memory, 0, zero, sizeof(zero));
    if (rank == 0)
        *done = 0;
    MPI_Win_create(memory.at, (MPI_Aint)memory.size, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w);
        MPI_Put(mine, 1, MPI_INT, 0, 0, 1, MPI_INT, w);
        MPI_Accumulate(mine + 1, 2, MPI_INT, 0, 1, 2, MPI_INT, MPI_SUM, w);
        MPI_Get(seen, 3, MPI_INT, 0, 0, 3, MPI_INT, w);
        MPI_Win_unlock(0, w);
        *done = 1;
    }
    while (rank == 0 && !*done)
        ;
    if (rank == 0)
        area_read(&memory, 0, seen, sizeof(seen));
    if ((rank == 0 || rank == size - 1) && (seen[0] != 1 || seen[1] != 7 || seen[2] != 8)) {
        printf("rank %d: the window is %d %d %d, expected 1 7 8\n", rank, seen[0], seen[1], seen[2]);
        errors++;
    }
    MPI_Win_free(&w);
    MPI_Win_free(&shared);
    MPI_Comm_free(&node);
    area_free(&memory);
}

int main(int argc, char **argv)
{
    static const enum area_kind kinds[][2] = {{AREA_DEVICE, AREA_DEVICE}, {AREA_HOST, AREA_DEVICE},
                                              {AREA_DEVICE, AREA_HOST},   {AREA_POOL, AREA_MANAGED},
                                              {AREA_MANAGED, AREA_POOL},  {AREA_PINNED, AREA_DEVICE}};
    MPI_Datatype columns;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!area_load_cuda()) {
        MPI_Finalize();
        return 77;
    }
    MPI_Type_vector(3, 2, 4, MPI_INT, &columns);
    MPI_Type_commit(&columns);
    for (size_t which = 0; which < CALLS; which++)
        for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
            test_operation(which, 10, MPI_INT, kinds[k][0], kinds[k][1], 0);
            test_operation(which, 30000, MPI_INT, kinds[k][0], kinds[k][1], k % 2 == 1);
            test_operation(which, 700, columns, kinds[k][0], kinds[k][1], k % 2 == 0);
        }
    MPI_Type_free(&columns);
    test_concurrent_accumulates(AREA_DEVICE, AREA_DEVICE);
    test_concurrent_accumulates(AREA_DEVICE, AREA_HOST);
    test_concurrent_accumulates(AREA_POOL, AREA_DEVICE);
    test_target_outside_mpi();
    MPI_Finalize();
    return errors ? 1 : 0;
}
