/* misc.c: other functions of the public library: strings of enumerations, rates, conversions of kernel
 * structures for connection managers, and calls that have no effect in user space or that softib does not
 * support.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "hca/hca.h"
#include <fcntl.h>
#include <infiniband/sa.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

SOFTIB_API const char *ibv_node_type_str(enum ibv_node_type t)
{
    static const char *const names[] = {
        [IBV_NODE_CA] = "InfiniBand channel adapter",
        [IBV_NODE_SWITCH] = "InfiniBand switch",
        [IBV_NODE_ROUTER] = "InfiniBand router",
        [IBV_NODE_RNIC] = "iWARP NIC",
        [IBV_NODE_USNIC] = "usNIC",
        [IBV_NODE_USNIC_UDP] = "usNIC UDP",
        [IBV_NODE_UNSPECIFIED] = "unspecified",
    };
    return (unsigned)t < ARRAY_LEN(names) && names[t] ? names[t] : "unknown";
}

SOFTIB_API const char *ibv_port_state_str(enum ibv_port_state s)
{
    static const char *const names[] = {
        [IBV_PORT_NOP] = "no state change (NOP)",
        [IBV_PORT_DOWN] = "down",
        [IBV_PORT_INIT] = "init",
        [IBV_PORT_ARMED] = "armed",
        [IBV_PORT_ACTIVE] = "active",
        [IBV_PORT_ACTIVE_DEFER] = "active defer",
    };
    return (unsigned)s < ARRAY_LEN(names) ? names[s] : "unknown";
}

SOFTIB_API const char *ibv_event_type_str(enum ibv_event_type e)
{
    static const char *const names[] = {
        [IBV_EVENT_CQ_ERR] = "CQ error",
        [IBV_EVENT_QP_FATAL] = "local work queue catastrophic error",
        [IBV_EVENT_QP_REQ_ERR] = "invalid request local work queue error",
        [IBV_EVENT_QP_ACCESS_ERR] = "local access violation work queue error",
        [IBV_EVENT_COMM_EST] = "communication established",
        [IBV_EVENT_SQ_DRAINED] = "send queue drained",
        [IBV_EVENT_PATH_MIG] = "path migrated",
        [IBV_EVENT_PATH_MIG_ERR] = "path migration request error",
        [IBV_EVENT_DEVICE_FATAL] = "local catastrophic error",
        [IBV_EVENT_PORT_ACTIVE] = "port active",
        [IBV_EVENT_PORT_ERR] = "port error",
        [IBV_EVENT_LID_CHANGE] = "LID change",
        [IBV_EVENT_PKEY_CHANGE] = "P_Key change",
        [IBV_EVENT_SM_CHANGE] = "SM change",
        [IBV_EVENT_SRQ_ERR] = "SRQ catastrophic error",
        [IBV_EVENT_SRQ_LIMIT_REACHED] = "SRQ limit reached",
        [IBV_EVENT_QP_LAST_WQE_REACHED] = "last WQE reached",
        [IBV_EVENT_CLIENT_REREGISTER] = "client reregistration",
        [IBV_EVENT_GID_CHANGE] = "GID table change",
        [IBV_EVENT_WQ_FATAL] = "WQ fatal",
    };
    return (unsigned)e < ARRAY_LEN(names) ? names[e] : "unknown";
}

SOFTIB_API const char *ibv_wc_status_str(enum ibv_wc_status s)
{
    static const char *const names[] = {
        [IBV_WC_SUCCESS] = "success",
        [IBV_WC_LOC_LEN_ERR] = "local length error",
        [IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
        [IBV_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
        [IBV_WC_LOC_PROT_ERR] = "local protection error",
        [IBV_WC_WR_FLUSH_ERR] = "Work Request Flushed Error",
        [IBV_WC_MW_BIND_ERR] = "memory management operation error",
        [IBV_WC_BAD_RESP_ERR] = "bad response error",
        [IBV_WC_LOC_ACCESS_ERR] = "local access error",
        [IBV_WC_REM_INV_REQ_ERR] = "remote invalid request error",
        [IBV_WC_REM_ACCESS_ERR] = "remote access error",
        [IBV_WC_REM_OP_ERR] = "remote operation error",
        [IBV_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
        [IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
        [IBV_WC_LOC_RDD_VIOL_ERR] = "local RDD violation error",
        [IBV_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
        [IBV_WC_REM_ABORT_ERR] = "aborted error",
        [IBV_WC_INV_EECN_ERR] = "invalid EE context number",
        [IBV_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
        [IBV_WC_FATAL_ERR] = "fatal error",
        [IBV_WC_RESP_TIMEOUT_ERR] = "response timeout error",
        [IBV_WC_GENERAL_ERR] = "general error",
        [IBV_WC_TM_ERR] = "TM error",
        [IBV_WC_TM_RNDV_INCOMPLETE] = "TM software rendezvous",
    };
    return (unsigned)s < ARRAY_LEN(names) ? names[s] : "unknown";
}

/* For each rate: its code, units of 2.5 Gbit/s (0: not a multiple), Mbit/s. */
static const struct {
    enum ibv_rate rate;
    int mult, mbps;
} rates[] = {
    {IBV_RATE_2_5_GBPS, 1, 2500},   {IBV_RATE_5_GBPS, 2, 5000},       {IBV_RATE_10_GBPS, 4, 10000},
    {IBV_RATE_20_GBPS, 8, 20000},   {IBV_RATE_30_GBPS, 12, 30000},    {IBV_RATE_40_GBPS, 16, 40000},
    {IBV_RATE_60_GBPS, 24, 60000},  {IBV_RATE_80_GBPS, 32, 80000},    {IBV_RATE_120_GBPS, 48, 120000},
    {IBV_RATE_14_GBPS, 0, 14062},   {IBV_RATE_56_GBPS, 0, 56250},     {IBV_RATE_112_GBPS, 0, 112500},
    {IBV_RATE_168_GBPS, 0, 168750}, {IBV_RATE_25_GBPS, 0, 25781},     {IBV_RATE_100_GBPS, 0, 103125},
    {IBV_RATE_200_GBPS, 0, 206250}, {IBV_RATE_300_GBPS, 0, 309375},   {IBV_RATE_28_GBPS, 0, 28125},
    {IBV_RATE_50_GBPS, 0, 53125},   {IBV_RATE_400_GBPS, 0, 425000},   {IBV_RATE_600_GBPS, 0, 637500},
    {IBV_RATE_800_GBPS, 0, 850000}, {IBV_RATE_1200_GBPS, 0, 1275000},
};

SOFTIB_API int ibv_rate_to_mult(enum ibv_rate r)
{
    for (size_t i = 0; i < ARRAY_LEN(rates); i++)
        if (rates[i].rate == r && rates[i].mult)
            return rates[i].mult;
    return -1;
}

SOFTIB_API enum ibv_rate mult_to_ibv_rate(int mult)
{
    for (size_t i = 0; i < ARRAY_LEN(rates); i++)
        if (rates[i].mult == mult && mult)
            return rates[i].rate;
    return IBV_RATE_MAX;
}

SOFTIB_API int ibv_rate_to_mbps(enum ibv_rate r)
{
    for (size_t i = 0; i < ARRAY_LEN(rates); i++)
        if (rates[i].rate == r)
            return rates[i].mbps;
    return -1;
}

SOFTIB_API enum ibv_rate mbps_to_ibv_rate(int mbps)
{
    for (size_t i = 0; i < ARRAY_LEN(rates); i++)
        if (rates[i].mbps == mbps)
            return rates[i].rate;
    return IBV_RATE_MAX;
}

/* No effect: softib accesses memory by address space, not by physical page, so that a fork does not affect
 * the parent. */
SOFTIB_API int ibv_fork_init(void)
{
    return 0;
}

SOFTIB_API enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}

SOFTIB_API int ibv_dontfork_range(void *base, size_t size)
{
    (void)base, (void)size;
    return 0;
}

SOFTIB_API int ibv_dofork_range(void *base, size_t size)
{
    (void)base, (void)size;
    return 0;
}

SOFTIB_API int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
    char path[512];
    if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path))
        return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, buf, size);
    close(fd);
    if (n > 0 && buf[n - 1] == '\n')
        buf[--n] = 0;
    else if (n >= 0 && (size_t)n < size)
        buf[n] = 0;
    else if (n >= 0)
        n = -1;
    return (int)n;
}

SOFTIB_API int ibv_query_ece(struct ibv_qp *q, struct ibv_ece *e)
{
    (void)q;
    memset(e, 0, sizeof(*e));
    return EOPNOTSUPP;
}

SOFTIB_API int ibv_set_ece(struct ibv_qp *q, struct ibv_ece *e)
{
    (void)q;
    return e->vendor_id ? EINVAL : EOPNOTSUPP;
}

/* The last byte of RDMA data is stored last; other bytes are stored in any order. */
SOFTIB_API int ibv_query_qp_data_in_order(struct ibv_qp *q, enum ibv_wr_opcode op, uint32_t flags)
{
    (void)q, (void)op, (void)flags;
    return 0;
}

SOFTIB_API void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *d, struct ib_uverbs_ah_attr *s)
{
    memset(d, 0, sizeof(*d));
    memcpy(d->grh.dgid.raw, s->grh.dgid, sizeof(d->grh.dgid.raw));
    d->grh.flow_label = s->grh.flow_label;
    d->grh.sgid_index = s->grh.sgid_index;
    d->grh.hop_limit = s->grh.hop_limit;
    d->grh.traffic_class = s->grh.traffic_class;
    d->dlid = s->dlid;
    d->sl = s->sl;
    d->src_path_bits = s->src_path_bits;
    d->static_rate = s->static_rate;
    d->is_global = s->is_global;
    d->port_num = s->port_num;
}

SOFTIB_API void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *d, struct ib_uverbs_qp_attr *s)
{
    memset(d, 0, sizeof(*d));
    d->cur_qp_state = s->cur_qp_state;
    d->path_mtu = s->path_mtu;
    d->path_mig_state = s->path_mig_state;
    d->qkey = s->qkey;
    d->rq_psn = s->rq_psn;
    d->sq_psn = s->sq_psn;
    d->dest_qp_num = s->dest_qp_num;
    d->qp_access_flags = s->qp_access_flags;
    d->cap.max_send_wr = s->max_send_wr;
    d->cap.max_recv_wr = s->max_recv_wr;
    d->cap.max_send_sge = s->max_send_sge;
    d->cap.max_recv_sge = s->max_recv_sge;
    d->cap.max_inline_data = s->max_inline_data;
    ibv_copy_ah_attr_from_kern(&d->ah_attr, &s->ah_attr);
    ibv_copy_ah_attr_from_kern(&d->alt_ah_attr, &s->alt_ah_attr);
    d->pkey_index = s->pkey_index;
    d->alt_pkey_index = s->alt_pkey_index;
    d->en_sqd_async_notify = s->en_sqd_async_notify;
    d->sq_draining = s->sq_draining;
    d->max_rd_atomic = s->max_rd_atomic;
    d->max_dest_rd_atomic = s->max_dest_rd_atomic;
    d->min_rnr_timer = s->min_rnr_timer;
    d->port_num = s->port_num;
    d->timeout = s->timeout;
    d->retry_cnt = s->retry_cnt;
    d->rnr_retry = s->rnr_retry;
    d->alt_port_num = s->alt_port_num;
    d->alt_timeout = s->alt_timeout;
}

SOFTIB_API void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *d, struct ib_user_path_rec *s)
{
    memset(d, 0, sizeof(*d));
    memcpy(d->dgid.raw, s->dgid, sizeof(d->dgid.raw));
    memcpy(d->sgid.raw, s->sgid, sizeof(d->sgid.raw));
    d->dlid = s->dlid;
    d->slid = s->slid;
    d->raw_traffic = (int)s->raw_traffic;
    d->flow_label = s->flow_label;
    d->hop_limit = (uint8_t)s->hop_limit;
    d->traffic_class = s->traffic_class;
    d->reversible = (int)s->reversible;
    d->numb_path = s->numb_path;
    d->pkey = s->pkey;
    d->sl = s->sl;
    d->mtu_selector = s->mtu_selector;
    d->mtu = s->mtu;
    d->rate_selector = s->rate_selector;
    d->rate = s->rate;
    d->packet_life_time_selector = s->packet_life_time_selector;
    d->packet_life_time = s->packet_life_time;
    d->preference = s->preference;
}

SOFTIB_API void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *d, struct ibv_sa_path_rec *s)
{
    memset(d, 0, sizeof(*d));
    memcpy(d->dgid, s->dgid.raw, sizeof(d->dgid));
    memcpy(d->sgid, s->sgid.raw, sizeof(d->sgid));
    d->dlid = s->dlid;
    d->slid = s->slid;
    d->raw_traffic = (uint32_t)s->raw_traffic;
    d->flow_label = s->flow_label;
    d->hop_limit = s->hop_limit;
    d->traffic_class = s->traffic_class;
    d->reversible = (uint32_t)s->reversible;
    d->numb_path = s->numb_path;
    d->pkey = s->pkey;
    d->sl = s->sl;
    d->mtu_selector = s->mtu_selector;
    d->mtu = s->mtu;
    d->rate_selector = s->rate_selector;
    d->rate = s->rate;
    d->packet_life_time_selector = s->packet_life_time_selector;
    d->packet_life_time = s->packet_life_time;
    d->preference = s->preference;
}
