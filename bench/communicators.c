/* communicators.c: times the creation of communicators: of all ranks, of half of them, and from a group.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "bench.h"

struct creation {
    MPI_Comm comm;
    MPI_Group group;
    int rank;
};

static void create_dup(void *arg, int n)
{
    struct creation *c = arg;
    MPI_Comm made;
    for (int i = 0; i < n; i++) {
        MPI_Comm_dup(c->comm, &made);
        MPI_Comm_free(&made);
    }
}

/* Splits the communicator into ranks with even and odd numbers. */
static void create_split(void *arg, int n)
{
    struct creation *c = arg;
    MPI_Comm made;
    for (int i = 0; i < n; i++) {
        MPI_Comm_split(c->comm, c->rank % 2, c->rank, &made);
        MPI_Comm_free(&made);
    }
}

static void create_from_group(void *arg, int n)
{
    struct creation *c = arg;
    MPI_Comm made;
    for (int i = 0; i < n; i++) {
        MPI_Comm_create_group(c->comm, c->group, 0, &made);
        MPI_Comm_free(&made);
    }
}

void bench_creation(struct bench *b, const struct bench_test *test, size_t bytes)
{
    struct creation c = {.comm = b->team, .rank = b->rank};
    struct bench_stats s;
    MPI_Comm_group(b->team, &c.group);
    bench_measure(b, b->team, true,
                  strcmp(test->name, "dup") == 0     ? create_dup
                  : strcmp(test->name, "split") == 0 ? create_split
                                                     : create_from_group,
                  &c, &s);
    MPI_Group_free(&c.group);
    if (b->rank == 0)
        bench_report_time(b, test->name, bytes, &s);
}
