/* accumulate.c: no update is lost when all ranks change the same elements at once, for every type and
 * path; every operator on every kind of type gives the result of MPI_Reduce_local; returned old values are
 * correct.
 *
 * ranks: 4 1
 * also: FISHPLATE_SHM_CMA=0 FISHPLATE_LAB=SHM_FRAME=1024
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "rma/windows.h"

#define ROUNDS 20

/* Defines a function in which all ranks add 1 to `count` elements of a type at rank 0 at once. */
#define SUMS(TYPE, MPI_TYPE)                                                                         \
    static void sums_##TYPE(struct window *w, int count)                                             \
    {                                                                                                \
        TYPE ones[64];                                                                               \
        for (int i = 0; i < 64; i++)                                                                 \
            ones[i] = 1;                                                                             \
        memset(w->memory, 0, sizeof(ones));                                                          \
        MPI_Barrier(w->comm);                                                                        \
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w->win);                                                 \
        for (int k = 0; k < ROUNDS / 2; k++)                                                         \
            MPI_Accumulate(ones, count, MPI_TYPE, 0, w->bases[0], count, MPI_TYPE, MPI_SUM, w->win); \
        MPI_Win_unlock(0, w->win);                                                                   \
        MPI_Barrier(w->comm);                                                                        \
        if (w->rank == 0)                                                                            \
            for (int i = 0; i < count; i++)                                                          \
                EXPECT_EQ(((TYPE *)w->memory)[i], w->size *(ROUNDS / 2));                            \
        MPI_Barrier(w->comm);                                                                        \
    }
typedef long double ldouble;
SUMS(char, MPI_SIGNED_CHAR)
SUMS(short, MPI_SHORT)
SUMS(int, MPI_INT)
SUMS(long, MPI_LONG)
SUMS(float, MPI_FLOAT)
SUMS(double, MPI_DOUBLE)
SUMS(ldouble, MPI_LONG_DOUBLE)

/* All ranks fetch and add at one counter: each value is returned once. */
static void test_fetch_and_add(struct window *w)
{
    int one = 1, mine[ROUNDS], total = ROUNDS * w->size, *all = calloc((size_t)total, sizeof(int)), *seen;
    memset(w->memory, 0, 64);
    MPI_Barrier(w->comm);
    MPI_Win_lock_all(0, w->win);
    for (int k = 0; k < ROUNDS; k++) {
        MPI_Fetch_and_op(&one, &mine[k], MPI_INT, w->size - 1, w->bases[w->size - 1], MPI_SUM, w->win);
        MPI_Win_flush(w->size - 1, w->win);
        if (k > 0)
            EXPECT(mine[k] > mine[k - 1]);
    }
    MPI_Win_unlock_all(w->win);
    MPI_Allgather(mine, ROUNDS, MPI_INT, all, ROUNDS, MPI_INT, w->comm);
    seen = calloc((size_t)total, sizeof(int));
    for (int i = 0; i < total; i++)
        if (all[i] >= 0 && all[i] < total)
            seen[all[i]]++;
    for (int i = 0; i < total; i++)
        EXPECT_EQ(seen[i], 1);
    free(all);
    free(seen);
    MPI_Barrier(w->comm);
}

static void test_compare_and_swap(struct window *w)
{
    long seen = 0, next, old;
    memset(w->memory, 0, 64);
    MPI_Barrier(w->comm);
    MPI_Win_lock_all(0, w->win);
    for (int k = 0; k < ROUNDS / 5; k++)
        for (;;) {
            next = seen + 1;
            MPI_Compare_and_swap(&next, &seen, &old, MPI_LONG, 0, w->bases[0], w->win);
            MPI_Win_flush(0, w->win);
            int done = old == seen;
            seen = done ? next : old;
            if (done)
                break;
        }
    MPI_Win_unlock_all(w->win);
    MPI_Barrier(w->comm);
    if (w->rank == 0)
        EXPECT_EQ(*(long *)w->memory, w->size * (ROUNDS / 5));
    MPI_Barrier(w->comm);
}

struct double_int {
    double value;
    int index;
};

/* Checks one element: the result equals op(origin, target) by MPI_Reduce_local, and the old value is
 * returned. */
static void test_operator(struct window *w, MPI_Datatype type, MPI_Op op, const void *target,
                          const void *origin)
{
    MPI_Aint lb, extent;
    char wanted[64] = {0}, old[64] = {0}, now[64] = {0};
    int t = (w->rank + 1) % w->size, size;
    MPI_Type_get_extent(type, &lb, &extent);
    MPI_Type_size(type, &size);
    memcpy(wanted, target, (size_t)extent);
    if (op == MPI_REPLACE)
        memcpy(wanted, origin, (size_t)extent);
    else if (op != MPI_NO_OP)
        MPI_Reduce_local(origin, wanted, 1, type, op);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t, 0, w->win);
    MPI_Accumulate(target, 1, type, t, w->bases[t], 1, type, MPI_REPLACE, w->win);
    MPI_Fetch_and_op(origin, old, type, t, w->bases[t], op, w->win);
    MPI_Get_accumulate(NULL, 0, type, now, 1, type, t, w->bases[t], 1, type, MPI_NO_OP, w->win);
    MPI_Win_unlock(t, w->win);
    char packed[3][64] = {{0}};
    int at[3] = {0};
    MPI_Pack(wanted, 1, type, packed[0], 64, &at[0], MPI_COMM_SELF);
    MPI_Pack(now, 1, type, packed[1], 64, &at[1], MPI_COMM_SELF);
    /* Compares 10 of the 16 bytes of a long double; the rest is padding. */
    int same = memcmp(packed[0], packed[1], (size_t)(size == 16 ? 10 : size)) == 0;
    if (!same) {
        char name[2][MPI_MAX_OBJECT_NAME];
        int len;
        MPI_Type_get_name(type, name[0], &len);
        fprintf(stderr, "wrong result of operator %#lx on %s\n", (unsigned long)(uintptr_t)op, name[0]);
    }
    EXPECT(same);
    at[0] = at[1] = 0;
    MPI_Pack(target, 1, type, packed[0], 64, &at[0], MPI_COMM_SELF);
    MPI_Pack(old, 1, type, packed[1], 64, &at[1], MPI_COMM_SELF);
    EXPECT(memcmp(packed[0], packed[1], (size_t)(size == 16 ? 10 : size)) == 0);
}

static void test_operators(struct window *w)
{
    const MPI_Op all[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX};
    const MPI_Op bits[] = {MPI_BAND, MPI_BOR,  MPI_BXOR, MPI_LAND, MPI_LOR,  MPI_LXOR,
                           MPI_SUM,  MPI_PROD, MPI_MIN,  MPI_MAX,  MPI_NO_OP};
    for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
        test_operator(w, MPI_SIGNED_CHAR, bits[i], &(signed char){6}, &(signed char){-3});
        test_operator(w, MPI_SHORT, bits[i], &(short){6}, &(short){-3});
        test_operator(w, MPI_INT, bits[i], &(int){6}, &(int){-3});
        test_operator(w, MPI_LONG, bits[i], &(long){6}, &(long){-3});
        test_operator(w, MPI_UINT64_T, bits[i], &(unsigned long){6}, &(unsigned long){3});
    }
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        test_operator(w, MPI_FLOAT, all[i], &(float){1.5f}, &(float){-2.25f});
        test_operator(w, MPI_DOUBLE, all[i], &(double){1.5}, &(double){-2.25});
        test_operator(w, MPI_LONG_DOUBLE, all[i], &(long double){1.5}, &(long double){-2.25});
    }
    test_operator(w, MPI_C_DOUBLE_COMPLEX, MPI_NO_OP, (double[]){1, 2}, (double[]){3, 4});
    test_operator(w, MPI_2INT, MPI_MINLOC, (int[]){5, 9}, (int[]){5, 2});
    test_operator(w, MPI_DOUBLE_INT, MPI_MAXLOC, &(struct double_int){2, 3}, &(struct double_int){2, 1});
    test_operator(w, MPI_SHORT_INT, MPI_MINLOC, (int[]){7, 9}, (int[]){3, 2});
    test_operator(w, MPI_BYTE, MPI_BOR, "\x11", "\x22");
    MPI_Barrier(w->comm);
}

/* Derived types on all three sides, longer than one frame. */
static void test_derived(struct window *w)
{
    enum { N = 3000 };
    MPI_Datatype every_third, every_second;
    double *out = malloc(2 * N * sizeof(double)), *old = calloc(2 * N, sizeof(double));
    int t = (w->rank + 1) % w->size;
    MPI_Type_vector(N, 1, 3, MPI_DOUBLE, &every_third);
    MPI_Type_vector(N, 1, 2, MPI_DOUBLE, &every_second);
    MPI_Type_commit(&every_third);
    MPI_Type_commit(&every_second);
    for (int i = 0; i < 2 * N; i++)
        out[i] = i;
    for (int i = 0; i < 3 * N; i++)
        ((double *)w->memory)[i] = 0.5;
    MPI_Win_fence(0, w->win);
    MPI_Get_accumulate(out, 1, every_second, old, N, MPI_DOUBLE, t, w->bases[t], 1, every_third, MPI_SUM,
                       w->win);
    MPI_Win_fence(0, w->win);
    for (int i = 0; i < N; i += 7) {
        EXPECT(old[i] == 0.5);
        EXPECT(((double *)w->memory)[3 * i] == 0.5 + 2 * i);
        EXPECT(((double *)w->memory)[3 * i + 1] == 0.5);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
    MPI_Type_free(&every_third);
    MPI_Type_free(&every_second);
    free(out);
    free(old);
}

/* Only rank 0 has memory: the other ranks, which have no memory to share, still update that of rank 0
 * atomically. */
static void test_ranks_without_memory(void)
{
    enum { TIMES = 5000 };
    struct {
        double d;
        long l;
    } * memory;
    double d = 1;
    long l = 1;
    MPI_Win win;
    MPI_Win_allocate(mpitest_rank == 0 ? (MPI_Aint)sizeof(*memory) : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                     &memory, &win);
    if (mpitest_rank == 0)
        memset(memory, 0, sizeof(*memory));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int k = 0; k < TIMES; k++) {
        MPI_Accumulate(&d, 1, MPI_DOUBLE, 0, offsetof(__typeof__(*memory), d), 1, MPI_DOUBLE, MPI_SUM, win);
        MPI_Accumulate(&l, 1, MPI_LONG, 0, offsetof(__typeof__(*memory), l), 1, MPI_LONG, MPI_SUM, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpitest_rank == 0) {
        EXPECT_EQ((long)memory->d, (long)TIMES * mpitest_size);
        EXPECT_EQ(memory->l, (long)TIMES * mpitest_size);
    }
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    for (int flavor = 0; flavor < FLAVORS; flavor++) {
        struct window w;
        if (!window_open(&w, flavor, 80000))
            continue;
        sums_char(&w, 1);
        sums_short(&w, 33);
        sums_int(&w, 1);
        sums_int(&w, 64);
        sums_long(&w, 64);
        sums_float(&w, 5);
        sums_double(&w, 64);
        sums_ldouble(&w, 3);
        test_fetch_and_add(&w);
        test_compare_and_swap(&w);
        test_operators(&w);
        test_derived(&w);
        window_close(&w);
    }
    test_ranks_without_memory();
    return mpitest_end();
}
