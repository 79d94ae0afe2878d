/* p2p.c: messages of 2^31 - 1, 2^31 and 2^31 + 1 bytes by every large-count function of point-to-point
 * communication, from rank 0 to rank 1.
 *
 * ranks: 2
 * env: FISHPLATE_SHM_CMA=0
 * also: BIG=0
 * also: BIG=1
 * alone: yes
 * nodes: no
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "large/big.h"

static struct big out, in, room;
static MPI_Count n;
#define WORLD MPI_COMM_WORLD

static void check_status(const MPI_Status *s)
{
    MPI_Count count = -1, elements = -1;
    int small = -1;
    MPI_Get_count_c(s, MPI_BYTE, &count);
    EXPECT_EQ(count, n);
    MPI_Get_elements_c(s, MPI_BYTE, &elements);
    EXPECT_EQ(elements, n);
    MPI_Get_elements_x(s, MPI_BYTE, &elements);
    EXPECT_EQ(elements, n);
    MPI_Get_count(s, MPI_BYTE, &small);
    EXPECT_EQ(small, n > INT32_MAX ? MPI_UNDEFINED : n);
    MPI_Get_elements(s, MPI_BYTE, &small);
    EXPECT_EQ(small, n > INT32_MAX ? MPI_UNDEFINED : n);
}

static void wait_and_check(MPI_Request *r)
{
    MPI_Status s;
    MPI_Wait(r, &s);
    if (mpitest_rank == 1)
        check_status(&s);
}

static void start_persistent(MPI_Request *r)
{
    MPI_Start(r);
    wait_and_check(r);
    MPI_Request_free(r);
}

static void attach_buffer(void)
{
    MPI_Buffer_attach_c(room.at, n + MPI_BSEND_OVERHEAD);
}

static void detach_buffer(void)
{
    void *at = NULL;
    MPI_Count size = 0;
    MPI_Buffer_detach_c(&at, &size);
    EXPECT(at == room.at);
    EXPECT_EQ(size, n + MPI_BSEND_OVERHEAD);
}

/* Functions for each kind of send. A ready send needs a posted receive: the other side sends a message
 * when the receive is posted. */
static void send_by_send(void)
{
    MPI_Send_c(out.at, n, MPI_BYTE, 1, 0, WORLD);
}
static void send_by_ssend(void)
{
    MPI_Ssend_c(out.at, n, MPI_BYTE, 1, 0, WORLD);
}
static void send_by_rsend(void)
{
    MPI_Rsend_c(out.at, n, MPI_BYTE, 1, 0, WORLD);
}
static void send_by_isend(void)
{
    MPI_Request r;
    MPI_Isend_c(out.at, n, MPI_BYTE, 1, 0, WORLD, &r);
    wait_and_check(&r);
}
static void send_by_issend(void)
{
    MPI_Request r;
    MPI_Issend_c(out.at, n, MPI_BYTE, 1, 0, WORLD, &r);
    wait_and_check(&r);
}
static void send_by_irsend(void)
{
    MPI_Request r;
    MPI_Irsend_c(out.at, n, MPI_BYTE, 1, 0, WORLD, &r);
    wait_and_check(&r);
}
static void send_by_send_init(void)
{
    MPI_Request r;
    MPI_Send_init_c(out.at, n, MPI_BYTE, 1, 0, WORLD, &r);
    start_persistent(&r);
}
static void send_by_ssend_init(void)
{
    MPI_Request r;
    MPI_Ssend_init_c(out.at, n, MPI_BYTE, 1, 0, WORLD, &r);
    start_persistent(&r);
}
static void send_by_rsend_init(void)
{
    MPI_Request r;
    MPI_Rsend_init_c(out.at, n, MPI_BYTE, 1, 0, WORLD, &r);
    start_persistent(&r);
}
static void send_by_bsend(void)
{
    attach_buffer();
    MPI_Bsend_c(out.at, n, MPI_BYTE, 1, 0, WORLD);
    detach_buffer();
}
static void send_by_ibsend(void)
{
    MPI_Request r;
    void *at = NULL;
    MPI_Count size = 0;
    MPI_Comm_attach_buffer_c(WORLD, room.at, n + MPI_BSEND_OVERHEAD);
    MPI_Ibsend_c(out.at, n, MPI_BYTE, 1, 0, WORLD, &r);
    wait_and_check(&r);
    MPI_Comm_detach_buffer_c(WORLD, &at, &size);
    EXPECT(at == room.at);
    EXPECT_EQ(size, n + MPI_BSEND_OVERHEAD);
}
static void send_by_bsend_init(void)
{
    MPI_Request r;
    attach_buffer();
    MPI_Bsend_init_c(out.at, n, MPI_BYTE, 1, 0, WORLD, &r);
    start_persistent(&r);
    detach_buffer();
}
static void send_by_psend(void)
{
    MPI_Request r;
    MPI_Psend_init(out.at, 1, n, MPI_BYTE, 1, 0, WORLD, MPI_INFO_NULL, &r);
    MPI_Start(&r);
    MPI_Pready(0, r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Request_free(&r);
}
/* One byte is received, so that both counts are checked. */
static void send_by_sendrecv(void)
{
    unsigned char x = 0;
    MPI_Sendrecv_c(out.at, n, MPI_BYTE, 1, 0, &x, 1, MPI_BYTE, 1, 0, WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQ(x, 77);
}
static void expect_replaced(const MPI_Status *s)
{
    MPI_Count count = -1;
    MPI_Get_count_c(s, MPI_BYTE, &count);
    EXPECT_EQ(count, 1);
    EXPECT_EQ(out.at[0], 77);
    EXPECT_EQ(out.at[1], big_value(1));
    out.at[0] = big_value(0);
}
static void send_by_sendrecv_replace(void)
{
    MPI_Status s;
    MPI_Sendrecv_replace_c(out.at, n, MPI_BYTE, 1, 0, 1, 0, WORLD, &s);
    expect_replaced(&s);
}
static void send_by_isendrecv_replace(void)
{
    MPI_Status s;
    MPI_Request r;
    MPI_Isendrecv_replace_c(out.at, n, MPI_BYTE, 1, 0, 1, 0, WORLD, &r);
    MPI_Wait(&r, &s);
    expect_replaced(&s);
}
static void send_by_isendrecv(void)
{
    unsigned char x = 0;
    MPI_Request r;
    MPI_Isendrecv_c(out.at, n, MPI_BYTE, 1, 0, &x, 1, MPI_BYTE, 1, 0, WORLD, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    EXPECT_EQ(x, 77);
}

/* Functions for each kind of receive. */
static void receive_by_recv(void)
{
    MPI_Status s;
    MPI_Recv_c(in.at, n, MPI_BYTE, 0, 0, WORLD, &s);
    check_status(&s);
}
static void receive_by_irecv(void)
{
    MPI_Request r;
    MPI_Irecv_c(in.at, n, MPI_BYTE, 0, 0, WORLD, &r);
    MPI_Send(NULL, 0, MPI_BYTE, 0, 1, WORLD);
    wait_and_check(&r);
}
static void receive_by_recv_init(void)
{
    MPI_Request r;
    MPI_Recv_init_c(in.at, n, MPI_BYTE, 0, 0, WORLD, &r);
    MPI_Start(&r);
    MPI_Send(NULL, 0, MPI_BYTE, 0, 1, WORLD);
    wait_and_check(&r);
    MPI_Request_free(&r);
}
static void receive_by_mrecv(void)
{
    MPI_Message m;
    MPI_Status s;
    MPI_Mprobe(0, 0, WORLD, &m, &s);
    check_status(&s);
    MPI_Mrecv_c(in.at, n, MPI_BYTE, &m, &s);
    check_status(&s);
}
static void receive_by_imrecv(void)
{
    MPI_Message m;
    MPI_Request r;
    MPI_Status s;
    MPI_Mprobe(0, 0, WORLD, &m, &s);
    check_status(&s);
    MPI_Imrecv_c(in.at, n, MPI_BYTE, &m, &r);
    wait_and_check(&r);
}
static void receive_by_precv(void)
{
    MPI_Request r;
    MPI_Precv_init(in.at, 1, n, MPI_BYTE, 0, 0, WORLD, MPI_INFO_NULL, &r);
    MPI_Start(&r);
    wait_and_check(&r);
    MPI_Request_free(&r);
}
static void receive_by_sendrecv(void)
{
    unsigned char x = 77;
    MPI_Status s;
    MPI_Sendrecv_c(&x, 1, MPI_BYTE, 0, 0, in.at, n, MPI_BYTE, 0, 0, WORLD, &s);
    check_status(&s);
}
static void receive_by_isendrecv(void)
{
    unsigned char x = 77;
    MPI_Request r;
    MPI_Isendrecv_c(&x, 1, MPI_BYTE, 0, 0, in.at, n, MPI_BYTE, 0, 0, WORLD, &r);
    wait_and_check(&r);
}

static const struct {
    void (*send)(void), (*receive)(void);
    int ready; /* the receiver first sends a message that its receive is posted */
} calls[] = {
    {send_by_send, receive_by_recv, 0},
    {send_by_ssend, receive_by_mrecv, 0},
    {send_by_rsend, receive_by_irecv, 1},
    {send_by_isend, receive_by_imrecv, 0},
    {send_by_issend, receive_by_recv, 0},
    {send_by_irsend, receive_by_recv_init, 1},
    {send_by_send_init, receive_by_recv, 0},
    {send_by_ssend_init, receive_by_recv, 0},
    {send_by_rsend_init, receive_by_recv_init, 1},
    {send_by_bsend, receive_by_recv, 0},
    {send_by_ibsend, receive_by_recv, 0},
    {send_by_bsend_init, receive_by_recv, 0},
    {send_by_sendrecv, receive_by_sendrecv, 0},
    {send_by_isendrecv, receive_by_isendrecv, 0},
    {send_by_psend, receive_by_precv, 0},
    {send_by_sendrecv_replace, receive_by_isendrecv, 0},
    {send_by_isendrecv_replace, receive_by_sendrecv, 0},
};

int main(int argc, char **argv)
{
    int which;
    big_skip_under_sanitizer();
    mpitest_begin(&argc, &argv);
    n = big_count(&which);
    if (mpitest_rank == 0) {
        out = big_source(n, 0xff);
        room = big_map(n + MPI_BSEND_OVERHEAD);
    } else {
        in = big_target(n);
    }
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (mpitest_rank == 1) {
            big_clear(&in, n);
            calls[i].receive();
            EXPECT_EQ(big_count_wrong(&in, 0, n, 0xff), 0);
            continue;
        }
        if (calls[i].ready)
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, WORLD, MPI_STATUS_IGNORE);
        calls[i].send();
    }
    return mpitest_end();
}
