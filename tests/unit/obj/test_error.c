/* test_error.c: error classes and codes: every predefined class has a text; classes and codes of users can
 * be added and removed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>

#include "obj/error.h"
#include "test.h"

static void test_every_class_has_text(void)
{
    char text[MPI_MAX_ERROR_STRING];
    int len, errclass;
    for (int c = MPI_SUCCESS; c <= MPI_ERR_ABI; c++) {
        EXPECT_EQ(error_text(c, text, &len), MPI_SUCCESS);
        EXPECT_EQ(len, strlen(text));
        EXPECT(error_class_name(c) != NULL &&
               strncmp(text, error_class_name(c), strlen(error_class_name(c))) == 0);
        EXPECT_EQ(error_class_of(c, &errclass), MPI_SUCCESS);
        EXPECT_EQ(errclass, c);
    }
    EXPECT_EQ(error_text(MPI_ERR_ABI + 1, text, &len), MPI_ERR_ARG);
    EXPECT_EQ(error_class_of(-5, &errclass), MPI_ERR_ARG);
}

static void test_user_codes(void)
{
    char text[MPI_MAX_ERROR_STRING];
    int errclass, code, other, len, found;
    EXPECT_EQ(error_last_code(), MPI_ERR_LASTCODE);
    EXPECT_EQ(error_add_class(&errclass), MPI_SUCCESS);
    EXPECT_EQ(error_add_code(errclass, &code), MPI_SUCCESS);
    EXPECT_EQ(error_add_code(MPI_ERR_IO, &other), MPI_SUCCESS);
    EXPECT_EQ(error_last_code(), other);
    EXPECT_EQ(error_add_code(code, &found), MPI_ERR_ARG);
    EXPECT_EQ(error_class_of(code, &found), MPI_SUCCESS);
    EXPECT_EQ(found, errclass);
    EXPECT_EQ(error_class_of(other, &found), MPI_SUCCESS);
    EXPECT_EQ(found, MPI_ERR_IO);
    EXPECT_EQ(error_text(code, text, &len), MPI_SUCCESS);
    EXPECT_STR(text, "");
    EXPECT_EQ(error_add_string(code, "the kettle is empty"), MPI_SUCCESS);
    EXPECT_EQ(error_text(code, text, &len), MPI_SUCCESS);
    EXPECT_STR(text, "the kettle is empty");
    EXPECT_EQ(error_add_string(MPI_ERR_COMM, "no"), MPI_ERR_ARG);
    EXPECT_EQ(error_remove_class(errclass), MPI_ERR_ARG);
    EXPECT_EQ(error_remove_code(code), MPI_ERR_ARG);
    EXPECT_EQ(error_remove_string(code), MPI_SUCCESS);
    EXPECT_EQ(error_remove_code(code), MPI_SUCCESS);
    EXPECT_EQ(error_remove_class(errclass), MPI_SUCCESS);
    EXPECT_EQ(error_class_of(code, &found), MPI_ERR_ARG);
    EXPECT_EQ(error_remove_class(MPI_ERR_COMM), MPI_ERR_ARG);
}

int main(void)
{
    TEST_RUN(test_every_class_has_text);
    TEST_RUN(test_user_codes);
    return test_result();
}
