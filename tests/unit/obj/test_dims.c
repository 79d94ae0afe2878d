/* test_dims.c: compares MPI_Dims_create with an exhaustive search, runs it on numbers with large factors,
 * and tests grid arithmetic.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <mpi.h>
#include <time.h>

#include "obj/topo.h"
#include "test.h"

/* Smallest possible gap between the largest and the smallest of k factors of n, none above cap. */
static int find_smallest_gap(int n, int k, int cap, int largest)
{
    if (k == 1)
        return n <= cap ? (largest ? largest : n) - n : INT_MAX;
    int best = INT_MAX;
    for (int d = 1; d <= cap && d <= n; d++) {
        if (n % d)
            continue;
        int gap = find_smallest_gap(n / d, k - 1, d, largest ? largest : d);
        best = gap < best ? gap : best;
    }
    return best;
}

static void test_gap_is_minimal(void)
{
    for (int k = 1; k <= 4; k++) {
        for (int n = 1; n <= 400; n++) {
            int dims[4] = {0}, product = 1;
            EXPECT_EQ(dims_create(n, k, dims), MPI_SUCCESS);
            for (int i = 0; i < k; i++) {
                product *= dims[i];
                EXPECT(i == 0 || dims[i] <= dims[i - 1]);
            }
            EXPECT_EQ(product, n);
            EXPECT_EQ(dims[0] - dims[k - 1], find_smallest_gap(n, k, n, 0));
        }
    }
}

/* Among factorisations of equal gap the one with the larger small factors is chosen: the first case is not
 * 14 x 12 x 12 x 7 x 7. */
static void test_tie_prefers_large_small_factors(void)
{
    static const struct {
        int n, k, dims[5];
    } cases[] = {{98784, 5, {14, 14, 9, 8, 7}}, {5616, 4, {13, 9, 8, 6}}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int dims[5] = {0};
        EXPECT_EQ(dims_create(cases[i].n, cases[i].k, dims), MPI_SUCCESS);
        for (int d = 0; d < cases[i].k; d++)
            EXPECT_EQ(dims[d], cases[i].dims[d]);
    }
}

static void test_given_dimensions_stay(void)
{
    int dims[] = {0, 3, 0}, full[] = {2, 3}, bad[] = {0, 4}, negative[] = {-1}, wrong[] = {2, 2};
    EXPECT_EQ(dims_create(24, 3, dims), MPI_SUCCESS);
    EXPECT_EQ(dims[0], 4);
    EXPECT_EQ(dims[1], 3);
    EXPECT_EQ(dims[2], 2);
    EXPECT_EQ(dims_create(6, 2, full), MPI_SUCCESS);
    EXPECT_EQ(dims_create(6, 2, bad), MPI_ERR_DIMS);
    EXPECT_EQ(dims_create(6, 1, negative), MPI_ERR_DIMS);
    EXPECT_EQ(dims_create(6, 2, wrong), MPI_ERR_DIMS);
    EXPECT_EQ(dims_create(0, 2, dims), MPI_ERR_ARG);
    EXPECT_EQ(dims_create(5, 0, NULL), MPI_SUCCESS);
}

static void test_large_numbers(void)
{
    static const int numbers[] = {2147483647, 2095133040, 1073741824, 1968823296,
                                  735134400,  1000000007, 2147483646};
    clock_t begin = clock();
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        for (int k = 1; k <= 40; k++) {
            int dims[40] = {0};
            long long product = 1;
            EXPECT_EQ(dims_create(numbers[i], k, dims), MPI_SUCCESS);
            for (int d = 0; d < k; d++)
                product *= dims[d];
            EXPECT_EQ(product, numbers[i]);
        }
    }
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    if (seconds > 5)
        printf("280 calls took %.1f s\n", seconds);
    EXPECT(seconds < 5);
}

static void test_grid_arithmetic(void)
{
    struct topology *t;
    int dims[] = {2, 3, 4}, periods[] = {0, 1, 0}, coords[3], source, dest;
    EXPECT_EQ(topology_cart(3, dims, periods, &t), MPI_SUCCESS);
    for (int rank = 0; rank < 24; rank++) {
        cart_coords_of(t, rank, 3, coords);
        EXPECT_EQ(cart_rank_of(t, coords), rank);
        for (int d = 0; d < 3; d++) {
            for (int by = -5; by <= 5; by++) {
                cart_shift(t, rank, d, by, &source, &dest);
                coords[d] += by;
                EXPECT_EQ(cart_rank_of(t, coords), dest);
                coords[d] -= 2 * by;
                EXPECT_EQ(cart_rank_of(t, coords), source);
                coords[d] += by;
            }
        }
    }
    topology_release(t);
}

int main(void)
{
    TEST_RUN(test_gap_is_minimal);
    TEST_RUN(test_tie_prefers_large_small_factors);
    TEST_RUN(test_given_dimensions_stay);
    TEST_RUN(test_large_numbers);
    TEST_RUN(test_grid_arithmetic);
    return test_result();
}
