/* extents.c: lower bound, extent and true bounds of random nested types, compared with the definitions of
 * MPI 5.0, 5.1 and 5.1.7, applied to the type map entry by entry.
 *     ranks: 1
 *     nodes: no
 * The program calls only MPI and can be compiled for any implementation. It ends with one line for each
 * kind of difference, with the first example. Arguments: number of types, first seed.
 *     mpicc.mpich -O1 tests/mpi/dt/extents.c -Itests/mpi -o /tmp/extents && mpiexec.mpich -n 1 /tmp/extents 10000
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdint.h>

#include "mpitest.h"

#define ENTRIES_MAX 4000
#define BLOCKS_MAX  5
#define DEPTH_MAX   4
#define TEXT_MAX    4000

/* One basic element of a type map. */
struct entry {
    MPI_Aint at;
    int size, align;
};

/* A type, its type map, and a description of its construction. lb_marker and ub_marker: the lowest and the
 * highest explicit bound. */
struct random_type {
    MPI_Datatype type;
    struct entry *entry;
    size_t count;
    int is_marked, is_predefined;
    MPI_Aint lb_marker, ub_marker;
    /* The lowest lb and the highest ub of the copies of old types, padding included. */
    int has_copies;
    MPI_Aint copies_lb, copies_ub;
    char text[TEXT_MAX];
};

static uint64_t random_state;

static uint64_t random_next(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545f4914f6cdd1du;
}

static int random_in_range(int low, int high)
{
    return low + (int)((random_next() >> 16) % (uint64_t)(high - low + 1));
}

static void free_type(struct random_type *m)
{
    if (!m->is_predefined)
        MPI_Type_free(&m->type);
    free(m->entry);
    free(m);
}

static struct random_type *new_type(const char *name)
{
    struct random_type *m = calloc(1, sizeof(*m));
    if (m)
        m->entry = calloc(ENTRIES_MAX, sizeof(*m->entry));
    if (!m || !m->entry) {
        fprintf(stderr, "out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    snprintf(m->text, sizeof(m->text), "%s(", name);
    return m;
}

static void describe_number(struct random_type *m, long long number)
{
    const size_t n = strlen(m->text);
    snprintf(m->text + n, sizeof(m->text) - n, "%lld,", number);
}

static void describe_old(struct random_type *m, const struct random_type *old)
{
    const size_t n = strlen(m->text);
    snprintf(m->text + n, sizeof(m->text) - n, "%.3500s)", old->text);
}

static void add_marker(struct random_type *m, MPI_Aint lb, MPI_Aint ub)
{
    m->lb_marker = m->is_marked && m->lb_marker < lb ? m->lb_marker : lb;
    m->ub_marker = m->is_marked && m->ub_marker > ub ? m->ub_marker : ub;
    m->is_marked = 1;
}

/* Adds one element of the old type at a displacement. Returns 0 if the type map becomes too long. */
static int place_element(struct random_type *m, const struct random_type *old, MPI_Aint at)
{
    MPI_Aint lb, extent;
    MPI_Type_get_extent(old->type, &lb, &extent);
    if (m->count + old->count > ENTRIES_MAX)
        return 0;
    for (size_t i = 0; i < old->count; i++) {
        m->entry[m->count] = old->entry[i];
        m->entry[m->count++].at += at;
    }
    if (old->is_marked)
        add_marker(m, old->lb_marker + at, old->ub_marker + at);
    if (old->count > 0) {
        m->copies_lb = m->has_copies && m->copies_lb < at + lb ? m->copies_lb : at + lb;
        m->copies_ub = m->has_copies && m->copies_ub > at + lb + extent ? m->copies_ub : at + lb + extent;
        m->has_copies = 1;
    }
    return 1;
}

/* Adds `n` elements one extent apart. */
static int place_block(struct random_type *m, const struct random_type *old, MPI_Aint at, int n)
{
    MPI_Aint lb, extent;
    MPI_Type_get_extent(old->type, &lb, &extent);
    for (int i = 0; i < n; i++)
        if (!place_element(m, old, at + i * extent))
            return 0;
    return 1;
}

static struct random_type *make_leaf(void)
{
    static const char *const name[] = {"char", "short", "int", "double", "long double"};
    const MPI_Datatype type[] = {MPI_CHAR, MPI_SHORT, MPI_INT, MPI_DOUBLE, MPI_LONG_DOUBLE};
    const struct entry entry[] = {{0, sizeof(char), _Alignof(char)},
                                  {0, sizeof(short), _Alignof(short)},
                                  {0, sizeof(int), _Alignof(int)},
                                  {0, sizeof(double), _Alignof(double)},
                                  {0, sizeof(long double), _Alignof(long double)}};
    const int which = random_in_range(0, 4);
    struct random_type *m = new_type(name[which]);
    m->text[strlen(m->text) - 1] = '\0';
    m->type = type[which];
    m->is_predefined = 1;
    m->entry[m->count++] = entry[which];
    return m;
}

/* Makes a contiguous, vector or hvector type. */
static struct random_type *make_strided(const struct random_type *old, int *fits)
{
    static const char *const name[] = {"contiguous", "vector", "hvector"};
    const int which = random_in_range(0, 2);
    const int count = random_in_range(0, 5), length = which == 0 ? 1 : random_in_range(0, 3);
    const int stride = which == 0 ? 1 : which == 1 ? random_in_range(-6, 9) : random_in_range(-60, 90);
    struct random_type *m = new_type(name[which]);
    MPI_Aint lb, extent;
    MPI_Type_get_extent(old->type, &lb, &extent);
    describe_number(m, count);
    if (which > 0) {
        describe_number(m, length);
        describe_number(m, stride);
    }
    describe_old(m, old);
    if (which == 0)
        MPI_Type_contiguous(count, old->type, &m->type);
    else if (which == 1)
        MPI_Type_vector(count, length, stride, old->type, &m->type);
    else
        MPI_Type_create_hvector(count, length, stride, old->type, &m->type);
    for (int i = 0; i < count; i++)
        *fits &= place_block(m, old, which == 2 ? (MPI_Aint)i * stride : i * stride * extent, length);
    return m;
}

/* Makes an indexed, hindexed, indexed_block or hindexed_block type. */
static struct random_type *make_indexed(const struct random_type *old, int *fits)
{
    static const char *const name[] = {"indexed", "hindexed", "indexed_block", "hindexed_block"};
    const int which = random_in_range(0, 3), in_bytes = which % 2;
    const int count = random_in_range(0, BLOCKS_MAX), length = random_in_range(0, 3);
    int lengths[BLOCKS_MAX], at[BLOCKS_MAX];
    MPI_Aint bytes[BLOCKS_MAX], lb, extent;
    struct random_type *m = new_type(name[which]);
    MPI_Type_get_extent(old->type, &lb, &extent);
    describe_number(m, count);
    for (int i = 0; i < count; i++) {
        lengths[i] = which >= 2 ? length : random_in_range(0, 3);
        at[i] = in_bytes ? random_in_range(-60, 300) : random_in_range(-6, 20);
        bytes[i] = at[i];
        describe_number(m, lengths[i]);
        describe_number(m, at[i]);
    }
    describe_old(m, old);
    if (which == 0)
        MPI_Type_indexed(count, lengths, at, old->type, &m->type);
    else if (which == 1)
        MPI_Type_create_hindexed(count, lengths, bytes, old->type, &m->type);
    else if (which == 2)
        MPI_Type_create_indexed_block(count, length, at, old->type, &m->type);
    else
        MPI_Type_create_hindexed_block(count, length, bytes, old->type, &m->type);
    for (int i = 0; i < count; i++)
        *fits &= place_block(m, old, in_bytes ? bytes[i] : at[i] * extent, lengths[i]);
    return m;
}

/* One dimension; the constructor sets explicit bounds at 0 and at the end of the whole array. */
static struct random_type *make_subarray(const struct random_type *old, int *fits)
{
    const int size = random_in_range(1, 6), part = random_in_range(1, size),
              start = random_in_range(0, size - part);
    MPI_Aint lb, extent;
    struct random_type *m = new_type("subarray");
    MPI_Type_get_extent(old->type, &lb, &extent);
    describe_number(m, size);
    describe_number(m, part);
    describe_number(m, start);
    describe_old(m, old);
    MPI_Type_create_subarray(1, &size, &part, &start, MPI_ORDER_C, old->type, &m->type);
    *fits &= place_block(m, old, start * extent, part);
    m->is_marked = 0;
    add_marker(m, 0, size * extent);
    return m;
}

static struct random_type *make_resized(const struct random_type *old, int *fits)
{
    const int lb = random_in_range(-20, 20), extent = random_in_range(-10, 80);
    struct random_type *m = new_type("resized");
    describe_number(m, lb);
    describe_number(m, extent);
    describe_old(m, old);
    MPI_Type_create_resized(old->type, lb, extent, &m->type);
    *fits &= place_element(m, old, 0);
    m->is_marked = 0;
    add_marker(m, lb, (MPI_Aint)lb + extent);
    return m;
}

static struct random_type *make_dup(const struct random_type *old, int *fits)
{
    struct random_type *m = new_type("dup");
    describe_old(m, old);
    MPI_Type_dup(old->type, &m->type);
    *fits &= place_element(m, old, 0);
    return m;
}

static struct random_type *make_type(int depth, int *fits);

static struct random_type *make_struct(int depth, int *fits)
{
    const int count = random_in_range(1, 4);
    struct random_type *m = new_type("struct"), *old[4];
    int lengths[4];
    MPI_Aint at[4], end = 0;
    MPI_Datatype types[4];
    describe_number(m, count);
    for (int i = 0; i < count; i++) {
        MPI_Aint lb, extent;
        old[i] = make_type(depth - 1, fits);
        MPI_Type_get_extent(old[i]->type, &lb, &extent);
        lengths[i] = random_in_range(0, 3);
        at[i] = random_in_range(0, 1) ? end : random_in_range(-50, 200);
        end = at[i] + lengths[i] * extent;
        types[i] = old[i]->type;
        describe_number(m, lengths[i]);
        describe_number(m, at[i]);
        describe_old(m, old[i]);
        *fits &= place_block(m, old[i], at[i], lengths[i]);
    }
    MPI_Type_create_struct(count, lengths, at, types, &m->type);
    for (int i = 0; i < count; i++)
        free_type(old[i]);
    return m;
}

static void check_bounds(struct random_type *m);

static struct random_type *make_type(int depth, int *fits)
{
    if (depth == 0)
        return make_leaf();
    const int which = random_in_range(0, 11);
    struct random_type *m, *old;
    if (which >= 9) {
        m = make_struct(depth, fits);
    } else {
        old = make_type(depth - 1, fits);
        m = which <= 2   ? make_strided(old, fits)
            : which <= 5 ? make_indexed(old, fits)
            : which == 6 ? make_subarray(old, fits)
            : which == 7 ? make_resized(old, fits)
                         : make_dup(old, fits);
        free_type(old);
    }
    if (*fits)
        check_bounds(m);
    return m;
}

/* Kinds of differences from the definition, by the rule that would give the value found. */
enum kind { NOT_PADDED, ENTRIES, MARKERS_IGNORED, EMPTY, TRUE_BOUNDS, OTHER, KINDS };
static const char *const kind_name[KINDS] = {
    "the outermost bounds of the old types, without padding of the new type",
    "the outermost entries of the type map, padded: padding of the old types does not count",
    "bounds set by MPI_Type_create_resized or an array constructor do not reach the new type",
    "a type map without entries has bounds other than the definition's",
    "true bounds differ",
    "other",
};
static long kind_count[KINDS], types_checked;
static char kind_example[KINDS][TEXT_MAX + 200];

static void report_difference(enum kind kind, const struct random_type *m, MPI_Aint lb, MPI_Aint extent,
                              MPI_Aint lb_wanted, MPI_Aint extent_wanted)
{
    char text[TEXT_MAX + 200];
    snprintf(text, sizeof(text), "lb %lld extent %lld, by the definition %lld and %lld: %s", (long long)lb,
             (long long)extent, (long long)lb_wanted, (long long)extent_wanted, m->text);
    if (kind_count[kind]++ == 0 || strlen(text) < strlen(kind_example[kind]))
        memcpy(kind_example[kind], text, sizeof(text));
    mpitest_failures++;
}

static MPI_Aint round_up_extent(MPI_Aint extent, int align)
{
    return (extent + align - 1) / align * align;
}

/* MPI 5.0, 5.1, (5.1): from the lowest lb to the highest ub of a copy of an old type, rounded up to a
 * multiple of the strictest alignment; 5.1.7: markers, if there are any, instead. True bounds (5.1.8) are
 * those of the entries. */
static void check_bounds(struct random_type *m)
{
    MPI_Aint low = 0, high = 0, lb, extent, true_lb, true_extent;
    int align = 1;
    for (size_t i = 0; i < m->count; i++) {
        const struct entry *e = &m->entry[i];
        low = i == 0 || e->at < low ? e->at : low;
        high = i == 0 || e->at + e->size > high ? e->at + e->size : high;
        align = e->align > align ? e->align : align;
    }
    const MPI_Aint copies = m->copies_ub - m->copies_lb;
    const MPI_Aint lb_wanted = m->is_marked ? m->lb_marker : m->copies_lb;
    const MPI_Aint extent_wanted =
        m->is_marked ? m->ub_marker - m->lb_marker : round_up_extent(copies, align);
    MPI_Type_get_extent(m->type, &lb, &extent);
    MPI_Type_get_true_extent(m->type, &true_lb, &true_extent);
    types_checked++;
    if (true_lb != low || true_extent != high - low)
        report_difference(TRUE_BOUNDS, m, true_lb, true_extent, low, high - low);
    if (lb == lb_wanted && extent == extent_wanted)
        return;
    enum kind kind = OTHER;
    if (m->count == 0)
        kind = EMPTY;
    else if (lb == m->copies_lb && extent == copies)
        kind = NOT_PADDED;
    else if (m->is_marked && lb == m->copies_lb && extent == round_up_extent(copies, align))
        kind = MARKERS_IGNORED;
    else if (lb == low && extent == round_up_extent(high - low, align))
        kind = ENTRIES;
    report_difference(kind, m, lb, extent, lb_wanted, extent_wanted);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    const long rounds = argc > 1 ? atol(argv[1]) : 2000, first = argc > 2 ? atol(argv[2]) : 1;
    for (long seed = first; seed < first + rounds; seed++) {
        int fits = 1;
        random_state = (uint64_t)seed * 0x9e3779b97f4a7c15u;
        free_type(make_type(random_in_range(1, DEPTH_MAX), &fits));
    }
    printf("%ld random types, %ld constructors checked\n", rounds, types_checked);
    for (int i = 0; i < KINDS; i++)
        if (kind_count[i])
            printf("%ld: %s\n    %.600s\n", kind_count[i], kind_name[i], kind_example[i]);
    return mpitest_end();
}
