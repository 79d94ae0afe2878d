/* post.c: posting requests and receiving messages on the connections of net.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "net.h"

enum { GRH = 40, QKEY = 0x11111111 };

static volatile _Atomic uint64_t *post_number_word(const char *at)
{
    return (volatile _Atomic uint64_t *)(uintptr_t)at;
}

void logp_store_number(struct logp_net *n, size_t bytes, uint64_t number)
{
    memcpy(n->out + bytes - sizeof(number), &number, sizeof(number));
}

void logp_prepare_request(struct logp_net *n, struct logp_link *l, const struct logp_verb *v, size_t bytes,
                          struct logp_request *out)
{
    static const enum ibv_wr_opcode codes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                               IBV_WR_ATOMIC_FETCH_AND_ADD};
    const bool fetches = v->how == LOGP_READ || v->how == LOGP_ATOMIC;
    *out = (struct logp_request){
        .sge = {.addr = (uintptr_t)(fetches ? n->sink : n->out),
                .length = (uint32_t)bytes,
                .lkey = n->mr->lkey},
        .wr = {.num_sge = 1,
               .opcode = codes[v->how],
               .send_flags = IBV_SEND_SIGNALED | (v->is_inline ? (unsigned)IBV_SEND_INLINE : 0)}};
    if (v->how == LOGP_ATOMIC) {
        out->wr.wr.atomic.remote_addr = l->far.slot + LOGP_SLOT - 64;
        out->wr.wr.atomic.rkey = l->far.rkey;
        out->wr.wr.atomic.compare_add = 1;
    } else if (v->how != LOGP_SEND) {
        out->wr.wr.rdma.remote_addr = l->far.slot;
        out->wr.wr.rdma.rkey = l->far.rkey;
    } else if (v->type == LOGP_UD) {
        out->wr.wr.ud.ah = l->ah;
        out->wr.wr.ud.remote_qpn = l->far.qpn[LOGP_UD];
        out->wr.wr.ud.remote_qkey = QKEY;
    }
}

void logp_post_requests(struct logp_net *n, struct logp_link *l, const struct logp_verb *v,
                        struct logp_request *r)
{
    struct ibv_send_wr *bad;
    (void)n;
    r->wr.sg_list = &r->sge;
    if (ibv_post_send(l->qp[v->type], &r->wr, &bad) != 0)
        logp_abort_job("the adapter refused a send request");
}

void logp_await_completions(struct logp_net *n, int completions)
{
    struct ibv_wc wc[16];
    struct logp_polling patience = {0};
    while (completions > 0) {
        int got = ibv_poll_cq(n->sent, completions < 16 ? completions : 16, wc);
        if (got == 0) {
            logp_pause_polling(&patience);
            continue;
        }
        if (got < 0)
            logp_abort_job("the completion queue cannot be polled");
        for (int i = 0; i < got; i++)
            if (wc[i].status != IBV_WC_SUCCESS)
                logp_abort_job(n->verbs.wc_status_str(wc[i].status));
        completions -= got;
        patience = (struct logp_polling){0};
    }
}

/* The work-request number of a receive encodes its link and its type. */
void logp_post_receive(struct logp_net *n, struct logp_link *l, enum logp_type t)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)(t == LOGP_UD ? n->sink : l->slot), .length = LOGP_SLOT - 64, .lkey = n->mr->lkey};
    struct ibv_recv_wr *bad,
        wr = {.wr_id = (uint64_t)(l - n->link) * LOGP_TYPES + (uint64_t)t, .sg_list = &sge, .num_sge = 1};
    if (ibv_post_recv(l->qp[t], &wr, &bad) != 0)
        logp_abort_job("the adapter refused a receive request");
}

static struct logp_link *post_poll_queue(struct logp_net *n)
{
    struct ibv_wc wc;
    int got = ibv_poll_cq(n->received, 1, &wc);
    if (got == 0)
        return NULL;
    if (got < 0 || wc.status != IBV_WC_SUCCESS)
        logp_abort_job(got < 0 ? "the completion queue cannot be polled" : n->verbs.wc_status_str(wc.status));
    struct logp_link *l = &n->link[wc.wr_id / LOGP_TYPES];
    logp_post_receive(n, l, (enum logp_type)(wc.wr_id % LOGP_TYPES));
    l->last_received++;
    return l;
}

struct logp_link *logp_poll_message(struct logp_net *n, const struct logp_verb *v, size_t bytes)
{
    if (v->how == LOGP_SEND)
        return post_poll_queue(n);
    for (int i = 0; i < n->links; i++) {
        struct logp_link *l = &n->link[i];
        if (atomic_load_explicit(post_number_word(l->slot + bytes - 8), memory_order_acquire) ==
            l->last_received + 1) {
            l->last_received++;
            return l;
        }
    }
    return NULL;
}

void logp_report_done(struct logp_net *n, struct logp_link *l, uint64_t number)
{
    struct ibv_sge sge = {.addr = (uintptr_t)&number, .length = sizeof(number)};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_RDMA_WRITE,
                                   .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE};
    wr.wr.rdma.remote_addr = l->far.slot + LOGP_SLOT;
    wr.wr.rdma.rkey = l->far.rkey;
    if (ibv_post_send(l->qp[LOGP_RC], &wr, &bad) != 0)
        logp_abort_job("the adapter refused a send request");
    logp_await_completions(n, 1);
}

bool logp_is_done(const struct logp_link *l, uint64_t number)
{
    return atomic_load_explicit(post_number_word(l->slot + LOGP_SLOT), memory_order_acquire) == number;
}
