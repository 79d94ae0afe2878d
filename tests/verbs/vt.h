/* vt.h: the framework of the verbs tests: two processes (sides), each with its device, that exchange
 * addresses over a socket pair; checks that print their reason on failure; connected queue pairs. It
 * depends on no particular HCA: VERBS_DEV0 and VERBS_DEV1 name the devices of the two sides, VERBS_GID a
 * GID index where LIDs do not route (RoCE). On softib, VERBS_NODES=2 puts the sides on two nodes and
 * VERBS_NETNS1 moves the second one to another network namespace.
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

#define CHECK(cond, ...)                                                  \
    do {                                                                  \
        if (!(cond))                                                      \
            vt_fail_and_exit(__FILE__, __LINE__, #cond, " " __VA_ARGS__); \
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
    int oob;  /* socket to the other side */
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_port_attr port;
    union ibv_gid gid;
    int gid_index; /* -1: paths use LIDs */
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
    uint8_t sl; /* service level */
    int access;
    uint64_t send_ops; /* operations of ibv_wr_*; 0: the QP is not used by ibv_wr_* */
    bool sig_all, no_connect;
};

void vt_fail_and_exit(const char *file, int line, const char *cond, const char *fmt, ...)
    __attribute__((noreturn, format(printf, 4, 5)));

/* Runs test() in two processes and returns the exit status for main. Exit status 77 of either side means
 * skipped. */
int vt_run(void (*test)(struct vt *t));

double vt_now_seconds(void); /* monotonic clock */
void vt_sync(struct vt *t);  /* waits for the other side to call vt_sync */
void vt_exchange(struct vt *t, const void *mine, void *theirs, size_t n);

struct vt_opts vt_defaults(enum ibv_qp_type type);
void vt_qp_open(struct vt *t, struct vt_opts o, struct vt_qp *q); /* vt_qp_create and vt_qp_connect */
void vt_qp_connect(struct vt *t, struct vt_opts o, struct vt_qp *q);
void vt_qp_create(struct vt *t, struct vt_opts o, struct vt_qp *q);
void vt_qp_close(struct vt_qp *q);
struct ibv_ah *vt_create_ah(struct vt *t, const struct vt_addr *to);

void vt_post_receive(struct vt_qp *q, struct vt *t, uint64_t id, size_t off, uint32_t len);
/* Posts a request of any opcode with `len` bytes at buf + off; RDMA accesses the peer's buf + roff.
 * Returns the result of the post. */
int vt_post_request(struct vt_qp *q, struct vt *t, enum ibv_wr_opcode op, uint64_t id, size_t off,
                    uint32_t len, size_t roff, unsigned flags);
/* Waits for one completion (at most a minute, then the test fails) and checks its status. */
struct ibv_wc vt_expect_completion(struct ibv_cq *cq, enum ibv_wc_status want);
bool vt_has_no_completion(struct ibv_cq *cq, unsigned ms); /* no completion for `ms` milliseconds */
void vt_fill(unsigned char *p, size_t n, unsigned seed);
void vt_expect_bytes(const unsigned char *p, size_t n, unsigned seed, const char *what);
void vt_skip(const char *why) __attribute__((noreturn));

#endif
