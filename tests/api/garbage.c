/* garbage.c: invalid handles: never set, freed, of another kind, or constants of another MPI's mpi.h. Each
 * returns an error with a message; none is dereferenced where no memory is mapped.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

static int word;

static void expect_refused(void *garbage)
{
    int n, flag, indices[2];
    MPI_Request r = (MPI_Request)garbage, two[2] = {MPI_REQUEST_NULL, (MPI_Request)garbage};
    MPI_Message m = (MPI_Message)garbage;
    MPI_Comm comm = (MPI_Comm)garbage, made = MPI_COMM_NULL;
    MPI_Datatype type = (MPI_Datatype)garbage, types[1] = {type}, derived = MPI_DATATYPE_NULL;
    MPI_Info info = (MPI_Info)garbage;
    MPI_Group group = (MPI_Group)garbage;
    MPI_Errhandler handler = (MPI_Errhandler)garbage;
    MPI_Op op = (MPI_Op)garbage;
    const int ones[1] = {1};
    const MPI_Aint zeros[1] = {0};
    EXPECT_EQ(MPI_Comm_size(comm, &n), MPI_ERR_COMM);
    EXPECT_EQ(MPI_Comm_dup(comm, &made), MPI_ERR_COMM);
    EXPECT_EQ(MPI_Send(&word, 1, MPI_INT, 0, 0, comm), MPI_ERR_COMM);
    EXPECT_EQ(MPI_Comm_free(&comm), MPI_ERR_COMM);
    EXPECT_EQ(MPI_Group_size(group, &n), MPI_ERR_GROUP);
    EXPECT_EQ(MPI_Group_free(&group), MPI_ERR_GROUP);
    EXPECT_EQ(MPI_Type_size(type, &n), MPI_ERR_TYPE);
    EXPECT_EQ(MPI_Send(&word, 1, type, 0, 0, MPI_COMM_SELF), MPI_ERR_TYPE);
    EXPECT_EQ(MPI_Type_create_struct(1, ones, zeros, types, &derived), MPI_ERR_TYPE);
    EXPECT_EQ(MPI_Type_commit(&type), MPI_ERR_TYPE);
    EXPECT_EQ(MPI_Alltoallw(&word, ones, ones, types, &word, ones, ones, types, MPI_COMM_SELF), MPI_ERR_TYPE);
    EXPECT_EQ(MPI_Op_commutative(op, &flag), MPI_ERR_OP);
    EXPECT_EQ(MPI_Allreduce(&word, &n, 1, MPI_INT, op, MPI_COMM_SELF), MPI_ERR_OP);
    EXPECT_EQ(MPI_Info_get_nkeys(info, &n), MPI_ERR_INFO);
    EXPECT_EQ(MPI_Info_free(&info), MPI_ERR_INFO);
    EXPECT_EQ(MPI_Errhandler_free(&handler), MPI_ERR_ERRHANDLER);
    EXPECT_EQ(MPI_Comm_set_errhandler(MPI_COMM_SELF, handler), MPI_ERR_ERRHANDLER);
    EXPECT_EQ(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
    EXPECT_EQ(MPI_Test(&r, &flag, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
    EXPECT_EQ(MPI_Cancel(&r), MPI_ERR_REQUEST);
    EXPECT_EQ(MPI_Start(&r), MPI_ERR_REQUEST);
    EXPECT(MPI_Waitall(2, two, MPI_STATUSES_IGNORE) != MPI_SUCCESS);
    EXPECT(MPI_Testsome(2, two, &n, indices, MPI_STATUSES_IGNORE) != MPI_SUCCESS);
    EXPECT(MPI_Startall(2, two) != MPI_SUCCESS);
    /* Messages are allocated by malloc, so an address within other memory may look like a message. */
    if ((size_t)garbage % 16 != 0)
        EXPECT_EQ(MPI_Mrecv(&word, 1, MPI_INT, &m, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
}

static void expect_error_with_text(int rc, int errclass, const char *words)
{
    char text[MPI_MAX_ERROR_STRING];
    int n;
    EXPECT_EQ(rc, errclass);
    MPI_Error_string(rc, text, &n);
    if (!strstr(text, words))
        printf("the sentence is: %s\n", text);
    EXPECT(strstr(text, words));
}

static void test_sentences(void)
{
    MPI_Comm copy, freed;
    MPI_Datatype type;
    int n;
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    freed = copy;
    expect_error_with_text(MPI_Type_size((MPI_Datatype)(void *)copy, &n), MPI_ERR_TYPE,
                           "is a communicator, where a datatype is needed");
    MPI_Comm_free(&copy);
    MPI_Type_contiguous(2, MPI_INT, &type);
    expect_error_with_text(MPI_Comm_size((MPI_Comm)(void *)type, &n), MPI_ERR_COMM,
                           "is a datatype, where a communicator is needed");
    expect_error_with_text(MPI_Comm_size(freed, &n), MPI_ERR_COMM, "it has been freed");
    MPI_Type_free(&type);
    expect_error_with_text(MPI_Comm_size((MPI_Comm)0x44000000, &n), MPI_ERR_COMM, "another MPI's mpi.h");
}

/* Creates more objects than the first memory range holds; all are valid. */
static void test_many(void)
{
    enum { MANY = 300000 };
    MPI_Datatype *types = malloc(MANY * sizeof(*types));
    int n, wrong = 0;
    for (int i = 0; i < MANY; i++)
        MPI_Type_contiguous(i % 100, MPI_CHAR, &types[i]);
    for (int i = 0; i < MANY; i++)
        wrong += MPI_Type_size(types[i], &n) != MPI_SUCCESS || n != i % 100;
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(MPI_Type_size((MPI_Datatype)((char *)types[MANY - 1] + 4), &n), MPI_ERR_TYPE);
    for (int i = 0; i < MANY; i++)
        wrong += MPI_Type_free(&types[i]) != MPI_SUCCESS;
    EXPECT_EQ(wrong, 0);
    free(types);
}

int main(void)
{
    static char memory[64];
    MPI_Comm copy;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    /* Provides an object, so that `garbage` can contain addresses near it. */
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    void *const garbage[] = {(void *)0x44000000, /* MPI_COMM_WORLD of another library */
                             (void *)0x4c000405, /* MPI_INT of another library */
                             (void *)0x1000,
                             (void *)0x1235,
                             (void *)-1L,
                             (void *)(size_t)0xdeadbeefdeadbeef,
                             (void *)(size_t)0x7ffffffff000,
                             memory + 1,
                             memory,
                             (char *)copy + 8,
                             (char *)copy + 3,
                             (char *)copy + (1 << 20),
                             (char *)copy - (1 << 30),
                             (char *)copy + (1 << 30)};
    for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++)
        expect_refused(garbage[i]);
    MPI_Comm_free(&copy);
    test_sentences();
    test_many();
    MPI_Finalize();
    return expect_done();
}
