/* fuzz_wire.c: random bytes, truncated frames, and well-formed frames with invalid contents, sent to the
 * sockets of a working process by a process without the key, and by a member on several connections that
 * stall and continue while the target memory is deregistered and unmapped. The process must continue to
 * work, its other connections must be unaffected, and memory that it did not offer must not change.
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

static uint32_t random_bits(void)
{
    return (uint32_t)(rng_next(&rng) >> 32);
}

static struct sockaddr_in target_address(uint32_t qpn)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_addr = fab.port[0].addr[0],
                                .sin_port = htons((uint16_t)(fab.base_of[0] + (qpn >> 14)))};
}

static void make_well_formed_frame(uint8_t *p, const struct vt_qp *q, bool datagram)
{
    static const uint8_t ops[] = {IBV_WR_SEND,       IBV_WR_SEND_WITH_IMM,
                                  IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
                                  IBV_WR_RDMA_READ,  IBV_WR_ATOMIC_FETCH_AND_ADD};
    struct frame f = {
        .type = (uint8_t)(datagram && random_bits() % 4 ? FRAME_DATAGRAM_DATA
                                                        : 1 + random_bits() % (FRAME_TYPES - 1)),
        .flags = (uint8_t)(random_bits() % 4),
        .opcode = ops[random_bits() % 6],
        .qp_type = (uint8_t)(datagram ? IBV_QPT_UD : IBV_QPT_RC),
        .dst_qpn = random_bits() % 4 ? q->peer.qpn : random_bits() & 0xffffff,
        .src_qpn = random_bits() % 4 ? q->me.qpn : random_bits() & 0xffffff,
        .seq = random_bits() % 2 ? (q->me.psn + random_bits() % 8) & 0xffffff : random_bits() & 0xffffff,
        .rkey = random_bits(),
        .raddr = q->peer.buf + GUARD,
        .slid = q->me.lid,
        .dlid = q->peer.lid,
        .arg = random_bits() % 8,
        .imm = random_bits()};
    f.total = f.type == FRAME_ATOMIC ? 16 : f.type == FRAME_ATOMIC_RESULT ? 8 : random_bits() % 2000;
    f.length = f.type == FRAME_READ || f.type == FRAME_ACK || f.type == FRAME_NAK ? 0 : f.total;
    if (f.type == FRAME_ACK || f.type == FRAME_NAK || f.type >= FRAME_HELLO)
        f.total = f.length = 0;
    if (f.type == FRAME_SWITCH) { /* unrequested packets to and from the switch */
        f.qp_type = IBV_QPT_UD;
        f.opcode = (uint8_t)(1 + random_bits() % 12);
        f.arg = random_bits() % 129;
    }
    frame_encode(&f, (uint32_t)fab.id, p);
}

static void send_random_bytes(const struct vt_qp *q)
{
    struct sockaddr_in to = target_address(q->peer.qpn);
    uint8_t buf[4096];
    int udp = socket(AF_INET, SOCK_DGRAM, 0);
    for (int i = 0; i < ROUNDS; i++) {
        int tcp = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(!connect(tcp, (struct sockaddr *)&to, sizeof(to)));
        for (unsigned k = 0, frames = 1 + random_bits() % 5; k < frames; k++) {
            for (unsigned b = 0; b < sizeof(buf); b++)
                buf[b] = (uint8_t)random_bits();
            if (random_bits() % 4)
                make_well_formed_frame(buf, q, false);
            if (send(tcp, buf, 1 + random_bits() % sizeof(buf), MSG_NOSIGNAL) < 0)
                break; /* the process has closed the connection, as it may */
            if (random_bits() % 3)
                make_well_formed_frame(buf, q, true);
            sendto(udp, buf, random_bits() % sizeof(buf), 0, (struct sockaddr *)&to, sizeof(to));
        }
        close(tcp);
    }
    close(udp);
}

#define CONNECTIONS 6
#define STORMS      40
#define REGION      (1u << 20)

/* One connection of the malicious member, and the number of bytes that complete its current frame. */
struct attack_connection {
    int fd;
    size_t left;
};

static bool send_frame_bytes(struct attack_connection *l, int flags)
{
    static uint8_t junk[65536];
    memset(junk, 0x77, sizeof(junk));
    size_t n = 1 + random_bits() % sizeof(junk);
    n = n < l->left ? n : l->left;
    ssize_t r = send(l->fd, junk, n, MSG_NOSIGNAL | flags);
    if (r >= 0)
        l->left -= (size_t)r;
    return r >= 0;
}

static void begin_frame(struct attack_connection *l, const struct vt_qp *q, uint64_t at, uint32_t rkey,
                        bool valid)
{
    struct frame f =
        wire_client_make_frame(q, valid || random_bits() % 4 ? FRAME_DATA : FRAME_READ, random_bits() % 3);
    uint8_t head[FRAME_BYTES];
    f.rkey = valid || random_bits() % 8 ? rkey : random_bits();
    f.raddr = at + random_bits() % 1000;
    f.total = 1 + random_bits() % (REGION - 1000);
    f.length = f.type == FRAME_READ ? 0 : f.total < FRAME_SEGMENT ? f.total : FRAME_SEGMENT;
    f.seq = valid ? q->me.psn & 0xffffff : f.seq;
    frame_encode(&f, (uint32_t)fab.id, head);
    if (send(l->fd, head, sizeof(head), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(head))
        l->left = f.length;
}

/* The malicious member writes over several stalling connections while side 0 deregisters the region. */
static void test_dereg_during_attack(struct vt *t)
{
    struct vt_qp q;
    uint64_t mine[2] = {0}, theirs[2];
    unsigned char *p = NULL;
    struct ibv_mr *mr = NULL;
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &q);
    if (t->side == 0) {
        p = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(p != MAP_FAILED && (mr = ibv_reg_mr(t->pd, p, REGION, ALL_ACCESS)));
        mine[0] = (uintptr_t)p;
        mine[1] = mr->rkey;
    }
    vt_exchange(t, mine, theirs, sizeof(mine));
    if (t->side == 0) {
        vt_sync(t);
        const volatile unsigned char *some = p + 1000; /* every write covers this byte */
        for (unsigned i = 100000; i && !*some; i--)
            sched_yield();
        CHECK(!ibv_dereg_mr(mr));
        memset(p, 0x66, REGION);
    } else {
        struct attack_connection lines[CONNECTIONS];
        for (unsigned i = 0; i < CONNECTIONS; i++)
            lines[i] = (struct attack_connection){wire_client_greet(&fab, &q), 0};
        for (unsigned i = 0; i < CONNECTIONS; i++) {
            begin_frame(&lines[i], &q, theirs[0], (uint32_t)theirs[1], true);
            send_frame_bytes(&lines[i], MSG_DONTWAIT);
        }
        vt_sync(t);
        for (unsigned i = 0; i < 200; i++) {
            struct attack_connection *l = &lines[random_bits() % CONNECTIONS];
            if (l->left)
                send_frame_bytes(l, MSG_DONTWAIT);
            else
                begin_frame(l, &q, theirs[0], (uint32_t)theirs[1], false);
        }
        for (unsigned i = 0; i < CONNECTIONS; i++) {
            /* Completes the frame, and waits until it has been read. */
            while (lines[i].left && send_frame_bytes(&lines[i], 0))
                ;
            wire_client_ping(&fab, lines[i].fd, &q);
            close(lines[i].fd);
        }
    }
    vt_sync(t);
    for (size_t i = 0; t->side == 0 && i < REGION; i++)
        CHECK(p[i] == 0x66, "byte %zu was written after ibv_dereg_mr", i);
    if (t->side == 0)
        CHECK(!munmap(p, REGION));
    vt_qp_close(&q);
}

static void exchange_data(struct vt *t, struct vt_qp *q, unsigned seed)
{
    if (t->side == 0)
        vt_post_receive(q, t, 3, 0, 1u << 20);
    vt_sync(t);
    if (t->side == 1) {
        vt_fill(t->buf, 600000, seed);
        CHECK(!vt_post_request(q, t, IBV_WR_SEND, 1, 0, 600000, 0, IBV_SEND_SIGNALED));
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
    } else {
        CHECK(vt_expect_completion(t->cq, IBV_WC_SUCCESS).byte_len == 600000);
        vt_expect_bytes(t->buf, 600000, seed, "beside the garbage");
    }
    vt_sync(t);
}

static void run_test(struct vt *t)
{
    struct vt_qp good, prey;
    wire_client_setup(&fab);
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &good);
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &prey);
    memset(t->buf + GUARD, 0x77, 1u << 20);
    for (int round = 0; round < 2; round++) {
        exchange_data(t, &good, 1 + (unsigned)round);
        if (t->side == 1 && !round)
            send_random_bytes(&prey);
        for (int i = 0; i < STORMS && !round; i++)
            test_dereg_during_attack(t);
        vt_sync(t);
    }
    for (size_t i = 0; i < 1u << 20; i++)
        CHECK(t->buf[GUARD + i] == 0x77, "byte %zu was written by a process without the key", i);
    vt_qp_close(&prey);
    vt_qp_close(&good);
    fabric_free(&fab);
}

int main(void)
{
    return vt_run(run_test);
}
