/* qp_state.c: the QP state machine as a table: transitions for each QP type, with required and optional
 * attributes. Transitions that are not in the table return EINVAL.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verbs/verbs.h"

#define RC        1u
#define UC        2u
#define UD        4u
#define XS        8u  /* XRC send QP */
#define XR        16u /* XRC receive QP */
#define RELIABLE  (RC | XS | XR)
#define MIGRATION (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)

struct rule {
    unsigned kinds;
    enum ibv_qp_state from, to;
    int required, optional;
};

static const struct rule rules[] = {
    {RELIABLE | UC, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {UD, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
    {RELIABLE | UC, IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {UD, IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
    {RC | XR, IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
         IBV_QP_MIN_RNR_TIMER,
     MIGRATION | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {UC | XS, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
     MIGRATION | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {XR, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_SQ_PSN,
     MIGRATION | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {RC | XS, IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
     MIGRATION | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, MIGRATION | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
    {UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {RELIABLE, IBV_QPS_RTS, IBV_QPS_RTS, 0,
     MIGRATION | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {UC, IBV_QPS_RTS, IBV_QPS_RTS, 0, MIGRATION | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
    {UD, IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {RELIABLE | UC | UD, IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {RELIABLE, IBV_QPS_SQD, IBV_QPS_RTS, 0,
     MIGRATION | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    {UC, IBV_QPS_SQD, IBV_QPS_RTS, 0, MIGRATION | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
    {UD, IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {RELIABLE, IBV_QPS_SQD, IBV_QPS_SQD, 0,
     MIGRATION | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER},
    {UC, IBV_QPS_SQD, IBV_QPS_SQD, 0, MIGRATION | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {UD, IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {UC | UD, IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_QKEY},
};

bool qp_transition_legal(enum ibv_qp_type t, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
    unsigned kind = t == IBV_QPT_RC         ? RC
                    : t == IBV_QPT_UC       ? UC
                    : t == IBV_QPT_XRC_SEND ? XS
                    : t == IBV_QPT_XRC_RECV ? XR
                                            : UD;
    mask &= ~IBV_QP_STATE;
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
        return !(mask & ~IBV_QP_CUR_STATE);
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        const struct rule *r = &rules[i];
        if (r->kinds & kind && r->from == from && r->to == to)
            return (mask & r->required) == r->required && !(mask & ~(r->required | r->optional));
    }
    return false;
}
