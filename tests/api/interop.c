/* interop.c: conversion of handles to integers and back, and statuses in their Fortran forms.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <string.h>

#include "expect.h"

#define MANY 1000

static void test_predefined(void)
{
    EXPECT_EQ(MPI_Comm_toint(MPI_COMM_WORLD), 0x101);
    EXPECT_EQ(MPI_Comm_c2f(MPI_COMM_NULL), 0x100);
    EXPECT(MPI_Comm_fromint(0x102) == MPI_COMM_SELF);
    EXPECT(MPI_Comm_f2c(0x100) == MPI_COMM_NULL);
    EXPECT(MPI_Comm_fromint(123456) == MPI_COMM_NULL);
    EXPECT(MPI_Comm_fromint(-1) == MPI_COMM_NULL);
    EXPECT(MPI_Type_f2c(MPI_Type_c2f(MPI_DOUBLE)) == MPI_DOUBLE);
    EXPECT(MPI_Op_fromint(MPI_Op_toint(MPI_SUM)) == MPI_SUM);
    EXPECT(MPI_Group_fromint(MPI_Group_toint(MPI_GROUP_EMPTY)) == MPI_GROUP_EMPTY);
    EXPECT(MPI_Errhandler_f2c(MPI_Errhandler_c2f(MPI_ERRORS_RETURN)) == MPI_ERRORS_RETURN);
    EXPECT(MPI_Request_f2c(MPI_Request_c2f(MPI_REQUEST_NULL)) == MPI_REQUEST_NULL);
    EXPECT(MPI_Message_fromint(MPI_Message_toint(MPI_MESSAGE_NO_PROC)) == MPI_MESSAGE_NO_PROC);
    EXPECT(MPI_Win_fromint(MPI_Win_toint(MPI_WIN_NULL)) == MPI_WIN_NULL);
    EXPECT(MPI_File_fromint(MPI_File_toint(MPI_FILE_NULL)) == MPI_FILE_NULL);
    EXPECT(MPI_Session_fromint(MPI_Session_toint(MPI_SESSION_NULL)) == MPI_SESSION_NULL);
}

/* Creates more objects than the table initially holds, each with a distinct number. */
static void test_many(void)
{
    static MPI_Info infos[MANY];
    static int numbers[MANY];
    for (int i = 0; i < MANY; i++) {
        MPI_Info_create(&infos[i]);
        numbers[i] = MPI_Info_toint(infos[i]);
        EXPECT(numbers[i] > 4095);
        EXPECT(i == 0 || numbers[i] != numbers[i - 1]);
    }
    for (int i = 0; i < MANY; i++) {
        EXPECT(MPI_Info_fromint(numbers[i]) == infos[i]);
        EXPECT_EQ(MPI_Info_c2f(infos[i]), numbers[i]);
        MPI_Info_free(&infos[i]);
    }
    /* Handle numbers stay bounded when objects are created and freed, provided that freed memory is reused
     * (a sanitizer delays that). */
#if defined(__SANITIZE_ADDRESS__) || defined(__clang__)
    int limit = 4096 + 102 * MANY;
#else
    int limit = 4096 + 2 * MANY;
#endif
    int highest = 0;
    for (int i = 0; i < 100 * MANY; i++) {
        MPI_Info info;
        MPI_Info_create(&info);
        int number = MPI_Info_toint(info);
        highest = number > highest ? number : highest;
        MPI_Info_free(&info);
    }
    EXPECT(highest < limit);
}

static void test_status(void)
{
    MPI_Status status, back;
    MPI_Fint f_status[MPI_F_STATUS_SIZE];
    MPI_F08_status f08_status;
    int value = -1;
    memset(&status, 0, sizeof(status));
    MPI_Status_set_source(&status, 3);
    MPI_Status_set_tag(&status, 4);
    MPI_Status_set_error(&status, MPI_ERR_TRUNCATE);
    MPI_Status_set_cancelled(&status, 1);
    EXPECT_EQ(MPI_Status_c2f(&status, f_status), MPI_SUCCESS);
    EXPECT_EQ(f_status[MPI_F_SOURCE], 3);
    EXPECT_EQ(f_status[MPI_F_TAG], 4);
    EXPECT_EQ(f_status[MPI_F_ERROR], MPI_ERR_TRUNCATE);
    EXPECT_EQ(MPI_Status_f2f08(f_status, &f08_status), MPI_SUCCESS);
    EXPECT_EQ(f08_status.MPI_TAG, 4);
    EXPECT_EQ(MPI_Status_f082c(&f08_status, &back), MPI_SUCCESS);
    EXPECT(memcmp(&back, &status, sizeof(status)) == 0);
    EXPECT_EQ(MPI_Status_get_source(&back, &value), MPI_SUCCESS);
    EXPECT_EQ(value, 3);
    EXPECT_EQ(MPI_Test_cancelled(&back, &value), MPI_SUCCESS);
    EXPECT_EQ(value, 1);
}

static void test_abi(void)
{
    char value[16] = "";
    int found = 0, length = sizeof(value), set = 0, truth = -1, falsehood = -1;
    MPI_Info info;
    EXPECT_EQ(MPI_Abi_get_info(&info), MPI_SUCCESS);
    EXPECT_EQ(MPI_Info_get_string(info, "mpi_count_size", &length, value, &found), MPI_SUCCESS);
    EXPECT(found && strcmp(value, "8") == 0);
    MPI_Info_free(&info);
    EXPECT_EQ(MPI_Abi_get_fortran_booleans(4, &truth, &falsehood, &set), MPI_SUCCESS);
    EXPECT(set && truth == 1 && falsehood == 0);
    EXPECT_EQ(MPI_Abi_set_fortran_booleans(4, &truth, &falsehood), MPI_SUCCESS);
    EXPECT_EQ(MPI_Abi_set_fortran_booleans(4, &falsehood, &truth), MPI_ERR_ABI);
    EXPECT_EQ(MPI_Abi_get_fortran_booleans(3, &truth, &falsehood, &set), MPI_ERR_ARG);
    EXPECT_EQ(MPI_Abi_get_fortran_info(&info), MPI_SUCCESS);
    EXPECT_EQ(MPI_Abi_set_fortran_info(info), MPI_SUCCESS);
    MPI_Info_set(info, "mpi_integer_size", "8");
    EXPECT_EQ(MPI_Abi_set_fortran_info(info), MPI_ERR_ABI);
    MPI_Info_free(&info);
}

int main(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    test_predefined();
    test_many();
    test_status();
    test_abi();
    MPI_Finalize();
    return expect_done();
}
