/* vt.h: what every verbs test needs: two processes, each with its device, that exchange addresses over a
 * socket pair; one-line checks that say what they found; QPs brought to work. It knows no particular HCA:
 * VERBS_DEV0 and VERBS_DEV1 name the devices of the two sides, VERBS_GID a GID index where LIDs do not route
 * (RoCE). On softib, VERBS_NODES=2 puts the sides on two nodes and VERBS_NETNS1 moves the second one to
 * another network namespace.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VERBS_TEST_H
#define VERBS_TEST_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(cond, ...)                                        \
    do {                                                        \
        if (!(cond))                                            \
            vt_die(__FILE__, __LINE__, #cond, " " __VA_ARGS__); \
    } while (0)

#define BUF_BYTES (8u << 20)
#define ALL_ACCESS \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

struct vt_addr {
    uint32_t qpn, rkey, psn;
    uint16_t lid;
    uint64_t buf;
    union ibv_gid gid;
};

struct vt {
    int side; /* 0 or 1 */
    int oob;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_port_attr port;
    union ibv_gid gid;
    int gid_index; /* -1: LIDs route */
    bool rxe;      /* the kernel's soft-RoCE: tests/rig/README.md lists the differences */
    struct ibv_cq *cq;
    struct ibv_comp_channel *ch;
    struct ibv_mr *mr;
    unsigned char *buf;
};

struct vt_qp {
    struct ibv_qp *qp;
    struct vt_addr me, peer;
};

struct vt_opts {
    enum ibv_qp_type type;
    uint32_t send_wr, recv_wr, sge, inline_data;
    struct ibv_srq *srq;
    struct ibv_cq *scq, *rcq;
    uint8_t timeout, retry, rnr_retry, rnr_timer;
    int access;
    uint64_t send_ops; /* not 0: a QP for ibv_wr_* */
    bool sig_all, no_connect;
};

void vt_die(const char *file, int line, const char *cond, const char *fmt, ...)
    __attribute__((noreturn, format(printf, 4, 5)));

/* Runs test() in two processes and returns what main should. Exit status 77 of either side means skipped. */
int vt_run(void (*test)(struct vt *t));

void vt_sync(struct vt *t); /* both sides are here */
void vt_swap(struct vt *t, const void *mine, void *theirs, size_t n);

struct vt_opts vt_defaults(enum ibv_qp_type type);
void vt_qp_make(struct vt *t, struct vt_opts o, struct vt_qp *q); /* both sides; connected and ready */
void vt_qp_connect(struct vt *t, struct vt_opts o, struct vt_qp *q);
void vt_qp_init(struct vt *t, struct vt_opts o, struct vt_qp *q);
void vt_qp_end(struct vt_qp *q);
struct ibv_ah *vt_ah(struct vt *t, const struct vt_addr *to);

void vt_recv(struct vt_qp *q, struct vt *t, uint64_t id, size_t off, uint32_t len);
/* One send of any opcode from buf+off; returns what post said. */
int vt_post(struct vt_qp *q, struct vt *t, enum ibv_wr_opcode op, uint64_t id, size_t off, uint32_t len,
            size_t roff, unsigned flags);
/* Waits for one completion (a minute, then the test fails) and checks its status. */
struct ibv_wc vt_wc(struct ibv_cq *cq, enum ibv_wc_status want);
bool vt_quiet(struct ibv_cq *cq, unsigned ms); /* nothing arrives for that long */
void vt_fill(unsigned char *p, size_t n, unsigned seed);
void vt_expect(const unsigned char *p, size_t n, unsigned seed, const char *what);
void vt_skip(const char *why) __attribute__((noreturn));

#endif
