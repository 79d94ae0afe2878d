/* spawn.c: the program spawns processes of itself: messages of all sizes and collectives between parents
 * and children, the merged communicator, attributes, arguments, and disconnection.
 *
 * ranks: 1 3
 * nodes: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "mpitest.h"

#define CHILDREN 2
#define LARGE    (1 << 20)

static void fill_data(int *data, int n, int seed)
{
    for (int i = 0; i < n; i++)
        data[i] = seed + i;
}

static int count_wrong(const int *data, int n, int seed)
{
    int bad = 0;
    for (int i = 0; i < n; i++)
        bad += data[i] != seed + i;
    return bad;
}

/* Rank i of one side exchanges messages with rank i of the other side, if that rank exists. */
static void test_pairs(MPI_Comm inter, int rank)
{
    int remote, n = LARGE / (int)sizeof(int);
    int *out = malloc(LARGE), *in = malloc(LARGE);
    MPI_Comm_remote_size(inter, &remote);
    for (int count = 1; rank < remote && count <= n; count *= 8) {
        MPI_Status status;
        fill_data(out, count, rank);
        MPI_Sendrecv(out, count, MPI_INT, rank, 7, in, n, MPI_INT, rank, 7, inter, &status);
        int got;
        MPI_Get_count(&status, MPI_INT, &got);
        EXPECT(got == count && status.MPI_SOURCE == rank && count_wrong(in, count, rank) == 0);
    }
    free(out);
    free(in);
}

static void test_collectives(MPI_Comm inter, int parent)
{
    int rank, size, remote, sum = 0, value = -1;
    MPI_Comm_rank(inter, &rank);
    MPI_Comm_size(inter, &size);
    MPI_Comm_remote_size(inter, &remote);
    MPI_Barrier(inter);
    int mine = parent ? 1 : 100;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter);
    EXPECT(sum == remote * (parent ? 100 : 1));
    if (parent) {
        value = 4711;
        MPI_Bcast(&value, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
    } else {
        MPI_Bcast(&value, 1, MPI_INT, 0, inter);
        EXPECT(value == 4711);
    }
    int *all = calloc((size_t)remote, sizeof(int));
    MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, inter);
    for (int i = 0; i < remote; i++)
        EXPECT(all[i] == i);
    free(all);
}

static void test_merged(MPI_Comm inter, int parent)
{
    MPI_Comm intra, half;
    int rank, size, remote, mine, sum;
    MPI_Comm_size(inter, &size);
    MPI_Comm_rank(inter, &mine);
    MPI_Comm_remote_size(inter, &remote);
    MPI_Intercomm_merge(inter, !parent, &intra);
    MPI_Comm_rank(intra, &rank);
    EXPECT(rank == (parent ? mine : remote + mine));
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, intra);
    EXPECT(sum == (size + remote) * (size + remote - 1) / 2);
    MPI_Comm_split(intra, rank % 2, rank, &half);
    MPI_Allreduce(&(int){1}, &sum, 1, MPI_INT, MPI_SUM, half);
    EXPECT(sum == (size + remote + !(rank % 2)) / 2);
    MPI_Comm_free(&half);
    MPI_Comm_split_type(intra, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &half);
    MPI_Barrier(half);
    MPI_Comm_free(&half);
    MPI_Comm_free(&intra);
}

static void run_tests(MPI_Comm inter, int parent)
{
    int rank;
    MPI_Comm_rank(inter, &rank);
    test_pairs(inter, rank);
    test_collectives(inter, parent);
    test_merged(inter, parent);
}

static void run_child(MPI_Comm parents, int argc, char **argv)
{
    int rank, size, *appnum, flag;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EXPECT(size == CHILDREN);
    EXPECT(argc == 3 && strcmp(argv[1], "a word") == 0 && strcmp(argv[2], "100%") == 0);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &flag);
    EXPECT(flag && *appnum == 0);
    char name[MPI_MAX_OBJECT_NAME];
    int len;
    MPI_Comm_get_name(parents, name, &len);
    EXPECT(strcmp(name, "MPI_COMM_PARENT") == 0);
    run_tests(parents, 0);
    MPI_Comm_disconnect(&parents);
    MPI_Comm_get_parent(&parents);
    EXPECT(parents == MPI_COMM_NULL);
}

static void run_parent(const char *program)
{
    char *words[] = {(char *)"a word", (char *)"100%", NULL};
    int codes[CHILDREN] = {-1, -1}, inter;
    MPI_Comm children;
    MPI_Comm_spawn(program, words, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes);
    for (int i = 0; i < CHILDREN; i++)
        EXPECT(codes[i] == MPI_SUCCESS);
    MPI_Comm_test_inter(children, &inter);
    EXPECT(inter);
    run_tests(children, 1);
    MPI_Comm_disconnect(&children);
    EXPECT(children == MPI_COMM_NULL);
}

int main(int argc, char **argv)
{
    MPI_Comm up;
    mpitest_begin(&argc, &argv);
    MPI_Comm_get_parent(&up);
    if (up == MPI_COMM_NULL)
        run_parent(argv[0]);
    else
        run_child(up, argc, argv);
    return mpitest_end();
}
