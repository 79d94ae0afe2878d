/* t_order.c: the last byte of an RDMA WRITE is stored last: a program that polls it finds the rest of the
 * message there. Also over memory that is itself shared (a memfd), where stores go straight to the peer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "vt.h"
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROUNDS 3000

static void wait_for(volatile unsigned char *p, unsigned char want)
{
    unsigned spins = 0;
    while (__atomic_load_n(p, __ATOMIC_ACQUIRE) != want)
        if (++spins % 4096 == 0)
            sched_yield();
}

static void ping_pong(struct vt *t, struct vt_qp *q, unsigned char *buf, struct ibv_mr *mr)
{
    struct vt_addr mine = {.rkey = mr->rkey, .buf = (uintptr_t)buf}, theirs;
    vt_swap(t, &mine, &theirs, sizeof(mine));
    unsigned char *in = buf + 65536;
    for (unsigned i = 1; i <= ROUNDS; i++) {
        uint32_t n = 1 + i * 37 % 3000;
        unsigned char mark = (unsigned char)(1 + i % 250);
        for (int turn = 0; turn < 2; turn++) {
            if (turn == t->side) {
                memset(buf, mark, n);
                struct ibv_sge s = {(uintptr_t)buf, n, mr->lkey};
                struct ibv_send_wr wr = {.sg_list = &s,
                                         .num_sge = 1,
                                         .opcode = IBV_WR_RDMA_WRITE,
                                         .send_flags = IBV_SEND_SIGNALED},
                                   *bad;
                wr.wr.rdma.remote_addr = theirs.buf + 65536;
                wr.wr.rdma.rkey = theirs.rkey;
                CHECK(!ibv_post_send(q->qp, &wr, &bad));
                vt_wc(t->cq, IBV_WC_SUCCESS);
            } else {
                wait_for(in + n - 1, mark);
                for (uint32_t k = 0; k < n; k++)
                    CHECK(in[k] == mark, "round %u: byte %u of %u came after the last", i, k, n);
                memset(in, 0, n);
            }
        }
    }
}

static void test(struct vt *t)
{
    struct vt_qp q;
    if (t->rxe)
        vt_skip("soft-RoCE stores the bytes of a packet in any order");
    vt_qp_make(t, vt_defaults(IBV_QPT_RC), &q);
    ping_pong(t, &q, t->buf, t->mr);
    int fd = memfd_create("verbs-test", MFD_CLOEXEC);
    CHECK(fd >= 0 && !ftruncate(fd, 1 << 20));
    unsigned char *shared = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(shared != MAP_FAILED);
    struct ibv_mr *mr = ibv_reg_mr(t->pd, shared + 100, (1 << 20) - 100, ALL_ACCESS);
    CHECK(mr);
    close(fd);
    ping_pong(t, &q, shared + 100, mr);
    vt_sync(t);
    CHECK(!ibv_dereg_mr(mr));
    munmap(shared, 1 << 20);
    vt_qp_end(&q);
}

int main(void)
{
    return vt_run(test);
}
