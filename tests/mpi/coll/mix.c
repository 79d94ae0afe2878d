/* mix.c: thousands of collective operations in random order, of random lengths and roots, on three
 * overlapping communicators, with random delays. Every rank draws the same random numbers. Ranks that run
 * ahead, calls of many steps and sleeping ranks coincide in orders that no other test produces; every byte
 * is checked.
 *
 * ranks: 5 2 3 8
 * args: 2500
 * also: FISHPLATE_COLL=copy=read
 * also: FISHPLATE_COLL=copy=split
 * also: FISHPLATE_COLL=copy=slots
 * also: FISHPLATE_LAB=YIELDS=0 FISHPLATE_SPIN_US=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

enum { ELEMENTS_MAX = 1 << 20 /* elements of a rank's buffer */, LENGTHS = 18 };

static uint32_t *in, *out;

struct call {
    MPI_Comm comm;
    int rank, size, root;
    size_t n;      /* elements of a block or of a vector */
    uint32_t salt; /* distinguishes the data of this call from old data */
};

static uint32_t random_below(uint64_t *random_state)
{
    *random_state ^= *random_state << 13;
    *random_state ^= *random_state >> 7;
    *random_state ^= *random_state << 17;
    return (uint32_t)(*random_state >> 16);
}

static uint32_t element_value(const struct call *c, int rank, size_t i)
{
    return (uint32_t)(rank + 1) * 2654435761u + (uint32_t)i * 40503u + c->salt;
}

static void fill_input(const struct call *c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        in[i] = element_value(c, c->rank, i);
}

/* Checks that out[at...] holds the data of `rank` from `first` on. */
static void expect_data_of(const struct call *c, size_t at, int rank, size_t first)
{
    for (size_t i = 0; i < c->n; i++)
        EXPECT(out[at + i] == element_value(c, rank, first + i));
}

static void expect_sum(const struct call *c, size_t first)
{
    for (size_t i = 0; i < c->n; i++) {
        uint32_t sum = 0;
        for (int r = 0; r < c->size; r++)
            sum += element_value(c, r, first + i);
        EXPECT(out[i] == sum);
    }
}

static void test_rooted(int kind, const struct call *c)
{
    const int n = (int)c->n, root = c->root;
    const bool here = c->rank == root;
    switch (kind) {
    case 0:
        memcpy(out, in, c->n * sizeof(*out));
        MPI_Bcast(out, n, MPI_UINT32_T, root, c->comm);
        expect_data_of(c, 0, root, 0);
        return;
    case 1:
        MPI_Gather(in, n, MPI_UINT32_T, out, n, MPI_UINT32_T, root, c->comm);
        for (int r = 0; here && r < c->size; r++)
            expect_data_of(c, (size_t)r * c->n, r, 0);
        return;
    case 2:
        MPI_Scatter(in, n, MPI_UINT32_T, out, n, MPI_UINT32_T, root, c->comm);
        expect_data_of(c, 0, root, (size_t)c->rank * c->n);
        return;
    default:
        MPI_Reduce(in, out, n, MPI_UINT32_T, MPI_SUM, root, c->comm);
        if (here)
            expect_sum(c, 0);
    }
}

static void test_rootless(int kind, const struct call *c)
{
    const int n = (int)c->n;
    MPI_Request request;
    switch (kind) {
    case 4:
        MPI_Barrier(c->comm);
        return;
    case 5:
        MPI_Allgather(in, n, MPI_UINT32_T, out, n, MPI_UINT32_T, c->comm);
        break;
    case 6:
        MPI_Alltoall(in, n, MPI_UINT32_T, out, n, MPI_UINT32_T, c->comm);
        break;
    case 7:
        MPI_Allreduce(in, out, n, MPI_UINT32_T, MPI_SUM, c->comm);
        break;
    case 8:
        MPI_Reduce_scatter_block(in, out, n, MPI_UINT32_T, MPI_SUM, c->comm);
        break;
    default:
        MPI_Iallreduce(in, out, n, MPI_UINT32_T, MPI_SUM, c->comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int r = 0; (kind == 5 || kind == 6) && r < c->size; r++)
        expect_data_of(c, (size_t)r * c->n, r, kind == 5 ? 0 : (size_t)c->rank * c->n);
    if (kind > 6)
        expect_sum(c, kind == 8 ? (size_t)c->rank * c->n : 0);
}

/* Draws the next call from common random numbers; root and length also depend on the communicator's size. */
static int next_call(uint64_t *random_state, MPI_Comm comms[3], struct call *c)
{
    const int kind = (int)(random_below(random_state) % 10);
    const unsigned length = 1u << random_below(random_state) % LENGTHS, part = random_below(random_state),
                   root = random_below(random_state);
    c->comm = comms[random_below(random_state) % 3];
    c->salt = random_below(random_state);
    MPI_Comm_rank(c->comm, &c->rank);
    MPI_Comm_size(c->comm, &c->size);
    c->root = (int)(root % (unsigned)c->size);
    c->n = part % 3 == 0 ? length : 1 + part % length;
    while (c->n * (size_t)c->size > ELEMENTS_MAX)
        c->n /= 2;
    return kind;
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    const int calls = argc > 1 ? atoi(argv[1]) : 1500;
    uint64_t random_state = 88172645463325252ull, own = random_state + 7919u * (unsigned)(mpitest_rank + 1);
    MPI_Comm comms[3] = {MPI_COMM_WORLD};
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, mpitest_rank % 2, -mpitest_rank, &comms[2]);
    in = malloc(ELEMENTS_MAX * sizeof(*in));
    out = malloc(ELEMENTS_MAX * sizeof(*out));
    for (int i = 0; i < calls && mpitest_failures == 0; i++) {
        struct call c;
        const int kind = next_call(&random_state, comms, &c);
        fill_input(&c, kind == 2 || kind == 6 || kind == 8 ? c.n * (size_t)c.size : c.n);
        if (random_below(&own) % 16 == 0)
            usleep(random_below(&own) % 300);
        if (kind < 4)
            test_rooted(kind, &c);
        else
            test_rootless(kind, &c);
    }
    MPI_Comm_free(&comms[1]);
    MPI_Comm_free(&comms[2]);
    free(in);
    free(out);
    return mpitest_end();
}
