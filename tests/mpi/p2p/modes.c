/* modes.c: every send mode, blocking, nonblocking and persistent, to posted and to late receives, with
 * sizes around every threshold, contiguous and with gaps, around a ring of ranks.
 *
 * ranks: 2 1 3
 * also: FISHPLATE_SHM_CMA=0
 * also: FISHPLATE_RENDEZVOUS=rput
 * also: FISHPLATE_RENDEZVOUS=getcqe
 * also: FISHPLATE_RENDEZVOUS=get
 * also: FISHPLATE_RENDEZVOUS=putnr
 * also: FISHPLATE_RENDEZVOUS=put
 * also: FISHPLATE_RENDEZVOUS=split
 * also: FISHPLATE_RENDEZVOUS=r3
 * also: FISHPLATE_SHM_RING=64k FISHPLATE_LAB=SHM_FRAME=1k
 * also: FISHPLATE_EAGER_MAX=64 FISHPLATE_SPIN_US=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "pattern.h"

enum mode { STANDARD, SYNCHRONOUS, READY, BUFFERED, MODES };
enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };

static const size_t sizes[] = {0,     1,     31,    32,    33,     63,           64,    65,
                               1023,  1024,  1025,  4096,  4100,   8192,         16383, 16384,
                               16385, 49148, 49152, 49156, 131072, (1 << 20) + 4};

static int to, from;

typedef int send_fn(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int isend_fn(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static send_fn *const blocking[MODES] = {MPI_Send, MPI_Ssend, MPI_Rsend, MPI_Bsend};
static isend_fn *const nonblocking[MODES] = {MPI_Isend, MPI_Issend, MPI_Irsend, MPI_Ibsend};
static isend_fn *const persistent[MODES] = {MPI_Send_init, MPI_Ssend_init, MPI_Rsend_init, MPI_Bsend_init};

static void check_status(const MPI_Status *s, const struct layout *l, int tag)
{
    int count = -1;
    EXPECT_EQ(s->MPI_SOURCE, from);
    EXPECT_EQ(s->MPI_TAG, tag);
    MPI_Get_count(s, l->type, &count);
    EXPECT_EQ(count, l->count);
}

/* Starts the send of one message in the given mode and form. */
static void start_send(enum mode mode, enum form form, const void *buf, const struct layout *l, int tag,
                       MPI_Request *r)
{
    *r = MPI_REQUEST_NULL;
    if (form == BLOCKING) {
        blocking[mode](buf, l->count, l->type, to, tag, MPI_COMM_WORLD);
    } else if (form == NONBLOCKING) {
        nonblocking[mode](buf, l->count, l->type, to, tag, MPI_COMM_WORLD, r);
    } else {
        persistent[mode](buf, l->count, l->type, to, tag, MPI_COMM_WORLD, r);
        MPI_Start(r);
    }
}

static void finish_send(enum form form, MPI_Request *r)
{
    MPI_Wait(r, MPI_STATUS_IGNORE);
    if (form == PERSISTENT)
        MPI_Request_free(r);
    EXPECT(*r == MPI_REQUEST_NULL);
}

static void send_to_posted_receive(enum mode mode, enum form form, const struct layout *l, char *out,
                                   char *in)
{
    MPI_Request send, recv;
    MPI_Status status;
    int tag = mode * 10 + form;
    memset(in, 0xdd, l->span);
    if (form == PERSISTENT) {
        MPI_Recv_init(in, l->count, l->type, from, tag, MPI_COMM_WORLD, &recv);
        MPI_Start(&recv);
    } else {
        MPI_Irecv(in, l->count, l->type, from, tag, MPI_COMM_WORLD, &recv);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    start_send(mode, form, out, l, tag, &send);
    MPI_Wait(&recv, &status);
    check_status(&status, l, tag);
    EXPECT_EQ(pattern_count_wrong(in, l, (unsigned)from), 0);
    finish_send(form, &send);
    if (form == PERSISTENT)
        MPI_Request_free(&recv);
}

static void send_to_late_receive(enum mode mode, enum form form, const struct layout *l, char *out, char *in)
{
    MPI_Request send;
    MPI_Status status;
    int tag = mode * 10 + form;
    memset(in, 0xdd, l->span);
    start_send(mode, form == BLOCKING ? NONBLOCKING : form, out, l, tag, &send);
    MPI_Probe(from, tag, MPI_COMM_WORLD, &status);
    check_status(&status, l, tag);
    MPI_Recv(in, l->count, l->type, from, tag, MPI_COMM_WORLD, &status);
    check_status(&status, l, tag);
    EXPECT_EQ(pattern_count_wrong(in, l, (unsigned)from), 0);
    finish_send(form, &send);
}

static void test_size(size_t size, int holey, char *out, char *in)
{
    struct layout l = make_layout(size, holey);
    pattern_fill(out, &l, (unsigned)mpitest_rank);
    for (enum mode mode = 0; mode < MODES; mode++)
        for (enum form form = 0; form < FORMS; form++) {
            send_to_posted_receive(mode, form, &l, out, in);
            if (mode != READY)
                send_to_late_receive(mode, form, &l, out, in);
        }
    layout_free(&l);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    size_t room = 3 << 20, size;
    char *out = malloc(room), *in = malloc(room), *buffer = malloc(room);
    void *detached;
    int detached_size;
    to = (mpitest_rank + 1) % mpitest_size;
    from = (mpitest_rank + mpitest_size - 1) % mpitest_size;
    MPI_Buffer_attach(buffer, (int)room);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size = sizes[i];
        /* Blocking synchronous sends around a ring need posted receives: send_to_late_receive cannot use
         * them. */
        test_size(size, 0, out, in);
        if (size % sizeof(int) == 0)
            test_size(size, 1, out, in);
    }
    MPI_Buffer_detach(&detached, &detached_size);
    EXPECT(detached == buffer && detached_size == (int)room);
    free(out);
    free(in);
    free(buffer);
    return mpitest_end();
}
