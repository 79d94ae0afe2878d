/* t_post_ex.c: posting by ibv_wr_*: every operation of a reliable connection, single and in lists, inline
 * data, gathered data, and a list that is aborted.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "vt.h"
#include <arpa/inet.h>
#include <errno.h>

#define OPS                                                                                              \
    (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE |                    \
     IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
     IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

enum { FROM = 0, WORD = 4096, BACK = 8192, INTO = 16384 }; /* offsets in the buffer */

static struct ibv_qp_ex *start_request(struct ibv_qp_ex *x, uint64_t id)
{
    x->wr_id = id;
    x->wr_flags = IBV_SEND_SIGNALED;
    return x;
}

static void set_data(struct ibv_qp_ex *x, struct vt *t, size_t off, uint32_t len)
{
    ibv_wr_set_sge(x, t->mr->lkey, (uintptr_t)t->buf + off, len);
}

static void complete_list(struct ibv_qp_ex *x, struct vt *t, uint64_t first, unsigned count)
{
    int rc = ibv_wr_complete(x);
    CHECK(!rc, "ibv_wr_complete: %s", strerror(rc));
    for (unsigned i = 0; i < count; i++) {
        struct ibv_wc wc = vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        CHECK(wc.wr_id == first + i, "completion of request %lu is out of order", (unsigned long)wc.wr_id);
    }
}

/* Writes, reads and atomics, five requests in one list. */
static void test_one_sided(struct vt *t, struct vt_qp *q, struct ibv_qp_ex *x)
{
    const uint64_t word = q->peer.buf + WORD;
    ibv_wr_start(x);
    ibv_wr_rdma_write(start_request(x, 10), q->peer.rkey, q->peer.buf + INTO);
    set_data(x, t, FROM, 300);
    ibv_wr_rdma_write_imm(start_request(x, 11), q->peer.rkey, q->peer.buf + INTO + 300, htonl(77));
    set_data(x, t, FROM + 300, 200);
    ibv_wr_rdma_read(start_request(x, 12), q->peer.rkey, q->peer.buf + INTO);
    set_data(x, t, BACK, 500);
    ibv_wr_atomic_fetch_add(start_request(x, 13), q->peer.rkey, word, 5);
    set_data(x, t, WORD + 8, 8);
    ibv_wr_atomic_cmp_swp(start_request(x, 14), q->peer.rkey, word, 105, 42);
    set_data(x, t, WORD + 16, 8);
    complete_list(x, t, 10, 5);
    vt_expect_bytes(t->buf + BACK, 500, 3, "what was written, read back");
    uint64_t found[2];
    memcpy(found, t->buf + WORD + 8, sizeof(found));
    CHECK(found[0] == 100 && found[1] == 105, "the atomics returned %lu and %lu, expected 100 and 105",
          (unsigned long)found[0], (unsigned long)found[1]);
}

/* Sends: from one piece, with immediate data, inline, gathered from two pieces. */
static void test_sends(struct vt *t, struct ibv_qp_ex *x)
{
    const struct ibv_sge pieces[2] = {{(uintptr_t)t->buf + FROM, 100, t->mr->lkey},
                                      {(uintptr_t)t->buf + FROM + 100, 60, t->mr->lkey}};
    const struct ibv_data_buf parts[2] = {{t->buf + FROM, 10}, {t->buf + FROM + 10, 20}};
    ibv_wr_start(x);
    ibv_wr_send(start_request(x, 20));
    set_data(x, t, FROM, 160);
    ibv_wr_send_imm(start_request(x, 21), htonl(99));
    ibv_wr_set_sge_list(x, 2, pieces);
    ibv_wr_send(start_request(x, 22));
    ibv_wr_set_inline_data(x, t->buf + FROM, 30);
    ibv_wr_send(start_request(x, 23));
    ibv_wr_set_inline_data_list(x, 2, parts);
    complete_list(x, t, 20, 4);
    /* An aborted list posts nothing. */
    ibv_wr_start(x);
    ibv_wr_send(start_request(x, 30));
    set_data(x, t, FROM, 8);
    ibv_wr_abort(x);
    CHECK(vt_has_no_completion(t->cq, 50), "a completion of an aborted list");
}

static void receive_and_check(struct vt *t, struct vt_qp *q)
{
    struct ibv_wc wc = vt_expect_completion(t->cq, IBV_WC_SUCCESS);
    CHECK(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && ntohl(wc.imm_data) == 77 && wc.byte_len == 200);
    static const uint32_t sizes[4] = {160, 160, 30, 30};
    for (uint64_t i = 1; i <= 4; i++) {
        wc = vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        CHECK(wc.wr_id == i && wc.byte_len == sizes[i - 1], "receive %lu has %u bytes",
              (unsigned long)wc.wr_id, wc.byte_len);
        CHECK(!!(wc.wc_flags & IBV_WC_WITH_IMM) == (i == 2) && (i != 2 || ntohl(wc.imm_data) == 99));
        vt_expect_bytes(t->buf + BACK + 1024 * i, wc.byte_len, 3, "received");
    }
    vt_sync(t); /* the other side has its read and atomic results */
    uint64_t word;
    memcpy(&word, t->buf + WORD, sizeof(word));
    CHECK(word == 42, "the word is %lu, expected 42", (unsigned long)word);
    vt_expect_bytes(t->buf + INTO, 500, 3, "written");
    (void)q;
}

static void run_test(struct vt *t)
{
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    struct vt_qp q;
    const uint64_t start = 100;
    o.send_ops = OPS;
    o.sge = 2;
    vt_qp_open(t, o, &q);
    struct ibv_qp_ex *x = ibv_qp_to_qp_ex(q.qp);
    CHECK(x, "cannot create a queue pair for ibv_wr_*");
    memset(t->buf, 0, INTO + 1024);
    if (t->side == 0)
        vt_fill(t->buf + FROM, 500, 3);
    else
        memcpy(t->buf + WORD, &start, sizeof(start));
    for (uint64_t i = 0; t->side == 1 && i <= 4; i++)
        vt_post_receive(&q, t, i, BACK + 1024 * i, 1024);
    vt_sync(t);
    if (t->side == 0) {
        test_one_sided(t, &q, x);
        test_sends(t, x);
        vt_sync(t);
    } else {
        receive_and_check(t, &q);
    }
    vt_qp_close(&q);
}

int main(void)
{
    return vt_run(run_test);
}
