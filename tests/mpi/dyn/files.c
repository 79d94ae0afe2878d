/* files.c: parents and children open a file together: the shared file pointer is one for both jobs, which share
 * no memory, and the data of a collective write by aggregators is in the file.
 *
 * ranks: 1 3
 * nodes: 3
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "mpitest.h"

enum { CHILDREN = 2, RECORDS = 20, WORDS = 100000 };

static void open_file(MPI_Comm all, const char *name, MPI_File *f)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", "enable");
    EXPECT_EQ(MPI_File_open(all, name, MPI_MODE_RDWR | MPI_MODE_CREATE, info, f), MPI_SUCCESS);
    MPI_Info_free(&info);
    MPI_File_set_view(*f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
}

/* Every record that a process writes at the shared file pointer is in the file. */
static void test_shared_pointer(MPI_Comm all, MPI_File f)
{
    int rank, size, seen[64] = {0}, value = -1;
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    for (int i = 0; i < RECORDS; i++)
        EXPECT_EQ(MPI_File_write_shared(f, &rank, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
    MPI_File_sync(f);
    MPI_Barrier(all);
    for (int i = 0; i < size * RECORDS; i++) {
        MPI_File_read_at(f, i, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
        EXPECT(value >= 0 && value < size);
        seen[value >= 0 && value < size ? value : 63]++;
    }
    for (int i = 0; i < size; i++)
        EXPECT_EQ(seen[i], RECORDS);
    MPI_Barrier(all);
}

/* Each process writes every size-th word. */
static void test_collective_write(MPI_Comm all, MPI_File f)
{
    static int data[WORDS];
    int rank, size;
    MPI_Datatype vector, words;
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    MPI_Type_vector(WORDS, 1, size, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, (MPI_Aint)(WORDS * size * (int)sizeof(int)), &words);
    MPI_Type_commit(&words);
    MPI_File_set_view(f, (MPI_Offset)(rank * (int)sizeof(int)), MPI_INT, words, "native", MPI_INFO_NULL);
    for (int i = 0; i < WORDS; i++)
        data[i] = i * size + rank;
    EXPECT_EQ(MPI_File_write_at_all(f, 0, data, WORDS, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
    MPI_File_sync(f);
    MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    for (int i = 0; i < size; i++) {
        MPI_File_read_at(f, i * WORDS, data, WORDS, MPI_INT, MPI_STATUS_IGNORE);
        for (int k = 0; k < WORDS; k++)
            EXPECT_EQ(data[k], i * WORDS + k);
    }
    MPI_Type_free(&vector);
    MPI_Type_free(&words);
}

int main(int argc, char **argv)
{
    MPI_Comm up, inter, all;
    MPI_File f;
    int number = (int)getpid(), rank;
    char name[64];
    mpitest_begin(&argc, &argv);
    MPI_Comm_get_parent(&up);
    inter = up;
    if (up == MPI_COMM_NULL)
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                       MPI_ERRCODES_IGNORE);
    MPI_Intercomm_merge(inter, up != MPI_COMM_NULL, &all);
    MPI_Comm_rank(all, &rank);
    MPI_Bcast(&number, 1, MPI_INT, 0, all);
    snprintf(name, sizeof(name), "dyn-files-%d.tmp", number);
    open_file(all, name, &f);
    test_shared_pointer(all, f);
    test_collective_write(all, f);
    MPI_File_close(&f);
    if (rank == 0)
        unlink(name);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&inter);
    return mpitest_end();
}
