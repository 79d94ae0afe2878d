/* full.c: the program of tests/mpi/io/full.sh and quota.sh: `full FILE CB`, `quota FILE CB`, `kill FILE CB
 * CALL` (rank 0 is killed in its write number CALL; 0: when it requests the pages of a mapping) and `check
 * FILE CB`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/syscall.h>

#include "../iotest.h"

#define WORDS 30000

static int calls_left = -1, maps_left = -1;

ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    if (calls_left > 0 && --calls_left == 0)
        raise(SIGKILL);
    return syscall(SYS_pwrite64, fd, buf, n, offset);
}

int madvise(void *at, size_t length, int advice)
{
    if (maps_left > 0 && --maps_left == 0)
        raise(SIGKILL);
    return (int)syscall(SYS_madvise, at, length, advice);
}

static int data_word(int rank, int i)
{
    return rank * WORDS + i + 1;
}

static MPI_File open_file(const char *name, const char *cb, const char *map)
{
    MPI_File f;
    MPI_Info info;
    MPI_Datatype piece, type;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", cb);
    MPI_Info_set(info, "cb_buffer_size", "16384");
    MPI_Info_set(info, "fishplate_map", map);
    EXPECT_EQ(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &f), 0);
    MPI_Info_free(&info);
    MPI_Type_contiguous(250, MPI_INT, &piece);
    MPI_Type_create_resized(piece, 0, 1000 * mpitest_size, &type);
    MPI_Type_commit(&type);
    EXPECT_EQ(MPI_File_set_view(f, 1000 * mpitest_rank, MPI_INT, type, "native", MPI_INFO_NULL), 0);
    MPI_Type_free(&piece);
    MPI_Type_free(&type);
    return f;
}

int main(int argc, char **argv)
{
    static int words[WORDS];
    mpitest_begin(&argc, &argv);
    const char *what = argv[1];
    const int call = argc > 4 ? atoi(argv[4]) : 0;
    MPI_File f = open_file(argv[2], argv[3], call > 0 ? "disable" : "automatic");
    for (int i = 0; i < WORDS; i++)
        words[i] = data_word(mpitest_rank, i);
    if (strcmp(what, "full") == 0 || strcmp(what, "quota") == 0) { /* 360000 bytes do not fit */
        const int wanted = what[0] == 'f' ? MPI_ERR_NO_SPACE : MPI_ERR_QUOTA;
        EXPECT_CLASS(MPI_File_write_all(f, words, WORDS, MPI_INT, MPI_STATUS_IGNORE), wanted);
        EXPECT_CLASS(MPI_File_preallocate(f, 1 << 20), wanted);
    } else if (strcmp(what, "kill") == 0) {
        if (mpitest_rank == 0) {
            calls_left = call;
            maps_left = call == 0;
        }
        MPI_File_write_all(f, words, WORDS / 2, MPI_INT, MPI_STATUS_IGNORE);
    } else {
        memset(words, 0, sizeof(words));
        EXPECT_EQ(MPI_File_read_all(f, words, WORDS / 2, MPI_INT, MPI_STATUS_IGNORE), 0);
        for (int i = 0; i < WORDS / 2; i++)
            EXPECT(words[i] == 0 || words[i] == data_word(mpitest_rank, i));
    }
    MPI_File_close(&f);
    return mpitest_end();
}
