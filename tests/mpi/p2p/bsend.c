/* bsend.c: buffered sends return without a receive, never wait for room, and the whole buffer can be
 * detached; buffers of the process, of communicators and of sessions, explicit, automatic and too small.
 *
 * ranks: 2 1
 * also: FISHPLATE_SHM_CMA=0 FISHPLATE_SHM_RING=64k
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "pattern.h"

enum { MANY = 200, LARGE = 100000 };

static int peer;

static void receive_and_check_messages(MPI_Comm comm, int n, int size)
{
    static char in[LARGE];
    struct layout l = make_layout((size_t)size, 0);
    for (int i = 0; i < n; i++) {
        memset(in, 0, sizeof(in));
        MPI_Recv(in, size, MPI_BYTE, peer, 1, comm, MPI_STATUS_IGNORE);
        EXPECT_EQ(pattern_count_wrong(in, &l, (unsigned)i), 0);
    }
}

/* Overwrites each message right after its send, since MPI_Bsend has copied it. */
static void send_many_messages(MPI_Comm comm, int n, int size)
{
    static char out[LARGE];
    struct layout l = make_layout((size_t)size, 0);
    for (int i = 0; i < n; i++) {
        pattern_fill(out, &l, (unsigned)i);
        EXPECT_EQ(MPI_Bsend(out, size, MPI_BYTE, peer, 1, comm), MPI_SUCCESS);
        memset(out, 0x11, (size_t)size);
    }
}

static void test_explicit_buffer(int size)
{
    int room, packed, got_size = -1, flag = 0;
    void *got = NULL;
    MPI_Request r;
    MPI_Pack_size(size, MPI_BYTE, MPI_COMM_WORLD, &packed);
    room = MANY * (packed + MPI_BSEND_OVERHEAD);
    char *buffer = malloc((size_t)room);
    MPI_Buffer_attach(buffer, room);
    send_many_messages(MPI_COMM_WORLD, MANY, size);
    MPI_Buffer_iflush(&r);
    receive_and_check_messages(MPI_COMM_WORLD, MANY, size);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Buffer_flush();
    MPI_Buffer_iflush(&r); /* the buffer is empty: complete at once */
    MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
    EXPECT_EQ(flag, 1);
    MPI_Buffer_detach(&got, &got_size);
    EXPECT(got == buffer && got_size == room);
    free(buffer);
}

/* With a buffer that is too small MPI_Bsend returns MPI_ERR_BUFFER, and messages that fit are sent
 * nevertheless. */
static void test_overflow(void)
{
    static char out[LARGE], in[LARGE], buffer[LARGE + MPI_BSEND_OVERHEAD];
    void *got;
    int size, sent = 0, rc = MPI_SUCCESS, total;
    /* No buffer is attached. */
    EXPECT_EQ(MPI_Bsend(out, 1, MPI_BYTE, peer, 2, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    MPI_Buffer_attach(buffer, sizeof(buffer));
    EXPECT_EQ(MPI_Buffer_attach(buffer, sizeof(buffer)), MPI_ERR_BUFFER); /* a second buffer */
    EXPECT_EQ(MPI_Bsend(out, sizeof(out), MPI_BYTE, peer, 2, MPI_COMM_WORLD), MPI_SUCCESS);
    while (sent < 3 && rc == MPI_SUCCESS) {
        rc = MPI_Bsend(out, sizeof(out), MPI_BYTE, peer, 2, MPI_COMM_WORLD);
        sent += rc == MPI_SUCCESS;
    }
    EXPECT_EQ(MPI_Bsend(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 2, MPI_COMM_WORLD), MPI_SUCCESS);
    if (mpitest_size == 1 || peer != mpitest_rank)
        EXPECT_EQ(rc, MPI_ERR_BUFFER); /* the first message fills the buffer and has not been received */
    MPI_Sendrecv(&sent, 1, MPI_INT, peer, 3, &total, 1, MPI_INT, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i <= total; i++)
        MPI_Recv(in, sizeof(in), MPI_BYTE, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Buffer_detach(&got, &size);
    EXPECT_EQ(size, sizeof(buffer));
    MPI_Buffer_detach(&got, &size); /* no buffer is attached: returns a null pointer */
    EXPECT(got == NULL && size == 0);
}

static void test_automatic(void)
{
    void *got = NULL;
    int size = -1;
    MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
    send_many_messages(MPI_COMM_WORLD, MANY, 8);
    send_many_messages(MPI_COMM_WORLD, 20, LARGE);
    receive_and_check_messages(MPI_COMM_WORLD, MANY, 8);
    receive_and_check_messages(MPI_COMM_WORLD, 20, LARGE);
    MPI_Buffer_detach(&got, &size);
    EXPECT(got == MPI_BUFFER_AUTOMATIC && size == 0);
}

/* A communicator's buffer is used by sends on that communicator only. */
static void test_buffer_of_communicator(void)
{
    MPI_Comm dup;
    MPI_Count size;
    MPI_Request r;
    void *got;
    char *buffer = malloc(LARGE * 2);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_attach_buffer_c(dup, buffer, LARGE * 2);
    EXPECT_EQ(MPI_Bsend(buffer, 1, MPI_BYTE, peer, 1, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    send_many_messages(dup, 1, LARGE);
    MPI_Comm_iflush_buffer(dup, &r);
    receive_and_check_messages(dup, 1, LARGE);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Comm_flush_buffer(dup);
    MPI_Comm_detach_buffer_c(dup, &got, &size);
    EXPECT(got == buffer && size == LARGE * 2);
    MPI_Comm_free(&dup);
    free(buffer);
}

/* MPI_Buffer_detach waits until the last message has left the buffer. */
static void test_detach_waits(void)
{
    char *buffer = malloc(2 * LARGE), *in = malloc(LARGE);
    struct layout l = make_layout(LARGE, 0);
    MPI_Request r;
    void *got;
    int size;
    MPI_Irecv(in, LARGE, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &r);
    MPI_Buffer_attach(buffer, 2 * LARGE);
    send_many_messages(MPI_COMM_WORLD, 1, LARGE);
    MPI_Buffer_detach(&got, &size);
    memset(buffer, 0x22, 2 * LARGE);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    EXPECT_EQ(pattern_count_wrong(in, &l, 0), 0);
    free(buffer);
    free(in);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    peer = mpitest_size - 1 - mpitest_rank;
    test_explicit_buffer(8);
    test_explicit_buffer(3000);
    test_overflow();
    test_automatic();
    test_buffer_of_communicator();
    test_detach_waits();
    return mpitest_end();
}
