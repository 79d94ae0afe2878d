/* t_order.c: the last byte of an RDMA WRITE is stored last: a program that polls the last byte finds the
 * message complete. Also with memory that is itself shared (a memfd), into which the sender stores
 * directly.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "vt.h"
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

/* The two sides take turns, and on a loaded machine each turn waits for the scheduler; so a turn has many
 * writes. */
#define TURNS      200
#define BATCH      16
#define WRITE_ROOM 4096 /* bytes of buffer per write */

static void wait_for(volatile unsigned char *p, unsigned char want)
{
    unsigned spins = 0;
    while (__atomic_load_n(p, __ATOMIC_ACQUIRE) != want)
        if (++spins % 4096 == 0)
            sched_yield();
}

struct write_shape {
    uint32_t length;
    unsigned char mark;
};

static struct write_shape compute_write_shape(unsigned turn, unsigned k)
{
    const unsigned i = turn * BATCH + k;
    return (struct write_shape){1 + i * 37 % 3000, (unsigned char)(1 + i % 250)};
}

static void write_batch(struct vt *t, struct vt_qp *q, unsigned char *buf, struct ibv_mr *mr, unsigned turn,
                        const struct vt_addr *to)
{
    for (unsigned k = 0; k < BATCH; k++) {
        const struct write_shape p = compute_write_shape(turn, k);
        memset(buf + k * WRITE_ROOM, p.mark, p.length);
        struct ibv_sge s = {(uintptr_t)buf + k * WRITE_ROOM, p.length, mr->lkey};
        struct ibv_send_wr wr = {.sg_list = &s,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_WRITE,
                                 .send_flags = IBV_SEND_SIGNALED},
                           *bad;
        wr.wr.rdma.remote_addr = to->buf + (BATCH + k) * WRITE_ROOM;
        wr.wr.rdma.rkey = to->rkey;
        CHECK(!ibv_post_send(q->qp, &wr, &bad));
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
    }
}

static void expect_batch(unsigned char *in, unsigned turn)
{
    for (unsigned k = 0; k < BATCH; k++, in += WRITE_ROOM) {
        const struct write_shape p = compute_write_shape(turn, k);
        wait_for(in + p.length - 1, p.mark);
        for (uint32_t i = 0; i < p.length; i++)
            CHECK(in[i] == p.mark, "turn %u: byte %u of %u was stored after the last byte", turn, i,
                  p.length);
        memset(in, 0, p.length);
    }
}

static void write_and_check_in_turn(struct vt *t, struct vt_qp *q, unsigned char *buf, struct ibv_mr *mr)
{
    struct vt_addr mine = {.rkey = mr->rkey, .buf = (uintptr_t)buf}, theirs;
    vt_exchange(t, &mine, &theirs, sizeof(mine));
    for (unsigned turn = 0; turn < 2 * TURNS; turn++) {
        if (turn % 2 == (unsigned)t->side)
            write_batch(t, q, buf, mr, turn, &theirs);
        else
            expect_batch(buf + BATCH * WRITE_ROOM, turn);
    }
}

static void run_test(struct vt *t)
{
    struct vt_qp q;
    if (t->rxe)
        vt_skip("soft-RoCE stores the bytes of a packet in any order");
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &q);
    write_and_check_in_turn(t, &q, t->buf, t->mr);
    int fd = memfd_create("verbs-test", MFD_CLOEXEC);
    CHECK(fd >= 0 && !ftruncate(fd, 1 << 20));
    unsigned char *shared = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(shared != MAP_FAILED);
    struct ibv_mr *mr = ibv_reg_mr(t->pd, shared + 100, (1 << 20) - 100, ALL_ACCESS);
    CHECK(mr);
    close(fd);
    write_and_check_in_turn(t, &q, shared + 100, mr);
    vt_sync(t);
    CHECK(!ibv_dereg_mr(mr));
    munmap(shared, 1 << 20);
    vt_qp_close(&q);
}

int main(void)
{
    return vt_run(run_test);
}
