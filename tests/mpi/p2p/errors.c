/* errors.c: invalid arguments and truncated messages call the communicator's error handler with the
 * correct class and leave the library usable.
 *
 * ranks: 2 1
 * also: FISHPLATE_SHM_CMA=0 FISHPLATE_EAGER_MAX=64
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

static int calls, last_class;
static MPI_Comm last_comm;

static void record_error(MPI_Comm *comm, int *code, ...)
{
    calls++;
    last_comm = *comm;
    MPI_Error_class(*code, &last_class);
}

/* Checks that the call returned this class and the handler was called once. */
static void expect_error(int rc, int class, int line)
{
    int got = -1;
    MPI_Error_class(rc, &got);
    if (got != class || calls != 1 || last_class != class) {
        mpitest_failures++;
        fprintf(
            stderr,
            "rank %d: line %d: error class %d and %d calls of the handler, expected class %d and 1 call\n",
            mpitest_rank, line, got, calls, class);
    }
    calls = 0;
}

#define EXPECT_ERROR(call, class) expect_error(call, class, __LINE__)

static void test_arguments(MPI_Comm c)
{
    int x = 0;
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_Status s;
    MPI_Datatype raw;
    EXPECT_ERROR(MPI_Send(&x, -1, MPI_INT, 0, 0, c), MPI_ERR_COUNT);
    EXPECT_ERROR(MPI_Send(&x, 1, MPI_DATATYPE_NULL, 0, 0, c), MPI_ERR_TYPE);
    EXPECT_ERROR(MPI_Send(&x, 1, MPI_INT, mpitest_size, 0, c), MPI_ERR_RANK);
    EXPECT_ERROR(MPI_Send(&x, 1, MPI_INT, -7, 0, c), MPI_ERR_RANK);
    EXPECT_ERROR(MPI_Send(&x, 1, MPI_INT, MPI_ANY_SOURCE, 0, c), MPI_ERR_RANK);
    EXPECT_ERROR(MPI_Send(&x, 1, MPI_INT, 0, -3, c), MPI_ERR_TAG);
    EXPECT_ERROR(MPI_Send(&x, 1, MPI_INT, 0, MPI_ANY_TAG, c), MPI_ERR_TAG);
    EXPECT_ERROR(MPI_Send(NULL, 1, MPI_INT, 0, 0, c), MPI_ERR_BUFFER);
    EXPECT_ERROR(MPI_Recv(&x, -1, MPI_INT, 0, 0, c, &s), MPI_ERR_COUNT);
    EXPECT_ERROR(MPI_Recv(&x, 1, MPI_INT, mpitest_size, 0, c, &s), MPI_ERR_RANK);
    EXPECT_ERROR(MPI_Recv(&x, 1, MPI_INT, 0, -3, c, &s), MPI_ERR_TAG);
    EXPECT_ERROR(MPI_Isend(&x, 1, MPI_INT, mpitest_size, 0, c, &r), MPI_ERR_RANK);
    EXPECT_ERROR(MPI_Irecv(&x, 1, MPI_INT, -9, 0, c, &r), MPI_ERR_RANK);
    EXPECT_ERROR(MPI_Send_init(&x, -2, MPI_INT, 0, 0, c, &r), MPI_ERR_COUNT);
    EXPECT_ERROR(MPI_Recv_init(&x, 1, MPI_INT, 0, -3, c, &r), MPI_ERR_TAG);
    EXPECT_ERROR(MPI_Bsend(&x, 1, MPI_INT, 0, 0, c), MPI_ERR_BUFFER);
    EXPECT_ERROR(MPI_Probe(mpitest_size + 5, 0, c, &s), MPI_ERR_RANK);
    EXPECT_ERROR(MPI_Sendrecv(&x, 1, MPI_INT, 0, 0, &x, -1, MPI_INT, 0, 0, c, &s), MPI_ERR_COUNT);
    MPI_Type_contiguous(2, MPI_INT, &raw);
    EXPECT_ERROR(MPI_Send(&x, 1, raw, 0, 0, c), MPI_ERR_TYPE);
    MPI_Type_free(&raw);
    EXPECT(last_comm == c && r == MPI_REQUEST_NULL);
}

/* Errors of calls without a communicator go to the handler of MPI_COMM_SELF. */
static void test_requests(void)
{
    int x = 0, flag, index;
    MPI_Request null = MPI_REQUEST_NULL, active;
    MPI_Message m = MPI_MESSAGE_NULL;
    MPI_Status s;
    EXPECT_ERROR(MPI_Start(&null), MPI_ERR_REQUEST);
    EXPECT_ERROR(MPI_Request_free(&null), MPI_ERR_REQUEST);
    EXPECT_ERROR(MPI_Cancel(&null), MPI_ERR_REQUEST);
    EXPECT_ERROR(MPI_Grequest_complete(null), MPI_ERR_REQUEST);
    EXPECT_ERROR(MPI_Mrecv(&x, 1, MPI_INT, &m, &s), MPI_ERR_REQUEST);
    EXPECT_ERROR(MPI_Wait(NULL, &s), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_Waitall(-1, NULL, NULL), MPI_ERR_COUNT);
    EXPECT_ERROR(MPI_Testany(2, NULL, &index, &flag, &s), MPI_ERR_ARG);
    MPI_Irecv(&x, 1, MPI_INT, 0, 77, MPI_COMM_SELF, &active);
    EXPECT_ERROR(MPI_Start(&active), MPI_ERR_REQUEST); /* not a persistent request */
    EXPECT_ERROR(MPI_Grequest_complete(active), MPI_ERR_REQUEST);
    MPI_Cancel(&active);
    MPI_Wait(&active, &s);
    MPI_Recv_init(&x, 1, MPI_INT, 0, 78, MPI_COMM_SELF, &active);
    MPI_Start(&active);
    EXPECT_ERROR(MPI_Start(&active), MPI_ERR_REQUEST); /* active already */
    MPI_Cancel(&active);
    MPI_Wait(&active, &s);
    MPI_Request_free(&active);
}

/* Errors of calls about a request go to the handler of the request's communicator. */
static void test_request_errors(MPI_Comm c)
{
    int x = 0;
    MPI_Request r;
    MPI_Bsend_init(&x, 1, MPI_INT, 0, 0, c, &r);
    EXPECT_ERROR(MPI_Start(&r), MPI_ERR_BUFFER); /* no buffer is attached */
    EXPECT(last_comm == c);
    MPI_Request_free(&r);
    MPI_Recv_init(&x, 1, MPI_INT, MPI_PROC_NULL, 0, c, &r);
    MPI_Start(&r);
    EXPECT_ERROR(MPI_Start(&r), MPI_ERR_REQUEST); /* active already */
    EXPECT(last_comm == c);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Request_free(&r);
}

/* A list that contains a receive twice: after the first entry completes, the second entry is not a valid
 * request. */
static void test_receive_listed_twice(void)
{
    int in = 0, out = 5;
    MPI_Request r[2];
    MPI_Status s[2];
    MPI_Irecv(&in, 1, MPI_INT, 0, 7, MPI_COMM_SELF, &r[0]);
    MPI_Send(&out, 1, MPI_INT, 0, 7, MPI_COMM_SELF);
    r[1] = r[0];
    EXPECT_ERROR(MPI_Waitall(2, r, s), MPI_ERR_IN_STATUS);
    EXPECT(in == 5 && s[0].MPI_ERROR == MPI_SUCCESS && s[1].MPI_ERROR == MPI_ERR_REQUEST);
}

/* A message longer than the receive, by every protocol and every kind of receive. */
static void test_truncation(MPI_Comm c, int size)
{
    char *out = calloc(1, (size_t)size), *in = calloc(1, (size_t)size);
    int peer = mpitest_size - 1 - mpitest_rank, room = size / 2, count, kept = 1;
    MPI_Request send[4], recv;
    MPI_Message m;
    MPI_Status s;
    memset(out, 7, (size_t)size);
    for (int i = 0; i < 4; i++)
        MPI_Isend(out, size, MPI_BYTE, peer, i, c, &send[i]);
    EXPECT_ERROR(MPI_Recv(in, room, MPI_BYTE, peer, 0, c, &s), MPI_ERR_TRUNCATE);
    EXPECT(s.MPI_SOURCE == peer && s.MPI_TAG == 0);
    MPI_Get_count(&s, MPI_BYTE, &count);
    EXPECT(count <= room);
    MPI_Irecv(in, room, MPI_BYTE, MPI_ANY_SOURCE, 1, c, &recv);
    EXPECT_ERROR(MPI_Wait(&recv, &s), MPI_ERR_TRUNCATE);
    MPI_Mprobe(peer, 2, c, &m, &s);
    EXPECT_ERROR(MPI_Mrecv(in, room, MPI_BYTE, &m, &s), MPI_ERR_TRUNCATE);
    EXPECT(last_comm == c);
    EXPECT_ERROR(MPI_Recv(NULL, 0, MPI_BYTE, peer, 3, c, &s), MPI_ERR_TRUNCATE);
    MPI_Waitall(4, send, MPI_STATUSES_IGNORE);
    for (int i = room; i < size; i++)
        kept &= in[i] == 0;
    EXPECT(kept); /* no byte beyond the receive buffer changed */
    EXPECT_EQ(calls, 0);
    free(out);
    free(in);
}

/* Sends bytes that end within an element of a datatype with gaps; the receive accepts any number of bytes
 * up to its size. */
static void test_partial_element(MPI_Comm c, int pairs)
{
    struct gap {
        double d;
        int i;
    } *in = calloc((size_t)pairs, sizeof(*in));
    double *out = calloc((size_t)pairs * 2, sizeof(*out));
    const int peer = mpitest_size - 1 - mpitest_rank, whole = (pairs - 1) * 12;
    static const int more[] = {0, 8, 9, 3};
    MPI_Request send[4];
    MPI_Status s;
    for (int i = 0; i < 4; i++)
        MPI_Isend(out, whole + more[i], MPI_BYTE, peer, i, c, &send[i]);
    for (int i = 0; i < 2; i++) {
        int elements = -1;
        EXPECT_EQ(MPI_Recv(in, pairs, MPI_DOUBLE_INT, peer, i, c, &s), MPI_SUCCESS);
        MPI_Get_elements(&s, MPI_DOUBLE_INT, &elements);
        EXPECT_EQ(elements, 2 * (pairs - 1) + i);
    }
    for (int i = 2; i < 4; i++)
        EXPECT_ERROR(MPI_Recv(in, pairs, MPI_DOUBLE_INT, peer, i, c, &s), MPI_ERR_TYPE);
    MPI_Waitall(4, send, MPI_STATUSES_IGNORE);
    EXPECT_EQ(calls, 0);
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    static const int sizes[] = {2, 40, 16384, 16386, 400000};
    MPI_Errhandler h;
    MPI_Comm dup;
    mpitest_begin(&argc, &argv);
    MPI_Comm_create_errhandler(record_error, &h);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_set_errhandler(dup, h);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, h);
    test_arguments(dup);
    test_requests();
    test_request_errors(dup);
    test_receive_listed_twice();
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        test_truncation(dup, sizes[i]);
    test_partial_element(dup, 3);
    test_partial_element(dup, 40000);
    MPI_Comm_free(&dup);
    MPI_Errhandler_free(&h);
    return mpitest_end();
}
