/* self.c: messages of a rank to itself: every size and mode, received before or after the send, in any
 * order, probed, and matched by wildcards; and MPI_PROC_NULL.
 *
 * ranks: 1 2
 * also: FISHPLATE_RENDEZVOUS=rput
 * also: FISHPLATE_RENDEZVOUS=get
 * also: FISHPLATE_RENDEZVOUS=put
 * also: FISHPLATE_RENDEZVOUS=r3 FISHPLATE_EAGER_MAX=64
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "pattern.h"

static const size_t sizes[] = {0, 1, 32, 33, 16384, 16385, 65536, 65540, 5 << 20};

static int me;

static void test_size(size_t size, int holey, MPI_Comm comm)
{
    struct layout l = make_layout(size, holey);
    char *out = malloc(l.span + 1), *in = malloc(l.span + 1);
    MPI_Request r[2];
    MPI_Status s;
    int count = -1;
    pattern_fill(out, &l, 9);
    memset(in, 0xdd, l.span);
    MPI_Irecv(in, l.count, l.type, me, 1, comm, &r[0]);
    MPI_Send(out, l.count, l.type, me, 1, comm);
    MPI_Wait(&r[0], &s);
    EXPECT_EQ(pattern_count_wrong(in, &l, 9), 0);

    memset(in, 0xdd, l.span);
    MPI_Irecv(in, l.count, l.type, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &r[0]);
    MPI_Ssend(out, l.count, l.type, me, 2, comm);
    MPI_Wait(&r[0], &s);
    EXPECT(s.MPI_SOURCE == me && s.MPI_TAG == 2);
    EXPECT_EQ(pattern_count_wrong(in, &l, 9), 0);

    memset(in, 0xdd, l.span);
    MPI_Isend(out, l.count, l.type, me, 3, comm, &r[0]);
    MPI_Issend(out, l.count, l.type, me, 4, comm, &r[1]);
    MPI_Probe(me, 4, comm, &s);
    MPI_Get_count(&s, l.type, &count);
    EXPECT_EQ(count, l.count);
    MPI_Recv(in, l.count, l.type, me, 4, comm, &s);
    EXPECT_EQ(pattern_count_wrong(in, &l, 9), 0);
    memset(in, 0xdd, l.span);
    MPI_Recv(in, l.count, l.type, me, 3, comm, &s);
    EXPECT_EQ(pattern_count_wrong(in, &l, 9), 0);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    layout_free(&l);
    free(out);
    free(in);
}

/* Sends many messages to itself before it receives any. */
static void test_many_messages(void)
{
    enum { N = 3000 };
    static int out[N], in[N];
    static MPI_Request r[N];
    for (int i = 0; i < N; i++) {
        out[i] = i;
        MPI_Isend(&out[i], 1, MPI_INT, 0, i % 10, MPI_COMM_SELF, &r[i]);
    }
    for (int tag = 9; tag >= 0; tag--)
        for (int i = tag; i < N; i += 10) {
            MPI_Recv(&in[i], 1, MPI_INT, 0, tag, MPI_COMM_SELF, MPI_STATUS_IGNORE);
            EXPECT_EQ(in[i], i);
        }
    MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
}

static void test_proc_null(void)
{
    int x = 3, count = -1;
    MPI_Request r[3];
    MPI_Status s[3];
    MPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Ssend(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 5, MPI_COMM_WORLD, &s[0]);
    EXPECT(x == 3 && s[0].MPI_SOURCE == MPI_PROC_NULL && s[0].MPI_TAG == MPI_ANY_TAG);
    MPI_Get_count(&s[0], MPI_INT, &count);
    EXPECT_EQ(count, 0);
    MPI_Isend(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &r[0]);
    MPI_Irecv(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &r[1]);
    MPI_Recv_init(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &r[2]);
    MPI_Start(&r[2]);
    MPI_Waitall(3, r, s);
    EXPECT(s[1].MPI_SOURCE == MPI_PROC_NULL && s[2].MPI_SOURCE == MPI_PROC_NULL);
    MPI_Request_free(&r[2]);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (int holey = 0; holey <= (sizes[i] % 4 == 0); holey++) {
            me = 0;
            test_size(sizes[i], holey, MPI_COMM_SELF);
            me = mpitest_rank;
            test_size(sizes[i], holey, MPI_COMM_WORLD);
        }
    test_many_messages();
    test_proc_null();
    return mpitest_end();
}
