/* fuzz_wire.c: garbage on the wire: random bytes, cut-off frames, well-formed frames with senseless contents,
 * sent to the sockets of a process at work, by a stranger and by a member on several connections that stall
 * and go on while the memory they write to is deregistered and unmapped. The process must go on working, its
 * other connections untouched, and memory it did not offer unchanged.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "fabric/fabric.h"
#include "wire_client.h"
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS 400
#define GUARD  (6u << 20)

static uint64_t rng = 0x1234567;
static struct fabric fab;

static uint32_t wire_random(void)
{
    return (uint32_t)(rng_next(&rng) >> 32);
}

static struct sockaddr_in wire_target(uint32_t qpn)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_addr = fab.port[0].addr[0],
                                .sin_port = htons((uint16_t)(fab.base_of[0] + (qpn >> 14)))};
}

static void well_formed(uint8_t *p, const struct vt_qp *q, bool datagram)
{
    static const uint8_t ops[] = {IBV_WR_SEND,       IBV_WR_SEND_WITH_IMM,
                                  IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
                                  IBV_WR_RDMA_READ,  IBV_WR_ATOMIC_FETCH_AND_ADD};
    struct frame f = {
        .type = (uint8_t)(datagram && wire_random() % 4 ? FRAME_DATAGRAM_DATA
                                                        : 1 + wire_random() % (FRAME_TYPES - 1)),
        .flags = (uint8_t)(wire_random() % 4),
        .opcode = ops[wire_random() % 6],
        .qp_type = (uint8_t)(datagram ? IBV_QPT_UD : IBV_QPT_RC),
        .dst_qpn = wire_random() % 4 ? q->peer.qpn : wire_random() & 0xffffff,
        .src_qpn = wire_random() % 4 ? q->me.qpn : wire_random() & 0xffffff,
        .seq = wire_random() % 2 ? (q->me.psn + wire_random() % 8) & 0xffffff : wire_random() & 0xffffff,
        .rkey = wire_random(),
        .raddr = q->peer.buf + GUARD,
        .slid = q->me.lid,
        .dlid = q->peer.lid,
        .arg = wire_random() % 8,
        .imm = wire_random()};
    f.total = f.type == FRAME_ATOMIC ? 16 : f.type == FRAME_ATOMIC_RESULT ? 8 : wire_random() % 2000;
    f.length = f.type == FRAME_READ || f.type == FRAME_ACK || f.type == FRAME_NAK ? 0 : f.total;
    if (f.type == FRAME_ACK || f.type == FRAME_NAK || f.type >= FRAME_HELLO)
        f.total = f.length = 0;
    if (f.type == FRAME_SWITCH) { /* packets to and from the switch that nobody requested */
        f.qp_type = IBV_QPT_UD;
        f.opcode = (uint8_t)(1 + wire_random() % 12);
        f.arg = wire_random() % 129;
    }
    frame_encode(&f, (uint32_t)fab.id, p);
}

static void wire_attack(const struct vt_qp *q)
{
    struct sockaddr_in to = wire_target(q->peer.qpn);
    uint8_t buf[4096];
    int udp = socket(AF_INET, SOCK_DGRAM, 0);
    for (int i = 0; i < ROUNDS; i++) {
        int tcp = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(!connect(tcp, (struct sockaddr *)&to, sizeof(to)));
        for (unsigned k = 0, frames = 1 + wire_random() % 5; k < frames; k++) {
            for (unsigned b = 0; b < sizeof(buf); b++)
                buf[b] = (uint8_t)wire_random();
            if (wire_random() % 4)
                well_formed(buf, q, false);
            if (send(tcp, buf, 1 + wire_random() % sizeof(buf), MSG_NOSIGNAL) < 0)
                break; /* it hung up on us: quite right */
            if (wire_random() % 3)
                well_formed(buf, q, true);
            sendto(udp, buf, wire_random() % sizeof(buf), 0, (struct sockaddr *)&to, sizeof(to));
        }
        close(tcp);
    }
    close(udp);
}

#define LINES  6
#define STORMS 40
#define REGION (1u << 20)

/* One connection of the member that means harm, and what is left of the frame it has begun. */
struct line {
    int fd;
    size_t left;
};

static bool some_bytes(struct line *l, int flags)
{
    static uint8_t junk[65536];
    memset(junk, 0x77, sizeof(junk));
    size_t n = 1 + wire_random() % sizeof(junk);
    n = n < l->left ? n : l->left;
    ssize_t r = send(l->fd, junk, n, MSG_NOSIGNAL | flags);
    if (r >= 0)
        l->left -= (size_t)r;
    return r >= 0;
}

static void begin_frame(struct line *l, const struct vt_qp *q, uint64_t at, uint32_t rkey, bool rightly)
{
    struct frame f = wc_frame(q, rightly || wire_random() % 4 ? FRAME_DATA : FRAME_READ, wire_random() % 3);
    uint8_t head[FRAME_BYTES];
    f.rkey = rightly || wire_random() % 8 ? rkey : wire_random();
    f.raddr = at + wire_random() % 1000;
    f.total = 1 + wire_random() % (REGION - 1000);
    f.length = f.type == FRAME_READ ? 0 : f.total < FRAME_SEGMENT ? f.total : FRAME_SEGMENT;
    f.seq = rightly ? q->me.psn & 0xffffff : f.seq;
    frame_encode(&f, (uint32_t)fab.id, head);
    if (send(l->fd, head, sizeof(head), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(head))
        l->left = f.length;
}

/* Side 0 takes the region away in the middle of it. */
static void wire_many_messages(struct vt *t)
{
    struct vt_qp q;
    uint64_t mine[2] = {0}, theirs[2];
    unsigned char *p = NULL;
    struct ibv_mr *mr = NULL;
    vt_qp_make(t, vt_defaults(IBV_QPT_RC), &q);
    if (t->side == 0) {
        p = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(p != MAP_FAILED && (mr = ibv_reg_mr(t->pd, p, REGION, ALL_ACCESS)));
        mine[0] = (uintptr_t)p;
        mine[1] = mr->rkey;
    }
    vt_swap(t, mine, theirs, sizeof(mine));
    if (t->side == 0) {
        vt_sync(t);
        const volatile unsigned char *some = p + 1000; /* where every write begins or goes on */
        for (unsigned i = 100000; i && !*some; i--)
            sched_yield();
        CHECK(!ibv_dereg_mr(mr));
        memset(p, 0x66, REGION);
    } else {
        struct line lines[LINES];
        for (unsigned i = 0; i < LINES; i++)
            lines[i] = (struct line){wc_greet(&fab, &q), 0};
        for (unsigned i = 0; i < LINES; i++) {
            begin_frame(&lines[i], &q, theirs[0], (uint32_t)theirs[1], true);
            some_bytes(&lines[i], MSG_DONTWAIT);
        }
        vt_sync(t);
        for (unsigned i = 0; i < 200; i++) {
            struct line *l = &lines[wire_random() % LINES];
            if (l->left)
                some_bytes(l, MSG_DONTWAIT);
            else
                begin_frame(l, &q, theirs[0], (uint32_t)theirs[1], false);
        }
        for (unsigned i = 0; i < LINES; i++) {
            /* To the end of the frame, and until it has been read. */
            while (lines[i].left && some_bytes(&lines[i], 0))
                ;
            wc_ping(&fab, lines[i].fd, &q);
            close(lines[i].fd);
        }
    }
    vt_sync(t);
    for (size_t i = 0; t->side == 0 && i < REGION; i++)
        CHECK(p[i] == 0x66, "byte %zu was written after ibv_dereg_mr", i);
    if (t->side == 0)
        CHECK(!munmap(p, REGION));
    vt_qp_end(&q);
}

static void wire_exchange(struct vt *t, struct vt_qp *q, unsigned seed)
{
    if (t->side == 0)
        vt_recv(q, t, 3, 0, 1u << 20);
    vt_sync(t);
    if (t->side == 1) {
        vt_fill(t->buf, 600000, seed);
        CHECK(!vt_post(q, t, IBV_WR_SEND, 1, 0, 600000, 0, IBV_SEND_SIGNALED));
        vt_wc(t->cq, IBV_WC_SUCCESS);
    } else {
        CHECK(vt_wc(t->cq, IBV_WC_SUCCESS).byte_len == 600000);
        vt_expect(t->buf, 600000, seed, "beside the garbage");
    }
    vt_sync(t);
}

static void wire_run_test(struct vt *t)
{
    struct vt_qp good, prey;
    wc_setup(&fab);
    vt_qp_make(t, vt_defaults(IBV_QPT_RC), &good);
    vt_qp_make(t, vt_defaults(IBV_QPT_RC), &prey);
    memset(t->buf + GUARD, 0x77, 1u << 20);
    for (int round = 0; round < 2; round++) {
        wire_exchange(t, &good, 1 + (unsigned)round);
        if (t->side == 1 && !round)
            wire_attack(&prey);
        for (int i = 0; i < STORMS && !round; i++)
            wire_many_messages(t);
        vt_sync(t);
    }
    for (size_t i = 0; i < 1u << 20; i++)
        CHECK(t->buf[GUARD + i] == 0x77, "byte %zu was written without a key", i);
    vt_qp_end(&prey);
    vt_qp_end(&good);
    fabric_free(&fab);
}

int main(void)
{
    return vt_run(wire_run_test);
}
