/* errhandlers.c: error handlers: user functions, inheritance, a handler that replaces itself, which
 * object's handler is called; user error codes.
 *
 * ranks: 1 2 3 4 5 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

static int calls, last_code;
static MPI_Comm last_comm;

static void on_error(MPI_Comm *c, int *code, ...)
{
    int size;
    calls++;
    last_code = *code;
    last_comm = *c;
    MPI_Comm_size(*c, &size); /* a handler may call MPI */
}

static void replace_own_handler(MPI_Comm *c, int *code, ...)
{
    (void)code;
    MPI_Comm_set_errhandler(*c, MPI_ERRORS_RETURN);
}

static void test_user_handlers(void)
{
    MPI_Comm a, b;
    MPI_Errhandler mine, got;
    int x = 0;
    MPI_Comm_create_errhandler(on_error, &mine);
    MPI_Comm_dup(MPI_COMM_WORLD, &a);
    MPI_Comm_set_errhandler(a, mine);
    MPI_Errhandler_free(&mine);
    EXPECT(mine == MPI_ERRHANDLER_NULL);
    EXPECT_EQ(MPI_Send(&x, 1, MPI_INT, 999, 0, a), MPI_ERR_RANK);
    EXPECT(calls == 1 && last_code == MPI_ERR_RANK && last_comm == a);
    MPI_Comm_dup(a, &b); /* inherits the handler */
    EXPECT_EQ(MPI_Send(&x, -1, MPI_INT, 0, 0, b), MPI_ERR_COUNT);
    EXPECT(calls == 2 && last_comm == b);
    EXPECT_EQ(MPI_Comm_call_errhandler(b, MPI_ERR_IO), MPI_SUCCESS);
    EXPECT(calls == 3 && last_code == MPI_ERR_IO);
    MPI_Comm_get_errhandler(b, &got);
    MPI_Comm_set_errhandler(a, got);
    MPI_Errhandler_free(&got);
    EXPECT_EQ(MPI_Send(&x, 1, MPI_INT, 0, -5, a), MPI_ERR_TAG);
    EXPECT_EQ(calls, 4);
    MPI_Comm_create_errhandler(replace_own_handler, &mine);
    MPI_Comm_set_errhandler(a, mine);
    MPI_Errhandler_free(&mine);
    EXPECT_EQ(MPI_Send(&x, 1, MPI_INT, 0, -5, a), MPI_ERR_TAG);
    MPI_Comm_get_errhandler(a, &got);
    EXPECT(got == MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&got);
    MPI_Comm_free(&a);
    MPI_Comm_free(&b);
}

static void test_errors_without_object(void)
{
    MPI_Comm c = MPI_COMM_NULL;
    MPI_Info info = MPI_INFO_NULL;
    int n;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    EXPECT_EQ(MPI_Comm_rank(MPI_COMM_NULL, &n), MPI_ERR_COMM);
    EXPECT_EQ(MPI_Comm_free(&c), MPI_ERR_COMM);
    EXPECT_EQ(MPI_Info_get_nkeys(info, &n), MPI_ERR_INFO);
    EXPECT_EQ(MPI_Group_size(MPI_GROUP_NULL, &n), MPI_ERR_GROUP);
    c = MPI_COMM_WORLD;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    EXPECT_EQ(MPI_Comm_free(&c), MPI_ERR_COMM);
    EXPECT_EQ(MPI_Comm_remote_size(MPI_COMM_WORLD, &n), MPI_ERR_COMM);
    MPI_Errhandler file;
    MPI_File_create_errhandler(NULL, &file);
    EXPECT_EQ(MPI_Comm_set_errhandler(MPI_COMM_WORLD, file), MPI_ERR_ERRHANDLER);
    MPI_Errhandler_free(&file);
    MPI_File_get_errhandler(MPI_FILE_NULL, &file);
    EXPECT(file == MPI_ERRORS_RETURN);
}

static int query_lastusedcode(void)
{
    int *value = NULL, flag = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag);
    EXPECT(flag && value);
    return flag ? *value : -1;
}

static void test_user_codes(void)
{
    char text[MPI_MAX_ERROR_STRING];
    int errclass, code, found, len;
    MPI_Add_error_class(&errclass);
    MPI_Add_error_code(errclass, &code);
    MPI_Add_error_string(code, "out of tea");
    MPI_Error_string(code, text, &len);
    EXPECT(strcmp(text, "out of tea") == 0 && len == 10);
    MPI_Error_class(code, &found);
    EXPECT_EQ(found, errclass);
    EXPECT(query_lastusedcode() >= code && query_lastusedcode() > MPI_ERR_LASTCODE);

    /* The text must be removed before the code, and the code before the class. */
    EXPECT_EQ(MPI_Remove_error_class(errclass), MPI_ERR_ARG);
    EXPECT_EQ(MPI_Remove_error_code(code), MPI_ERR_ARG);
    EXPECT_EQ(MPI_Remove_error_string(code), MPI_SUCCESS);
    MPI_Error_string(code, text, &len);
    EXPECT_EQ(len, 0);
    EXPECT_EQ(MPI_Remove_error_class(errclass), MPI_ERR_ARG);
    EXPECT_EQ(MPI_Remove_error_code(code), MPI_SUCCESS);
    EXPECT_EQ(MPI_Error_class(code, &found), MPI_ERR_ARG);
    EXPECT_EQ(MPI_Remove_error_class(errclass), MPI_SUCCESS);
    EXPECT_EQ(MPI_Remove_error_class(errclass), MPI_ERR_ARG);
    EXPECT_EQ(MPI_Add_error_code(errclass, &code), MPI_ERR_ARG);
    EXPECT_EQ(MPI_Remove_error_class(MPI_ERR_COMM), MPI_ERR_ARG); /* a predefined class */
    EXPECT_EQ(MPI_Add_error_string(MPI_ERR_COMM, "mine"), MPI_ERR_ARG);
    /* A user code may be added to a predefined class. */
    EXPECT_EQ(MPI_Add_error_code(MPI_ERR_COMM, &code), MPI_SUCCESS);
    MPI_Error_class(code, &found);
    EXPECT_EQ(found, MPI_ERR_COMM);
    EXPECT_EQ(MPI_Remove_error_code(code), MPI_SUCCESS);
    MPI_Error_string(MPI_ERR_TRUNCATE, text, &len);
    EXPECT(strncmp(text, "MPI_ERR_TRUNCATE", 16) == 0 && len == (int)strlen(text));
}

/* Two errors of one class have the same code: the text must not contain the cause of another error, and
 * must not change until the next error. */
static void test_texts_of_two_errors(void)
{
    char text[MPI_MAX_ERROR_STRING], again[MPI_MAX_ERROR_STRING];
    int len, x = 0;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    const int first = MPI_Send(&x, 1, MPI_INT, 77, 0, MPI_COMM_SELF);
    const int second = MPI_Send(&x, 1, MPI_INT, 88, 0, MPI_COMM_SELF);
    MPI_Error_string(first, text, &len);
    EXPECT(!strstr(text, "77") && (!strstr(text, "88") || strstr(text, "the last of ")));
    MPI_Error_string(second, again, &len);
    EXPECT(strstr(again, "dest is 88") && strcmp(text, again) == 0);
    MPI_Send(&x, 1, MPI_INT, 99, 0, MPI_COMM_SELF);
    MPI_Error_string(second, text, &len);
    EXPECT(strstr(text, "dest is 99") && !strstr(text, "last of"));
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

/* Released codes are reused, so that a program can add and remove codes without limit. */
static void test_codes_are_reused(void)
{
    enum { ROUNDS = 20000, MANY = 300 };
    int errclass[MANY], code[MANY], before = query_lastusedcode();
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Add_error_class(&errclass[0]);
        MPI_Add_error_code(errclass[0], &code[0]);
        MPI_Remove_error_code(code[0]);
        MPI_Remove_error_class(errclass[0]);
    }
    EXPECT_EQ(query_lastusedcode(), before);
    for (int i = 0; i < MANY; i++) {
        MPI_Add_error_class(&errclass[i]);
        MPI_Add_error_code(errclass[i], &code[i]);
    }
    const int most = query_lastusedcode();
    EXPECT_EQ(most, before + 2 * MANY);
    /* Every second pair is removed and added again: the freed numbers are used, each once. */
    for (int i = 0; i < MANY; i += 2) {
        EXPECT_EQ(MPI_Remove_error_code(code[i]), MPI_SUCCESS);
        EXPECT_EQ(MPI_Remove_error_class(errclass[i]), MPI_SUCCESS);
    }
    EXPECT_EQ(query_lastusedcode(), most);
    for (int i = 0; i < MANY; i += 2) {
        MPI_Add_error_class(&errclass[i]);
        MPI_Add_error_code(errclass[i], &code[i]);
    }
    EXPECT_EQ(query_lastusedcode(), most);
    for (int i = 0; i < MANY; i++) {
        int found;
        EXPECT_EQ(MPI_Error_class(code[i], &found), MPI_SUCCESS);
        EXPECT_EQ(found, errclass[i]);
    }
    /* The highest remaining code determines MPI_LASTUSEDCODE. */
    for (int i = 0; i < MANY; i++) {
        EXPECT_EQ(MPI_Remove_error_code(code[i]), MPI_SUCCESS);
        EXPECT_EQ(MPI_Remove_error_class(errclass[i]), MPI_SUCCESS);
    }
    EXPECT_EQ(query_lastusedcode(), before);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    test_user_handlers();
    test_errors_without_object();
    test_user_codes();
    test_texts_of_two_errors();
    test_codes_are_reused();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    return mpitest_end();
}
