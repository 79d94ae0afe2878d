/* basic.c: opening in every mode, queries of file handles, explicit offsets, pointers, sizes, and errors
 * that name the file.
 * ranks: 1 3
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "iotest.h"

static void check_modes(const char *name)
{
    MPI_File f = (MPI_File)(void *)&f;
    char text[MPI_MAX_ERROR_STRING];
    int n, code;
    code = MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &f);
    EXPECT_CLASS(code, MPI_ERR_NO_SUCH_FILE);
    EXPECT(f == MPI_FILE_NULL);
    MPI_Error_string(code, text, &n);
    EXPECT(strstr(text, name) != NULL);
    EXPECT_CLASS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE, MPI_INFO_NULL, &f), MPI_ERR_AMODE);
    EXPECT_CLASS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &f),
                 MPI_ERR_AMODE);
    EXPECT_CLASS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &f),
                 MPI_ERR_AMODE);
    if (mpitest_size > 1)
        EXPECT_EQ(
            get_error_class(MPI_File_open(MPI_COMM_WORLD, name,
                                          mpitest_rank ? MPI_MODE_RDWR : MPI_MODE_RDONLY, MPI_INFO_NULL, &f)),
            MPI_ERR_NOT_SAME);
    EXPECT_EQ(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL,
                            MPI_INFO_NULL, &f),
              0);
    EXPECT_CLASS(MPI_File_read(f, &n, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ACCESS);
    EXPECT_EQ(MPI_File_close(&f), 0);
    EXPECT(f == MPI_FILE_NULL);
    EXPECT_CLASS(MPI_File_close(&f), MPI_ERR_FILE);
    EXPECT_CLASS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL,
                               MPI_INFO_NULL, &f),
                 MPI_ERR_FILE_EXISTS);
    EXPECT_EQ(
        MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &f),
        0);
    EXPECT_CLASS(MPI_File_write(f, &n, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
    EXPECT_CLASS(MPI_File_set_size(f, 1), MPI_ERR_READ_ONLY);
    EXPECT_EQ(MPI_File_close(&f), 0);
    EXPECT(access(name, F_OK) != 0);
    EXPECT_CLASS(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
}

static void check_handle(MPI_File f)
{
    int amode = 0, flag = 1, size = 0, found = 0;
    char value[64];
    MPI_Group group;
    MPI_Info info;
    MPI_Offset disp = 7;
    MPI_Datatype etype, filetype;
    char datarep[MPI_MAX_DATAREP_STRING];
    MPI_File_get_amode(f, &amode);
    EXPECT_EQ(amode, MPI_MODE_RDWR | MPI_MODE_CREATE);
    MPI_File_get_atomicity(f, &flag);
    EXPECT_EQ(flag, 0);
    MPI_File_get_group(f, &group);
    MPI_Group_size(group, &size);
    EXPECT_EQ(size, mpitest_size);
    MPI_Group_free(&group);
    MPI_File_get_info(f, &info);
    MPI_Info_get(info, "cb_buffer_size", 63, value, &found);
    EXPECT(found && strcmp(value, "65536") == 0);
    MPI_Info_free(&info);
    MPI_File_get_view(f, &disp, &etype, &filetype, datarep);
    EXPECT_EQ(disp, 0);
    EXPECT(etype == MPI_BYTE && filetype == MPI_BYTE && strcmp(datarep, "native") == 0);
}

static void check_offsets(MPI_File f)
{
    int mine[4], got[4] = {0, 0, 0, 0};
    MPI_Status status;
    for (int i = 0; i < 4; i++)
        mine[i] = 10 * mpitest_rank + i;
    EXPECT_EQ(MPI_File_write_at(f, (MPI_Offset)sizeof(mine) * mpitest_rank, mine, 4, MPI_INT, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_INT), 4);
    EXPECT_EQ(MPI_File_sync(f), 0);
    MPI_Barrier(MPI_COMM_WORLD);
    const int other = (mpitest_rank + 1) % mpitest_size;
    EXPECT_EQ(MPI_File_read_at(f, (MPI_Offset)sizeof(mine) * other, got, 4, MPI_INT, &status), 0);
    EXPECT_EQ(got[3], 10 * other + 3);
    /* The last read crosses the end of the file and returns fewer elements. */
    EXPECT_EQ(MPI_File_read_at(f, (MPI_Offset)sizeof(mine) * mpitest_size - 8, got, 4, MPI_INT, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_INT), 2);
    EXPECT_CLASS(MPI_File_read_at(f, -1, got, 1, MPI_INT, &status), MPI_ERR_ARG);
}

static void check_pointer(MPI_File f)
{
    MPI_Offset at = -1;
    int got[2];
    MPI_Status status;
    const MPI_Offset end = 16 * mpitest_size;
    EXPECT_EQ(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), 0);
    EXPECT_EQ(MPI_File_seek(f, -2, MPI_SEEK_END), 0);
    MPI_File_get_position(f, &at);
    EXPECT_EQ(at, end / 4 - 2);
    EXPECT_EQ(MPI_File_read(f, got, 1, MPI_INT, &status), 0);
    EXPECT_EQ(got[0], 10 * (mpitest_size - 1) + 2);
    EXPECT_EQ(MPI_File_seek(f, 0, MPI_SEEK_CUR), 0);
    EXPECT_EQ(MPI_File_read(f, got, 2, MPI_INT, &status), 0);
    EXPECT_EQ(get_count(&status, MPI_INT), 1);
    EXPECT_CLASS(MPI_File_seek(f, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    EXPECT_CLASS(MPI_File_seek(f, 0, 12345), MPI_ERR_ARG);
    EXPECT_EQ(MPI_File_get_byte_offset(f, 3, &at), 0);
    EXPECT_EQ(at, 12);
    EXPECT_EQ(MPI_File_seek(f, 0, MPI_SEEK_SET), 0);
    EXPECT_EQ(MPI_File_read_all(f, got, 2, MPI_INT, &status), 0);
    EXPECT_EQ(got[1], 1);
}

static void check_size(MPI_File f)
{
    MPI_Offset size = -1;
    EXPECT_EQ(MPI_File_set_size(f, 5000), 0);
    MPI_File_get_size(f, &size);
    EXPECT_EQ(size, 5000);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_preallocate(f, 9000), 0);
    MPI_File_get_size(f, &size);
    EXPECT_EQ(size, 9000);
    EXPECT_EQ(MPI_File_preallocate(f, 100), 0);
    MPI_File_get_size(f, &size);
    EXPECT_EQ(size, 9000);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(MPI_File_set_size(f, 0), 0);
    EXPECT_CLASS(MPI_File_set_size(f, -1), MPI_ERR_ARG);
    if (mpitest_size > 1) {
        EXPECT_CLASS(MPI_File_set_size(f, mpitest_rank), MPI_ERR_NOT_SAME);
        EXPECT_CLASS(MPI_File_set_size(f, mpitest_rank ? 5 : INT64_MIN), MPI_ERR_NOT_SAME);
    }
}

static void check_append(const char *name)
{
    MPI_File f;
    MPI_Offset at = -1;
    EXPECT_EQ(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &f), 0);
    MPI_File_set_size(f, 12);
    MPI_File_close(&f);
    EXPECT_EQ(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_APPEND, MPI_INFO_NULL, &f), 0);
    MPI_File_get_position(f, &at);
    EXPECT_EQ(at, 12);
    MPI_File_get_position_shared(f, &at);
    EXPECT_EQ(at, 12);
    MPI_File_close(&f);
}

static int handled_class;
static void record_error(MPI_File *f, int *code, ...)
{
    (void)f;
    handled_class = get_error_class(*code);
}

/* A new file has the error handler of MPI_FILE_NULL; errors of requests call the file's handler. */
static void check_handlers(MPI_File f)
{
    MPI_Errhandler mine, was;
    MPI_Request request = MPI_REQUEST_NULL;
    int word = 0;
    MPI_File_get_errhandler(f, &was);
    EXPECT(was == MPI_ERRORS_RETURN);
    MPI_File_create_errhandler(record_error, &mine);
    MPI_File_set_errhandler(f, mine);
    EXPECT_CLASS(MPI_File_seek(f, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    EXPECT_EQ(handled_class, MPI_ERR_ARG);
    handled_class = 0;
    /* An invalid access of one rank is reported by the wait. */
    EXPECT_EQ(MPI_File_iwrite_at_all(f, -5, &word, 1, MPI_INT, &request), 0);
    EXPECT_CLASS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    EXPECT_EQ(handled_class, MPI_ERR_ARG);
    MPI_Errhandler_free(&mine);
    MPI_File_set_errhandler(f, MPI_ERRORS_RETURN);
}

int main(int argc, char **argv)
{
    MPI_Info info;
    const char *name = iotest_begin(&argc, &argv);
    check_modes(name);
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_buffer_size", "65536");
    MPI_File f = iotest_open(MPI_COMM_WORLD, info);
    MPI_Info_free(&info);
    check_handle(f);
    check_offsets(f);
    check_pointer(f);
    check_handlers(f);
    check_size(f);
    EXPECT_EQ(MPI_File_close(&f), 0);
    check_append(name);
    return iotest_end();
}
