/* refused.c: writes 123 and impossible values to every control variable, before and after MPI_Init: after
 * a successful write the variable has the new value, after an error the old one.
 * ranks: 1
 * nodes: no
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "../mpitest.h"

#define TEXT_MAX 4096

/* A value of any type; bytes beyond the value must not change. */
union value {
    int number;
    unsigned long long wide;
    char text[TEXT_MAX];
};

static int refused, accepted;

static void fill_value(union value *v, MPI_Datatype type, long long number)
{
    memset(v, 0, sizeof(*v));
    if (type == MPI_CHAR)
        snprintf(v->text, sizeof(v->text), "%lld", number);
    else if (type == MPI_UNSIGNED_LONG_LONG)
        v->wide = (unsigned long long)number;
    else
        v->number = (int)number;
}

static void write_and_read(int index, const char *name, MPI_Datatype type, long long number)
{
    union value before = {0}, wanted, after = {0};
    MPI_T_cvar_handle handle;
    int count;
    EXPECT_EQ(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count), MPI_SUCCESS);
    EXPECT(type == MPI_CHAR ? count > 1 && count <= TEXT_MAX : count == 1);
    EXPECT_EQ(MPI_T_cvar_read(handle, &before), MPI_SUCCESS);
    fill_value(&wanted, type, number);
    const int rc = MPI_T_cvar_write(handle, &wanted);
    EXPECT(rc == MPI_SUCCESS || rc == MPI_T_ERR_INVALID || rc == MPI_T_ERR_CVAR_SET_NEVER ||
           rc == MPI_T_ERR_CVAR_SET_NOT_NOW);
    EXPECT_EQ(MPI_T_cvar_read(handle, &after), MPI_SUCCESS);
    if (memcmp(&after, rc ? &before : &wanted, sizeof(after)) != 0) {
        fprintf(stderr, "%s: written %lld, MPI_T_cvar_write returned %d\n", name, number, rc);
        mpitest_failures++;
    }
    *(rc ? &refused : &accepted) += 1;
    if (rc == MPI_SUCCESS)
        EXPECT_EQ(MPI_T_cvar_write(handle, &before), MPI_SUCCESS);
    EXPECT_EQ(MPI_T_cvar_handle_free(&handle), MPI_SUCCESS);
}

static void write_all_cvars(void)
{
    const long long numbers[] = {123, -1, INT32_MAX, INT64_MAX, INT64_MIN, 1};
    int n, verbosity, bind, scope;
    MPI_Datatype type;
    MPI_T_enum items;
    EXPECT_EQ(MPI_T_cvar_get_num(&n), MPI_SUCCESS);
    for (int i = 0; i < n; i++) {
        char name[128], text[16];
        int name_len = sizeof(name), text_len = sizeof(text);
        EXPECT_EQ(MPI_T_cvar_get_info(i, name, &name_len, &verbosity, &type, &items, text, &text_len, &bind,
                                      &scope),
                  MPI_SUCCESS);
        for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
            write_and_read(i, name, type, numbers[k]);
    }
}

int main(int argc, char **argv)
{
    int provided;
    EXPECT_EQ(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), MPI_SUCCESS);
    write_all_cvars();
    EXPECT(refused > 0 && accepted > 0);
    printf("before MPI_Init %d values refused, %d accepted\n", refused, accepted);
    refused = accepted = 0;
    mpitest_begin(&argc, &argv);
    write_all_cvars();
    EXPECT(refused > 0 && accepted > 0);
    printf("after MPI_Init %d values refused, %d accepted\n", refused, accepted);
    EXPECT_EQ(MPI_T_finalize(), MPI_SUCCESS);
    return mpitest_end();
}
