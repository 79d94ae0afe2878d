/* transfer.c: messages with derived datatypes: strided to contiguous and back, structures, whole matrices
 * in pipelines, partial receives, absolute addresses.
 *
 * ranks: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "mpitest.h"

/* Sends `n` columns of a matrix as a column type; the other side receives rows. */
static void test_transpose(int n)
{
    MPI_Datatype column, packed;
    double *m = malloc(sizeof(double) * (size_t)n * (size_t)n);
    MPI_Type_vector(n, 1, n, MPI_DOUBLE, &column);
    MPI_Type_create_resized(column, 0, sizeof(double), &packed);
    MPI_Type_commit(&packed);
    for (int i = 0; i < n * n; i++)
        m[i] = mpitest_rank == 0 ? i : -1;
    if (mpitest_rank == 0) {
        MPI_Send(m, n, packed, 1, 7, MPI_COMM_WORLD);
        MPI_Recv(m, n, packed, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        int wrong = 0;
        for (int i = 0; i < n * n; i++)
            wrong += m[i] != i;
        EXPECT_EQ(wrong, 0);
    } else {
        MPI_Status status;
        int count;
        MPI_Recv(m, n * n, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_DOUBLE, &count);
        EXPECT_EQ(count, n * n);
        int wrong = 0;
        for (int i = 0; i < n * n; i++)
            wrong += m[i] != i % n * n + i / n;
        EXPECT_EQ(wrong, 0);
        MPI_Send(m, n * n, MPI_DOUBLE, 0, 8, MPI_COMM_WORLD);
    }
    MPI_Type_free(&column);
    MPI_Type_free(&packed);
    free(m);
}

struct particle {
    char kind;
    double at[3];
    int id;
};

static void test_structures(int n)
{
    struct particle *p = calloc((size_t)n, sizeof(*p));
    MPI_Datatype t, particle, types[3] = {MPI_CHAR, MPI_DOUBLE, MPI_INT};
    int lengths[3] = {1, 3, 1};
    MPI_Aint at[3] = {offsetof(struct particle, kind), offsetof(struct particle, at),
                      offsetof(struct particle, id)};
    MPI_Type_create_struct(3, lengths, at, types, &t);
    MPI_Type_create_resized(t, 0, sizeof(struct particle), &particle);
    MPI_Type_commit(&particle);
    for (int i = 0; mpitest_rank == 0 && i < n; i++)
        p[i] = (struct particle){(char)(i % 100), {i, i + 0.25, i + 0.5}, i};
    if (mpitest_rank == 0) {
        MPI_Send(p, n, particle, 1, 9, MPI_COMM_WORLD);
    } else {
        MPI_Status status;
        int count;
        MPI_Recv(p, n, particle, 0, 9, MPI_COMM_WORLD, &status);
        MPI_Get_elements(&status, particle, &count);
        EXPECT_EQ(count, 5 * n);
        int wrong = 0;
        for (int i = 0; i < n; i++)
            wrong += p[i].kind != i % 100 || p[i].at[2] != i + 0.5 || p[i].id != i;
        EXPECT_EQ(wrong, 0);
    }
    MPI_Type_free(&t);
    MPI_Type_free(&particle);
    free(p);
}

/* Three integers are sent and received as pairs: one and a half pairs. */
static void test_partial(void)
{
    MPI_Datatype pair;
    int data[6] = {1, 2, 3, 0, 0, 0}, n;
    MPI_Status status;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    if (mpitest_rank == 0) {
        MPI_Send(data, 3, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(data, 3, pair, 0, 0, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, pair, &n);
        EXPECT_EQ(n, MPI_UNDEFINED);
        MPI_Get_elements(&status, pair, &n);
        EXPECT_EQ(n, 3);
        MPI_Count large;
        MPI_Get_elements_x(&status, pair, &large);
        EXPECT_EQ(large, 3);
        MPI_Get_count(&status, MPI_INT, &n);
        EXPECT_EQ(n, 3);
    }
    MPI_Status_set_elements(&status, pair, 5);
    MPI_Get_elements(&status, pair, &n);
    EXPECT_EQ(n, 5);
    MPI_Type_free(&pair);
}

static void test_absolute_addresses(void)
{
    int a = mpitest_rank == 0 ? 41 : 0, lengths[2] = {1, 1};
    double b = mpitest_rank == 0 ? 2.5 : 0;
    MPI_Aint at[2];
    MPI_Datatype t, types[2] = {MPI_INT, MPI_DOUBLE};
    MPI_Get_address(&a, &at[0]);
    MPI_Get_address(&b, &at[1]);
    MPI_Type_create_struct(2, lengths, at, types, &t);
    MPI_Type_commit(&t);
    if (mpitest_rank == 0)
        MPI_Send(MPI_BOTTOM, 1, t, 1, 0, MPI_COMM_WORLD);
    else
        MPI_Recv(MPI_BOTTOM, 1, t, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT(a == 41 && b == 2.5);
    MPI_Type_free(&t);
}

/* A type may be freed while a message that uses it is in flight. */
static void test_type_freed_in_flight(void)
{
    MPI_Datatype t;
    MPI_Request r;
    int n = 200000, *data = calloc((size_t)(2 * n), sizeof(int));
    MPI_Type_vector(n, 1, 2, MPI_INT, &t);
    MPI_Type_commit(&t);
    for (int i = 0; mpitest_rank == 0 && i < n; i++)
        data[2 * i] = i;
    if (mpitest_rank == 0)
        MPI_Isend(data, 1, t, 1, 3, MPI_COMM_WORLD, &r);
    else
        MPI_Irecv(data, 1, t, 0, 3, MPI_COMM_WORLD, &r);
    MPI_Type_free(&t);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += data[2 * i] != i || data[2 * i + 1] != 0;
    EXPECT_EQ(wrong, 0);
    free(data);
}

static void test_message_to_self(void)
{
    MPI_Datatype odd;
    int from[8] = {0, 1, 2, 3, 4, 5, 6, 7}, to[8] = {0};
    MPI_Type_vector(4, 1, 2, MPI_INT, &odd);
    MPI_Type_commit(&odd);
    MPI_Sendrecv(from + 1, 1, odd, mpitest_rank, 0, to, 1, odd, mpitest_rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    EXPECT(to[0] == 1 && to[1] == 0 && to[2] == 3 && to[4] == 5 && to[6] == 7);
    MPI_Type_free(&odd);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    test_transpose(3);
    test_transpose(40);
    test_transpose(600);
    test_structures(2);
    test_structures(100000);
    test_partial();
    test_absolute_addresses();
    test_type_freed_in_flight();
    test_message_to_self();
    return mpitest_end();
}
