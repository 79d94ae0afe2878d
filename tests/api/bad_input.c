/* bad_input.c: invalid arguments return the correct error class through the correct error handler, and
 * never crash.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <string.h>

#include "expect.h"

static MPI_Datatype uncommitted;
static char byte;

static void test_p2p(MPI_Comm comm)
{
    MPI_Request request;
    EXPECT_EQ(MPI_Send(&byte, 1, MPI_BYTE, 0, 0, MPI_COMM_NULL), MPI_ERR_COMM);
    EXPECT_EQ(MPI_Send(&byte, 1, MPI_BYTE, 0, 0, (MPI_Comm)0), MPI_ERR_COMM);
    EXPECT_EQ(MPI_Send(&byte, 1, MPI_BYTE, 0, 0, (MPI_Comm)MPI_INFO_NULL), MPI_ERR_COMM);
    EXPECT_EQ(MPI_Send(&byte, -1, MPI_BYTE, 0, 0, comm), MPI_ERR_COUNT);
    EXPECT_EQ(MPI_Send_c(&byte, -1, MPI_BYTE, 0, 0, comm), MPI_ERR_COUNT);
    EXPECT_EQ(MPI_Send(&byte, 1, MPI_DATATYPE_NULL, 0, 0, comm), MPI_ERR_TYPE);
    /* With a count of 0 the datatype is not checked. */
    EXPECT_EQ(MPI_Send(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, comm), MPI_SUCCESS);
    EXPECT_EQ(MPI_Bcast(NULL, 0, MPI_DATATYPE_NULL, 0, comm), MPI_SUCCESS);
    EXPECT_EQ(MPI_Send(&byte, 1, (MPI_Datatype)0x2ff, 0, 0, comm), MPI_ERR_TYPE);
    EXPECT_EQ(MPI_Send(&byte, 1, uncommitted, 0, 0, comm), MPI_ERR_TYPE);
    EXPECT_EQ(MPI_Send(&byte, 1, MPI_BYTE, 77, 0, comm), MPI_ERR_RANK);
    EXPECT_EQ(MPI_Send(&byte, 1, MPI_BYTE, MPI_ANY_SOURCE, 0, comm), MPI_ERR_RANK);
    EXPECT_EQ(MPI_Send(&byte, 1, MPI_BYTE, 0, -1, comm), MPI_ERR_TAG);
    EXPECT_EQ(MPI_Send(&byte, 1, MPI_BYTE, 0, MPI_ANY_TAG, comm), MPI_ERR_TAG);
    EXPECT_EQ(MPI_Send(NULL, 1, MPI_BYTE, 0, 0, comm), MPI_ERR_BUFFER);
    EXPECT_EQ(MPI_Send(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, comm), MPI_SUCCESS);
    EXPECT_EQ(MPI_Recv(&byte, 1, MPI_BYTE, -9, 0, comm, MPI_STATUS_IGNORE), MPI_ERR_RANK);
    EXPECT_EQ(MPI_Recv(&byte, 1, MPI_BYTE, MPI_PROC_NULL, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(MPI_Isend(&byte, 1, MPI_BYTE, 0, 0, comm, NULL), MPI_ERR_ARG);
    EXPECT_EQ(MPI_Irecv(&byte, -2, MPI_BYTE, 0, 0, comm, &request), MPI_ERR_COUNT);
    EXPECT_EQ(MPI_Wait(NULL, MPI_STATUS_IGNORE), MPI_ERR_ARG);
    EXPECT_EQ(MPI_Waitall(-1, NULL, MPI_STATUSES_IGNORE), MPI_ERR_COUNT);
    EXPECT_EQ(MPI_Waitall(1, NULL, MPI_STATUSES_IGNORE), MPI_ERR_ARG);
    EXPECT_EQ(MPI_Grequest_complete(MPI_REQUEST_NULL), MPI_ERR_REQUEST);
}

static void test_coll(MPI_Comm comm)
{
    int counts[1] = {-1}, displs[1] = {0};
    MPI_Datatype types[1] = {uncommitted};
    char other;
    EXPECT_EQ(MPI_Barrier(MPI_COMM_NULL), MPI_ERR_COMM);
    EXPECT_EQ(MPI_Bcast(&byte, 1, MPI_BYTE, 5, comm), MPI_ERR_ROOT);
    EXPECT_EQ(MPI_Bcast(&byte, 1, MPI_BYTE, MPI_ROOT, comm), MPI_ERR_ROOT);
    EXPECT_EQ(MPI_Bcast(&byte, -1, MPI_BYTE, 0, comm), MPI_ERR_COUNT);
    EXPECT_EQ(MPI_Bcast(NULL, 1, MPI_BYTE, 0, comm), MPI_ERR_BUFFER);
    EXPECT_EQ(MPI_Reduce(&byte, &other, 1, MPI_BYTE, MPI_OP_NULL, 0, comm), MPI_ERR_OP);
    EXPECT_EQ(MPI_Allreduce(&byte, &other, 1, uncommitted, MPI_SUM, comm), MPI_ERR_TYPE);
    EXPECT_EQ(MPI_Allgather(&byte, 1, MPI_BYTE, &other, -1, MPI_BYTE, comm), MPI_ERR_COUNT);
    EXPECT_EQ(MPI_Allgather(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, &other, 1, MPI_BYTE, comm), MPI_SUCCESS);
    EXPECT_EQ(MPI_Gather(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, &other, 1, MPI_BYTE, 0, comm), MPI_SUCCESS);
    EXPECT_EQ(MPI_Gather(&byte, 1, MPI_BYTE, &other, 1, MPI_DATATYPE_NULL, 0, comm), MPI_ERR_TYPE);
    EXPECT_EQ(MPI_Gatherv(&byte, 1, MPI_BYTE, &other, counts, displs, MPI_BYTE, 0, comm), MPI_ERR_COUNT);
    EXPECT_EQ(MPI_Gatherv(&byte, 1, MPI_BYTE, &other, NULL, displs, MPI_BYTE, 0, comm), MPI_ERR_ARG);
    EXPECT_EQ(MPI_Scatter(&byte, 1, MPI_BYTE, NULL, 1, MPI_BYTE, 0, comm), MPI_ERR_BUFFER);
    EXPECT_EQ(MPI_Reduce_scatter(&byte, &other, counts, MPI_BYTE, MPI_SUM, comm), MPI_ERR_COUNT);
    counts[0] = 1;
    EXPECT_EQ(MPI_Alltoallw(&byte, counts, displs, types, &other, counts, displs, types, comm), MPI_ERR_TYPE);
}

static void test_objects(MPI_Comm comm)
{
    MPI_Comm newcomm;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Info info;
    MPI_Datatype type;
    int value, ranks[1] = {99};
    EXPECT_EQ(MPI_Comm_size(comm, NULL), MPI_ERR_ARG);
    EXPECT_EQ(MPI_Comm_rank(MPI_COMM_NULL, &value), MPI_ERR_COMM);
    EXPECT_EQ(MPI_Comm_create(comm, MPI_GROUP_NULL, &newcomm), MPI_ERR_GROUP);
    EXPECT_EQ(MPI_Comm_set_errhandler(comm, MPI_ERRHANDLER_NULL), MPI_ERR_ERRHANDLER);
    EXPECT_EQ(MPI_Group_size(MPI_GROUP_NULL, &value), MPI_ERR_GROUP);
    EXPECT_EQ(MPI_Comm_group(comm, &group), MPI_SUCCESS);
    EXPECT_EQ(MPI_Group_incl(group, -1, ranks, &group), MPI_ERR_ARG);
    EXPECT_EQ(MPI_Group_incl(group, 1, ranks, &group), MPI_ERR_RANK);
    EXPECT_EQ(MPI_Group_free(&group), MPI_SUCCESS);
    EXPECT_EQ(MPI_Info_set(MPI_INFO_NULL, "a", "b"), MPI_ERR_INFO);
    EXPECT_EQ(MPI_Info_create(&info), MPI_SUCCESS);
    EXPECT_EQ(MPI_Info_set(info, NULL, "b"), MPI_ERR_INFO_KEY);
    EXPECT_EQ(MPI_Info_set(info, "a", NULL), MPI_ERR_INFO_VALUE);
    EXPECT_EQ(MPI_Info_free(&info), MPI_SUCCESS);
    EXPECT_EQ(MPI_Type_contiguous(-1, MPI_INT, &type), MPI_ERR_COUNT);
    EXPECT_EQ(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type), MPI_ERR_TYPE);
    EXPECT_EQ(MPI_Type_contiguous(1, MPI_INT, NULL), MPI_ERR_ARG);
    EXPECT_EQ(MPI_Op_create(NULL, 1, NULL), MPI_ERR_ARG);
    EXPECT_EQ(MPI_Comm_free(NULL), MPI_ERR_ARG);
    EXPECT_EQ(MPI_Get_count(NULL, MPI_INT, &value), MPI_ERR_ARG);
}

static MPI_Comm handled_comm;
static int handled_code;

static void record_error(MPI_Comm *comm, int *code, ...)
{
    handled_comm = *comm;
    handled_code = *code;
}

/* An error on a communicator calls its handler, an error without a valid object that of MPI_COMM_SELF. */
static void test_handlers(void)
{
    MPI_Comm dup;
    MPI_Errhandler handler;
    char text[MPI_MAX_ERROR_STRING];
    int length;
    EXPECT_EQ(MPI_Comm_dup(MPI_COMM_WORLD, &dup), MPI_SUCCESS);
    EXPECT_EQ(MPI_Comm_create_errhandler(record_error, &handler), MPI_SUCCESS);
    EXPECT_EQ(MPI_Comm_set_errhandler(dup, handler), MPI_SUCCESS);
    EXPECT_EQ(MPI_Send(&byte, 1, MPI_BYTE, 0, -5, dup), MPI_ERR_TAG);
    EXPECT_EQ(handled_code, MPI_ERR_TAG);
    EXPECT(handled_comm == dup);
    EXPECT_EQ(MPI_Error_string(MPI_ERR_TAG, text, &length), MPI_SUCCESS);
    EXPECT(strstr(text, "tag is -5"));
    handled_code = 0;
    EXPECT_EQ(MPI_Send(&byte, 1, MPI_BYTE, 0, 0, MPI_COMM_NULL), MPI_ERR_COMM);
    EXPECT_EQ(handled_code, 0);
    EXPECT_EQ(MPI_Comm_set_errhandler(MPI_COMM_SELF, handler), MPI_SUCCESS);
    EXPECT_EQ(MPI_Send(&byte, 1, MPI_BYTE, 0, 0, MPI_COMM_NULL), MPI_ERR_COMM);
    EXPECT_EQ(handled_code, MPI_ERR_COMM);
    EXPECT_EQ(MPI_Errhandler_free(&handler), MPI_SUCCESS);
    EXPECT_EQ(MPI_Comm_free(&dup), MPI_SUCCESS);
}

int main(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Type_contiguous(2, MPI_BYTE, &uncommitted);
    test_p2p(MPI_COMM_WORLD);
    test_coll(MPI_COMM_SELF);
    test_objects(MPI_COMM_WORLD);
    test_handlers();
    MPI_Type_free(&uncommitted);
    MPI_Finalize();
    return expect_done();
}
