/* probe.c: probes return the envelope of the next message and do not receive it; a matched probe hides its
 * message from all other calls; both with wildcards, for every protocol and from MPI_PROC_NULL.
 *
 * ranks: 2 3
 * also: FISHPLATE_SHM_CMA=0 FISHPLATE_EAGER_MAX=64
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "pattern.h"

static const size_t sizes[] = {0, 8, 300, 16384, 70000};

static void send_messages(int rounds)
{
    static char buf[70000];
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < 5; i++) {
            struct layout l = make_layout(sizes[i], 0);
            pattern_fill(buf, &l, (unsigned)i);
            if ((i + round) % 2)
                MPI_Send(buf, l.count, l.type, 0, i, MPI_COMM_WORLD);
            else
                MPI_Ssend(buf, l.count, l.type, 0, i, MPI_COMM_WORLD);
        }
}

static void expect_next(const MPI_Status *s, int tag)
{
    int count;
    EXPECT_EQ(s->MPI_TAG, tag);
    MPI_Get_count(s, MPI_BYTE, &count);
    EXPECT_EQ(count, sizes[tag]);
    EXPECT_EQ(s->MPI_ERROR, -77); /* a probe does not write MPI_ERROR */
}

static void test_probe(int source)
{
    static char buf[70000];
    for (int tag = 0; tag < 5; tag++) {
        struct layout l = make_layout(sizes[tag], 0);
        MPI_Status s = {.MPI_ERROR = -77};
        int flag = 0;
        MPI_Probe(source, tag % 2 ? tag : MPI_ANY_TAG, MPI_COMM_WORLD, &s);
        expect_next(&s, tag);
        MPI_Iprobe(source, tag, MPI_COMM_WORLD, &flag, &s); /* the message is still available */
        EXPECT_EQ(flag, 1);
        expect_next(&s, tag);
        MPI_Iprobe(source, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        EXPECT_EQ(flag, 0);
        MPI_Recv(buf, l.count, l.type, s.MPI_SOURCE, s.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT_EQ(pattern_count_wrong(buf, &l, (unsigned)tag), 0);
    }
}

static void test_matched_probe(int source)
{
    static char buf[70000];
    for (int tag = 0; tag < 5; tag++) {
        struct layout l = make_layout(sizes[tag], 0);
        MPI_Status s = {.MPI_ERROR = -77};
        MPI_Message m = MPI_MESSAGE_NULL;
        int flag = 0;
        if (tag % 2)
            MPI_Mprobe(source, MPI_ANY_TAG, MPI_COMM_WORLD, &m, &s);
        else
            while (!flag)
                MPI_Improbe(source, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &m, &s);
        expect_next(&s, tag);
        EXPECT(m != MPI_MESSAGE_NULL && m != MPI_MESSAGE_NO_PROC);
        /* No other call may receive the message of the matched probe. */
        MPI_Iprobe(source, tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        EXPECT_EQ(flag, 0);
        if (tag % 3) {
            MPI_Mrecv(buf, l.count, l.type, &m, &s);
        } else {
            MPI_Request r;
            MPI_Imrecv(buf, l.count, l.type, &m, &r);
            MPI_Wait(&r, &s);
        }
        expect_next(&s, tag);
        EXPECT(m == MPI_MESSAGE_NULL);
        EXPECT_EQ(pattern_count_wrong(buf, &l, (unsigned)tag), 0);
    }
}

static void test_proc_null(void)
{
    MPI_Message m = MPI_MESSAGE_NULL;
    MPI_Status s;
    MPI_Request r;
    int flag = 0, count = -1, x = 5;
    MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &s);
    EXPECT(s.MPI_SOURCE == MPI_PROC_NULL && s.MPI_TAG == MPI_ANY_TAG);
    MPI_Iprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &s);
    EXPECT_EQ(flag, 1);
    MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &m, &s);
    EXPECT(m == MPI_MESSAGE_NO_PROC);
    MPI_Mrecv(&x, 1, MPI_INT, &m, &s);
    MPI_Get_count(&s, MPI_INT, &count);
    EXPECT(m == MPI_MESSAGE_NULL && s.MPI_SOURCE == MPI_PROC_NULL && count == 0 && x == 5);
    MPI_Improbe(MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &m, MPI_STATUS_IGNORE);
    EXPECT(flag == 1 && m == MPI_MESSAGE_NO_PROC);
    MPI_Imrecv(&x, 1, MPI_INT, &m, &r);
    MPI_Wait(&r, &s);
    EXPECT_EQ(s.MPI_SOURCE, MPI_PROC_NULL);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    if (mpitest_rank == 1)
        send_messages(4);
    if (mpitest_rank == 0) {
        test_probe(1);
        test_probe(MPI_ANY_SOURCE);
        test_matched_probe(1);
        test_matched_probe(MPI_ANY_SOURCE);
    }
    test_proc_null();
    return mpitest_end();
}
