/* qp.c: moves queue pairs of all kinds to the states in which they receive and send.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/tunable.h"
#include "net/ib/ib.h"

static TUNABLE_INT(timeout, "IB_TIMEOUT", 14, 1, 31,
                   "How long the adapter waits for an acknowledgement before it repeats a packet: 4 "
                   "microseconds times two to this power (14: 67 ms).");
static TUNABLE_INT(retries, "IB_RETRIES", 6, 0, 7,
                   "How often the adapter repeats a packet that is not acknowledged before the connection "
                   "fails. On soft-RoCE 7 means for ever.");

#define RNR_TIMER    1 /* code for 10 microseconds: pause before a retry if there is no receive buffer */
#define RNR_FOR_EVER 7

/* ibv_modify_qp returns the error; not all providers also set errno. */
static int modify_qp(const struct ib_device *d, struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
    const int rc = d->verbs.modify_qp(qp, a, mask);
    if (rc > 0)
        errno = rc;
    return rc == 0 ? 0 : -1;
}

int ib_qp_init(const struct ib_device *d, struct ibv_qp *qp)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .pkey_index = d->pkey_index,
                            .port_num = d->port,
                            .qp_access_flags = (unsigned)ib_device_access_flags(d)};
    return modify_qp(d, qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

/* Moves a UD queue pair to the states in which it receives and sends. */
int ib_qp_start_datagrams(const struct ib_device *d, struct ibv_qp *qp, uint32_t qkey)
{
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .pkey_index = d->pkey_index, .port_num = d->port, .qkey = qkey};
    int rc = modify_qp(d, qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    a.qp_state = IBV_QPS_RTR;
    rc = rc ? rc : modify_qp(d, qp, &a, IBV_QP_STATE);
    a.qp_state = IBV_QPS_RTS;
    return rc ? rc : modify_qp(d, qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

int ib_qp_connect(const struct ib_device *d, struct ibv_qp *qp, uint32_t my_psn, const struct ib_address *to,
                  uint32_t qpn, uint32_t psn, uint32_t rd_atomic, int service_level)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = (enum ibv_mtu)MIN(to->mtu, d->address.mtu),
                            .dest_qp_num = qpn,
                            .rq_psn = psn,
                            .max_dest_rd_atomic = (uint8_t)MIN(d->attr.max_qp_rd_atom, 16),
                            .min_rnr_timer = RNR_TIMER};
    ib_device_fill_route(d, to, &a.ah_attr);
    if (service_level != IB_SERVICE_LEVEL_DEFAULT)
        a.ah_attr.sl = (uint8_t)service_level;
    const int receives =
        qp->qp_type == IBV_QPT_XRC_SEND ? 0 : IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    int rc = modify_qp(
        d, qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | receives);
    if (qp->qp_type == IBV_QPT_XRC_RECV)
        return rc;
    struct ibv_qp_attr b = {.qp_state = IBV_QPS_RTS,
                            .timeout = (uint8_t)timeout.value,
                            .retry_cnt = (uint8_t)retries.value,
                            .rnr_retry = RNR_FOR_EVER,
                            .sq_psn = my_psn,
                            .max_rd_atomic =
                                (uint8_t)MIN(rd_atomic, (uint32_t)MIN(d->attr.max_qp_init_rd_atom, 16))};
    if (rc == 0)
        rc = modify_qp(d, qp, &b,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC);
    return rc;
}
