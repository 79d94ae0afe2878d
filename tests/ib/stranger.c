/* stranger.c: foreign datagrams arrive at the transport's handshake queue pair: random bytes of every length up to
 * the largest packet, and HELLOs of another job. The transport drops and counts them, and the ranks continue. The
 * ranks send the datagrams through verbs devices that they open. They exchange the numbers of their own queue
 * pairs; the queue pair of the transport has the preceding number.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <infiniband/verbs.h>

#include "mpitest.h"

enum { RANKS = 64, QPS = 12, PACKET = 4096 };

/* Must equal the constants of net/ib/hello.c. */
#define QKEY  0x11110000u
#define MAGIC 0x46504942u

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static char packet[PACKET];
static struct ibv_port_attr port;

/* The address of a rank's port: a LID, or a GID in the Ethernet. */
struct address {
    uint32_t qpn, lid;
    union ibv_gid gid;
};

static void open_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    context = list && list[0] ? ibv_open_device(list[0]) : NULL;
    if (!context) {
        fprintf(stderr, "rank %d: no verbs device\n", mpitest_rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    ibv_free_device_list(list);
    EXPECT_EQ(ibv_query_port(context, 1, &port), 0);
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    mr = ibv_reg_mr(pd, packet, PACKET, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_qp_init_attr a = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_UD,
        .cap = {.max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    qp = ibv_create_qp(pd, &a);
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR}, rts = {.qp_state = IBV_QPS_RTS};
    EXPECT_EQ(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
    EXPECT_EQ(ibv_modify_qp(qp, &rtr, IBV_QP_STATE), 0);
    EXPECT_EQ(ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static void close_device(void)
{
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    EXPECT_EQ(ibv_close_device(context), 0);
}

static void send_packet(struct ibv_ah *ah, uint32_t qpn, uint32_t length)
{
    struct ibv_sge piece = {.addr = (uintptr_t)packet, .length = length, .lkey = mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &piece,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = QKEY}},
                       *bad;
    struct ibv_wc wc;
    EXPECT_EQ(ibv_post_send(qp, &wr, &bad), 0);
    while (ibv_poll_cq(cq, 1, &wc) == 0)
        ;
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
}

static void send_foreign_datagrams(struct ibv_ah *ah, uint32_t qpn)
{
    static const uint32_t lengths[] = {1, 40, 136, 137, 176, 1000, PACKET};
    const uint32_t mtu = 128u << port.active_mtu;
    uint32_t words[] = {MAGIC, 1};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        uint32_t length = lengths[i] < mtu ? lengths[i] : mtu;
        memset(packet, (int)(0x80 + i), PACKET);
        send_packet(ah, qpn, length);
        memcpy(packet, words, sizeof(words));
        send_packet(ah, qpn, length);
    }
}

static void send_foreign_to_all_ranks(void)
{
    const int is_ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET, gid_index = is_ethernet ? 3 : 0;
    struct address own = {.qpn = qp->qp_num, .lid = port.lid}, all[RANKS];
    EXPECT(mpitest_size <= RANKS);
    EXPECT_EQ(ibv_query_gid(context, 1, gid_index, &own.gid), 0);
    MPI_Allgather(&own, sizeof(own), MPI_BYTE, all, sizeof(own), MPI_BYTE, MPI_COMM_WORLD);
    for (int rank = 0; rank < mpitest_size; rank++) {
        struct ibv_ah_attr route = {.dlid = (uint16_t)all[rank].lid, .port_num = 1};
        if (is_ethernet) {
            route.is_global = 1;
            route.grh = (struct ibv_global_route){
                .dgid = all[rank].gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 1};
        }
        struct ibv_ah *ah = ibv_create_ah(pd, &route);
        EXPECT(ah != NULL);
        for (uint32_t k = 1; k <= QPS; k++)
            send_foreign_datagrams(ah, all[rank].qpn - k);
        EXPECT_EQ(ibv_destroy_ah(ah), 0);
    }
}

static unsigned long long count_dropped(void)
{
    static MPI_T_pvar_session session;
    static MPI_T_pvar_handle handle;
    static int begun;
    unsigned long long value = 0;
    int index, count;
    if (!begun++) {
        EXPECT_EQ(MPI_T_pvar_get_index("ib_hellos_dropped", MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
        MPI_T_pvar_session_create(&session);
        MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
        MPI_T_pvar_start(session, handle);
    }
    MPI_T_pvar_read(session, handle, &value);
    return value;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    mpitest_begin(&argc, &argv);
    EXPECT_EQ(count_dropped(), 0);
    open_device();
    send_foreign_to_all_ranks();
    for (int round = 0; round < 20; round++) {
        int sum = 0, one = 1;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        EXPECT_EQ(sum, mpitest_size);
    }
    EXPECT(count_dropped() > 0);
    close_device();
    MPI_T_finalize();
    return mpitest_end();
}
