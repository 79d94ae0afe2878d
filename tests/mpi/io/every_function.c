/* every_function.c: every data access function of files, with int and large counts; and the file functions
 * that no other test calls.
 * ranks: 1 3
 * nodes: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "iotest.h"

#define WORDS    4
#define OK(call) EXPECT_EQ(call, MPI_SUCCESS)

static int out[WORDS], in[WORDS], round_number, handled;

static void fill_buffers(void)
{
    MPI_Barrier(MPI_COMM_WORLD); /* all ranks have read the previous data */
    round_number++;
    for (int i = 0; i < WORDS; i++) {
        out[i] = 1000 * round_number + 10 * mpitest_rank + i + 1;
        in[i] = 0;
    }
}

static void expect_same(void)
{
    for (int i = 0; i < WORDS; i++)
        EXPECT_EQ(in[i], out[i]);
}

/* Checks the sum over all ranks: the order in which they read with a shared pointer is undefined, but
 * together they read what they wrote. */
static void expect_same_sum(void)
{
    int sums[2] = {0, 0};
    for (int i = 0; i < WORDS; i++) {
        sums[0] += in[i];
        sums[1] += out[i];
    }
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_EQ(sums[0], sums[1]);
}

static void reset_shared_pointer(MPI_File f)
{
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_seek_shared(f, 0, MPI_SEEK_SET));
}

#define CALL(name) MPI_File_##name
#define MOVES      moves
#include "every_data_access.h"
#undef CALL
#undef MOVES
#define CALL(name) MPI_File_##name##_c
#define MOVES      moves_large
#include "every_data_access.h"

static void count_error(MPI_File *f, int *code, ...)
{
    handled += f && *code != MPI_SUCCESS;
}

static void test_other_functions(MPI_File f)
{
    MPI_Errhandler handler;
    MPI_Count extent = 0;
    MPI_Info info;
    char text[32] = "";
    int flag = 0;
    EXPECT(MPI_File_f2c(MPI_File_c2f(f)) == f);
    OK(MPI_File_get_type_extent_c(f, MPI_INT, &extent));
    EXPECT_EQ(extent, 4);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "cb_buffer_size", "65536"));
    OK(MPI_File_set_info(f, info));
    OK(MPI_Info_free(&info));
    OK(MPI_File_get_info(f, &info));
    OK(MPI_Info_get(info, "cb_buffer_size", sizeof(text) - 1, text, &flag));
    EXPECT(flag && strcmp(text, "65536") == 0);
    OK(MPI_Info_free(&info));
    OK(MPI_File_create_errhandler(count_error, &handler));
    OK(MPI_File_set_errhandler(f, handler));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_File_call_errhandler(f, MPI_ERR_IO));
    EXPECT_EQ(handled, 1);
    EXPECT(MPI_File_seek(f, -1, MPI_SEEK_SET) != MPI_SUCCESS);
    EXPECT_EQ(handled, 2);
}

int main(int argc, char **argv)
{
    iotest_begin(&argc, &argv);
    MPI_File f = iotest_open(MPI_COMM_WORLD, MPI_INFO_NULL);
    OK(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    moves(f);
    moves_large(f);
    test_other_functions(f);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_close(&f));
    return iotest_end();
}
