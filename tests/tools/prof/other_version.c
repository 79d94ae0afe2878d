/* other_version.c: simulates a library of another version: the profiler must not call the functions of its
 * table, since another version has other functions at the same index.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdlib.h>

struct fishplate_inside {
    const char *version;
    size_t size;
    void (*functions[64])(void);
};

const struct fishplate_inside *fishplate_inside(void);

const struct fishplate_inside *fishplate_inside(void)
{
    static struct fishplate_inside table = {.version = "0.0.1", .size = sizeof(table)};
    for (int i = 0; i < 64; i++)
        table.functions[i] = abort;
    return &table;
}

int main(int argc, char **argv)
{
    int value = 1, sum;
    MPI_Init(&argc, &argv);
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
