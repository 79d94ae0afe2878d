/* atomic.c: in atomic mode readers see a write completely or not at all, also through a view with holes:
 * ranks overwrite and read the same pieces at the same time.
 * ranks: 3
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "iotest.h"

#define WORDS  3000
#define ROUNDS 15

static void expect_equal_words(const int *words)
{
    for (int i = 1; i < WORDS; i++) {
        EXPECT_EQ(words[i], words[0]);
        if (words[i] != words[0])
            return;
    }
}

int main(int argc, char **argv)
{
    static int words[WORDS];
    MPI_Datatype every_other;
    MPI_Status status;
    int flag = 0;
    iotest_begin(&argc, &argv);
    MPI_File f = iotest_open(MPI_COMM_WORLD, MPI_INFO_NULL);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &every_other);
    MPI_Type_commit(&every_other);
    EXPECT_EQ(MPI_File_set_view(f, 4, MPI_INT, every_other, "native", MPI_INFO_NULL), 0);
    if (mpitest_size > 1)
        EXPECT_CLASS(MPI_File_set_atomicity(f, mpitest_rank == 0), MPI_ERR_NOT_SAME);
    EXPECT_EQ(MPI_File_set_atomicity(f, 1), 0);
    MPI_File_get_atomicity(f, &flag);
    EXPECT_EQ(flag, 1);
    EXPECT_EQ(MPI_File_write_at_all(f, 0, words, WORDS, MPI_INT, &status), 0);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < WORDS; i++)
            words[i] = 1 + mpitest_rank + round * mpitest_size;
        if (round % 3 == 2)
            EXPECT_EQ(MPI_File_write_at_all(f, 0, words, WORDS, MPI_INT, &status), 0);
        else
            EXPECT_EQ(MPI_File_write_at(f, 0, words, WORDS, MPI_INT, &status), 0);
        EXPECT_EQ(MPI_File_read_at(f, 0, words, WORDS, MPI_INT, &status), 0);
        EXPECT_EQ(get_count(&status, MPI_INT), WORDS);
        expect_equal_words(words);
    }
    MPI_Type_free(&every_other);
    MPI_File_close(&f);
    return iotest_end();
}
