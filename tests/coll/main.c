/* main.c: enumerates the problems that the checker runs: every number of ranks, every root of small sizes
 * and some roots of large ones, counts around the number of ranks, in place and not, operators that
 * commute and not, pipelines and windows.
 *
 *     coll_check [--up-to RANKS] [OPERATION [ALGORITHM [RANKS]]]
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem.h"
#include "selftest.h"

#define ALL_ROOTS 9 /* every root up to this size */

static long cases, failures;
static bool print;

static void run_problem(const struct problem *p)
{
    struct coll_shape shape = {.kind = p->algorithm->kind,
                               .size = p->size,
                               .remote_size = p->remote_size,
                               .commutative = p->commutative,
                               .adjacent = p->adjacent};
    if (!algorithm_fits(p->algorithm, &shape))
        return;
    cases++;
    failures += !problem_check(p, print);
}

static bool has_root(enum coll_kind kind)
{
    return kind == COLL_BCAST || kind == COLL_GATHER || kind == COLL_SCATTER || kind == COLL_REDUCE;
}
static bool has_vector(enum coll_kind kind)
{
    return kind == COLL_BCAST || kind == COLL_REDUCE || kind == COLL_ALLREDUCE || kind == COLL_SCAN ||
           kind == COLL_EXSCAN;
}
static bool is_reduction(enum coll_kind kind)
{
    return kind >= COLL_REDUCE && kind <= COLL_EXSCAN;
}

/* Enumerates every valid value of the algorithm's own parameters; values above the number of ranks change
 * nothing. */
static void for_each_own_parameter(struct problem p, int which)
{
    const struct coll_parameter *own = &p.algorithm->parameter[which];
    if (which == COLL_PARAMETERS || !own->name) {
        run_problem(&p);
        return;
    }
    for (int value = own->min; value <= own->max; value++) {
        if (value > p.size + 1 && value < own->max)
            continue;
        p.parameter[which] = value;
        for_each_own_parameter(p, which + 1);
    }
}

static void for_each_parameter(struct problem p)
{
    static const int windows[] = {0, 1, 3};
    const struct coll_algorithm *a = p.algorithm;
    for_each_own_parameter(p, 0);
    if (a->segment) {
        static const int64_t segments[] = {1, 3};
        for (size_t i = 0; i < 2; i++) {
            p.segment = segments[i];
            if (p.segment < p.count)
                run_problem(&p);
        }
        p.segment = 0;
    }
    for (size_t i = 1; a->window && i < 3; i++) {
        p.window = windows[i];
        run_problem(&p);
    }
}

static void for_each_flag(struct problem p)
{
    const enum coll_kind kind = p.algorithm->kind;
    const bool can_be_in_place =
        kind != COLL_BARRIER && kind != COLL_BCAST && kind < COLL_NEIGHBOR_ALLGATHER && !p.remote_size;
    for (int in_place = 0; in_place <= can_be_in_place; in_place++) {
        for (int commutative = 1; commutative >= !is_reduction(kind); commutative--) {
            p.in_place = in_place;
            p.commutative = commutative;
            p.adjacent = true;
            for_each_parameter(p);
            if (is_reduction(kind) || kind == COLL_BCAST || kind == COLL_BARRIER)
                continue;
            p.adjacent = false;
            for_each_parameter(p);
        }
    }
}

static void for_each_count(struct problem p)
{
    const enum coll_kind kind = p.algorithm->kind;
    const int n = p.size;
    if (has_vector(kind)) {
        const int64_t counts[] = {0, 1, n - 1, n, n + 3, 2 * n + 5};
        for (size_t i = 0; i<(n > 24 ? 5 : 6); i += n> 24 ? 2 : 1) {
            p.count = counts[i];
            for_each_flag(p);
        }
    } else if (kind == COLL_REDUCE_SCATTER) {
        for (p.pattern = 0; p.pattern < (p.remote_size ? 1 : 4); p.pattern++)
            for (p.count = 0; p.count<4; p.count += n> 24 ? 3 : 1)
                for_each_flag(p);
    } else {
        p.count = 1;
        for (p.pattern = 0; p.pattern < (kind >= COLL_NEIGHBOR_ALLGATHER ? 3 : 1); p.pattern++)
            for_each_flag(p);
    }
}

static void for_each_root(struct problem p)
{
    if (!has_root(p.algorithm->kind)) {
        for_each_count(p);
        return;
    }
    const int some[] = {0, 1, p.size / 2, p.size - 1};
    for (int i = 0; i < (p.size <= ALL_ROOTS ? p.size : 4); i++) {
        p.root = p.size <= ALL_ROOTS ? i : some[i];
        for_each_count(p);
    }
}

static void for_each_size(const struct coll_algorithm *a, int only, int up_to)
{
    struct problem p = {.algorithm = a, .commutative = true, .adjacent = true};
    if (a->needs & NEED_INTER) {
        for (p.size = 1; p.size <= 17; p.size += p.size < 9 ? 1 : 4)
            for (p.remote_size = 1; p.remote_size <= 17; p.remote_size += p.remote_size < 9 ? 1 : 4)
                for_each_root(p);
        return;
    }
    for (p.size = 1; p.size <= up_to; p.size++)
        if (!only || only == p.size)
            for_each_root(p);
}

int main(int argc, char **argv)
{
    int up_to = RANKS_MAX;
    if (argc > 2 && !strcmp(argv[1], "--up-to")) {
        up_to = atoi(argv[2]) < RANKS_MAX ? atoi(argv[2]) : RANKS_MAX;
        argc -= 2;
        argv += 2;
    }
    const char *kind = argc > 1 ? argv[1] : NULL, *name = argc > 2 ? argv[2] : NULL;
    const int only = argc > 3 ? atoi(argv[3]) : 0;
    print = only > 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    failures += selftest();
    for (size_t i = 0; i < algorithms_count(); i++) {
        const struct coll_algorithm *a = algorithms_get(i);
        if (!a->generate || (kind && strcmp(kind, coll_kind_name(a->kind)) != 0) ||
            (name && strcmp(name, a->name)))
            continue;
        long before = cases, failed = failures;
        for_each_size(a, only, up_to);
        printf("%s %s=%s: %ld cases\n", failures == failed ? "ok  " : "FAIL", coll_kind_name(a->kind),
               a->name, cases - before);
    }
    printf("%ld cases, %ld failures\n", cases, failures);
    return failures != 0 || cases == 0;
}
