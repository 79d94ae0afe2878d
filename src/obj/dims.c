/* dims.c: MPI_Dims_create, exactly: among all products of k factors that equal a number, the one whose
 * largest and smallest factor differ least, and among those the one with the largest smallest factor, then
 * the largest second smallest, and so on. A depth-first search over divisors that prunes branches without a
 * better result.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "obj/topo.h"

/* No int has more divisors than this (2095133040 has 1600). */
#define DIVISORS_MAX 1600
/* An int has at most 30 prime factors: all further dimensions are 1. */
#define FACTORS_MAX 32

struct search {
    int divisors[DIVISORS_MAX]; /* ascending */
    int ndivisors;
    int chosen[FACTORS_MAX], best[FACTORS_MAX];
    int factors;
    int64_t best_gap;
};

static void find_divisors(struct search *s, int n)
{
    int large[DIVISORS_MAX], nlarge = 0;
    for (int64_t d = 1; d * d <= n; d++) {
        if (n % d)
            continue;
        s->divisors[s->ndivisors++] = (int)d;
        if (n / d != d)
            large[nlarge++] = (int)(n / d);
    }
    while (nlarge > 0)
        s->divisors[s->ndivisors++] = large[--nlarge];
}

/* Compares base^exponent with n without overflow: -1, 0 or 1. */
static int compare_power(int64_t base, int exponent, int64_t n)
{
    int64_t power = 1;
    for (int i = 0; i < exponent && power <= n; i++)
        power *= base;
    return (power > n) - (power < n);
}

static void search_record_best(struct search *s)
{
    int64_t gap = (int64_t)s->chosen[0] - s->chosen[s->factors - 1];
    int i = s->factors - 1;
    while (i > 0 && s->chosen[i] == s->best[i])
        i--;
    if (gap < s->best_gap || (gap == s->best_gap && s->chosen[i] > s->best[i])) {
        s->best_gap = gap;
        memcpy(s->best, s->chosen, sizeof(s->best));
    }
}

/* True if `left` factors between `largest` minus the best gap and `largest` cannot have the product
 * `rest`. */
static bool search_cannot_succeed(const struct search *s, int64_t largest, int left, int64_t rest)
{
    int64_t least = largest - s->best_gap;
    return least > 1 && compare_power(least, left, rest) > 0;
}

/* Chooses the factors from number `depth` on, in descending order, so that their product is `rest`. */
static void search_choose_factors(struct search *s, int depth, int rest)
{
    int left = s->factors - depth;
    int cap = depth ? s->chosen[depth - 1] : rest;
    if (left == 1) {
        s->chosen[depth] = rest;
        if (rest <= cap)
            search_record_best(s);
        return;
    }
    for (int i = 0; i < s->ndivisors && s->divisors[i] <= cap && s->best_gap > 0; i++) {
        int d = s->divisors[i];
        /* d is not a divisor, or d^left < rest although later factors are at most d */
        if (rest % d || compare_power(d, left, rest) < 0)
            continue;
        bool lost = search_cannot_succeed(s, depth ? s->chosen[0] : d, left - 1, rest / d);
        if (lost && depth == 0) /* larger first factors cannot succeed either */
            return;
        if (lost)
            continue;
        s->chosen[depth] = d;
        search_choose_factors(s, depth + 1, rest / d);
    }
}

static void dims_factorise(int n, int factors, int *out)
{
    struct search s = {.best_gap = INT64_MAX};
    for (int i = 0; i < factors; i++)
        out[i] = 1;
    if (factors == 1) {
        out[0] = n;
        return;
    }
    s.factors = factors < FACTORS_MAX ? factors : FACTORS_MAX;
    find_divisors(&s, n);
    search_choose_factors(&s, 0, n);
    memcpy(out, s.best, (size_t)s.factors * sizeof(int));
}

int dims_create(int nodes, int ndims, int *dims)
{
    int64_t given = 1;
    int unset = 0;
    if (nodes < 1)
        return err_set(MPI_ERR_ARG, "nnodes is %d; it must be positive", nodes);
    if (ndims < 0)
        return err_set(MPI_ERR_DIMS, "ndims is %d; it must not be negative", ndims);
    for (int i = 0; i < ndims; i++) {
        if (dims[i] < 0)
            return err_set(MPI_ERR_DIMS, "dims[%d] is %d; it must not be negative", i, dims[i]);
        if (dims[i] == 0)
            unset++;
        else if ((given *= dims[i]) > nodes)
            return err_set(MPI_ERR_DIMS, "the dimensions given hold more than %d processes", nodes);
    }
    if (nodes % given || (unset == 0 && ndims > 0 && nodes != given))
        return err_set(MPI_ERR_DIMS, "%d processes do not divide into the dimensions given", nodes);
    if (unset == 0)
        return MPI_SUCCESS;
    int *factors = malloc((size_t)unset * sizeof(*factors));
    if (!factors)
        return err_set(MPI_ERR_NO_MEM, "out of memory for %d dimensions", unset);
    dims_factorise((int)(nodes / given), unset, factors);
    for (int i = 0, next = 0; i < ndims; i++)
        if (dims[i] == 0)
            dims[i] = factors[next++];
    free(factors);
    return MPI_SUCCESS;
}
