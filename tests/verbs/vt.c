/* vt.c: starts the two sides, opens their devices and connects their queue pairs (vt.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "vt.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int current_side;

void vt_fail_and_exit(const char *file, int line, const char *cond, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fprintf(stderr, "FAILED side %d %s:%d: %s:%s (errno %s)\n", current_side, file, line, cond, text,
            strerror(errno));
    exit(1);
}

void vt_skip(const char *why)
{
    fprintf(stderr, "SKIPPED: %s\n", why);
    exit(77);
}

static void vt_transfer(int fd, void *p, size_t n, bool out)
{
    for (size_t at = 0; at < n;) {
        ssize_t r =
            out ? send(fd, (char *)p + at, n - at, MSG_NOSIGNAL) : recv(fd, (char *)p + at, n - at, 0);
        CHECK(r > 0, "the process of the other side has ended");
        at += (size_t)r;
    }
}

void vt_exchange(struct vt *t, const void *mine, void *theirs, size_t n)
{
    vt_transfer(t->oob, (void *)(uintptr_t)mine, n, true);
    vt_transfer(t->oob, theirs, n, false);
}

void vt_sync(struct vt *t)
{
    char a = 1, b;
    vt_exchange(t, &a, &b, 1);
}

static void enter_node_namespace(struct vt *t)
{
    const char *ns = getenv("VERBS_NETNS1");
    if (getenv("VERBS_NODES"))
        setenv("SOFTIB_NODE", t->side ? "1" : "0", 1);
    if (t->side && ns) {
        int fd = open(ns, O_RDONLY);
        CHECK(fd >= 0 && !setns(fd, CLONE_NEWNET), "%s", ns);
        close(fd);
    }
}

static void open_device(struct vt *t)
{
    const char *want = getenv(t->side ? "VERBS_DEV1" : "VERBS_DEV0"), *gid = getenv("VERBS_GID");
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    if (!list || !n)
        vt_skip("no verbs device found");
    for (int i = 0; i < n && !t->ctx; i++)
        if (!want || !strcmp(want, ibv_get_device_name(list[i])))
            t->ctx = ibv_open_device(list[i]);
    CHECK(t->ctx, "cannot open %s", want ? want : "the first device");
    ibv_free_device_list(list);
    struct ibv_device_attr device;
    CHECK(!ibv_query_device(t->ctx, &device));
    t->rxe = device.vendor_id == 0xffffff;
    CHECK(!ibv_query_port(t->ctx, 1, &t->port));
    t->gid_index = gid ? atoi(gid) : -1;
    CHECK(!ibv_query_gid(t->ctx, 1, gid ? t->gid_index : 0, &t->gid));
    CHECK((t->pd = ibv_alloc_pd(t->ctx)));
    CHECK((t->ch = ibv_create_comp_channel(t->ctx)));
    CHECK((t->cq = ibv_create_cq(t->ctx, 4096, t, t->ch, 0)));
    t->buf = mmap(NULL, BUF_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(t->buf != MAP_FAILED);
    CHECK((t->mr = ibv_reg_mr(t->pd, t->buf, BUF_BYTES, ALL_ACCESS)));
}

static int run_side(int side, int oob, void (*test)(struct vt *))
{
    struct vt t = {.side = side, .oob = oob};
    current_side = side;
    alarm(120);
    enter_node_namespace(&t);
    open_device(&t);
    vt_sync(&t);
    test(&t);
    CHECK(!ibv_dereg_mr(t.mr));
    CHECK(!ibv_destroy_cq(t.cq));
    CHECK(!ibv_destroy_comp_channel(t.ch));
    CHECK(!ibv_dealloc_pd(t.pd));
    CHECK(!ibv_close_device(t.ctx));
    munmap(t.buf, BUF_BYTES);
    return 0;
}

int vt_run(void (*test)(struct vt *t))
{
    int pair[2], status = 0;
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(pair[0]);
        exit(run_side(1, pair[1], test));
    }
    close(pair[1]);
    int r = run_side(0, pair[0], test);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status), "side 1 was killed by signal %d", WTERMSIG(status));
    return r ? r : WEXITSTATUS(status);
}

struct vt_opts vt_defaults(enum ibv_qp_type type)
{
    return (struct vt_opts){.type = type,
                            .send_wr = 128,
                            .recv_wr = 128,
                            .sge = 4,
                            .inline_data = 64,
                            /* About 1 s, so that a busy machine is not taken for a dead peer. */
                            .timeout = 18,
                            .retry = 6,
                            .rnr_retry = 7,
                            .rnr_timer = 12,
                            .access = ALL_ACCESS,
                            .sig_all = false};
}

static void vt_create_qp_object(struct vt *t, const struct vt_opts *o, struct vt_qp *q)
{
    struct ibv_qp_init_attr_ex a = {
        .send_cq = o->scq ? o->scq : t->cq,
        .recv_cq = o->rcq ? o->rcq : t->cq,
        .srq = o->srq,
        .cap = {o->send_wr, o->srq ? 0 : o->recv_wr, o->sge, o->sge, o->inline_data},
        .qp_type = o->type,
        .sq_sig_all = o->sig_all,
        .pd = t->pd,
        .comp_mask = IBV_QP_INIT_ATTR_PD | (o->send_ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
        .send_ops_flags = o->send_ops,
    };
    CHECK((q->qp = ibv_create_qp_ex(t->ctx, &a)));
}

void vt_qp_create(struct vt *t, struct vt_opts o, struct vt_qp *q)
{
    memset(q, 0, sizeof(*q));
    vt_create_qp_object(t, &o, q);
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = (unsigned)o.access, .qkey = 0x1111};
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    CHECK(!ibv_modify_qp(q->qp, &a, mask | (o.type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
    q->me = (struct vt_addr){.qpn = q->qp->qp_num,
                             .rkey = t->mr->rkey,
                             .psn = (0x1000u + q->qp->qp_num) & 0xffffff,
                             .lid = t->port.lid,
                             .buf = (uintptr_t)t->buf,
                             .gid = t->gid};
}

static struct ibv_ah_attr make_address(struct vt *t, const struct vt_addr *to)
{
    struct ibv_ah_attr a = {.dlid = to->lid, .port_num = 1};
    if (t->gid_index >= 0) {
        a.is_global = 1;
        a.grh.dgid = to->gid;
        a.grh.sgid_index = (uint8_t)t->gid_index;
        a.grh.hop_limit = 64;
    }
    return a;
}

static void move_to_rtr(struct vt *t, const struct vt_opts *o, struct vt_qp *q)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = IBV_MTU_1024,
                            .dest_qp_num = q->peer.qpn,
                            .rq_psn = q->peer.psn,
                            .max_dest_rd_atomic = 4,
                            .min_rnr_timer = o->rnr_timer,
                            .ah_attr = make_address(t, &q->peer)};
    a.ah_attr.sl = o->sl;
    int mask = IBV_QP_STATE;
    if (o->type != IBV_QPT_UD)
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (o->type == IBV_QPT_RC)
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    CHECK(!ibv_modify_qp(q->qp, &a, mask));
}

static void move_to_rts(const struct vt_opts *o, struct vt_qp *q)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
                            .sq_psn = q->me.psn,
                            .timeout = o->timeout,
                            .retry_cnt = o->retry,
                            .rnr_retry = o->rnr_retry,
                            .max_rd_atomic = 4};
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (o->type == IBV_QPT_RC)
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    CHECK(!ibv_modify_qp(q->qp, &a, mask));
}

void vt_qp_connect(struct vt *t, struct vt_opts o, struct vt_qp *q)
{
    vt_exchange(t, &q->me, &q->peer, sizeof(q->me));
    move_to_rtr(t, &o, q);
    move_to_rts(&o, q);
    vt_sync(t);
}

void vt_qp_open(struct vt *t, struct vt_opts o, struct vt_qp *q)
{
    vt_qp_create(t, o, q);
    vt_qp_connect(t, o, q);
}

void vt_qp_close(struct vt_qp *q)
{
    CHECK(!ibv_destroy_qp(q->qp));
}

struct ibv_ah *vt_create_ah(struct vt *t, const struct vt_addr *to)
{
    struct ibv_ah_attr a = make_address(t, to);
    struct ibv_ah *ah = ibv_create_ah(t->pd, &a);
    CHECK(ah);
    return ah;
}

void vt_post_receive(struct vt_qp *q, struct vt *t, uint64_t id, size_t off, uint32_t len)
{
    struct ibv_sge s = {(uintptr_t)t->buf + off, len, t->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &s, .num_sge = 1}, *bad;
    CHECK(!ibv_post_recv(q->qp, &wr, &bad));
}

int vt_post_request(struct vt_qp *q, struct vt *t, enum ibv_wr_opcode op, uint64_t id, size_t off,
                    uint32_t len, size_t roff, unsigned flags)
{
    struct ibv_sge s = {(uintptr_t)t->buf + off, len, t->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = id, .sg_list = &s, .num_sge = 1, .opcode = op, .send_flags = flags},
                       *bad;
    wr.imm_data = 0x12345678;
    wr.wr.rdma.remote_addr = q->peer.buf + roff;
    wr.wr.rdma.rkey = q->peer.rkey;
    return ibv_post_send(q->qp, &wr, &bad);
}

double vt_now_seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

struct ibv_wc vt_expect_completion(struct ibv_cq *cq, enum ibv_wc_status want)
{
    struct ibv_wc wc;
    int n;
    double end = vt_now_seconds() + 60;
    while (!(n = ibv_poll_cq(cq, 1, &wc)))
        CHECK(vt_now_seconds() < end, "no completion within a minute");
    CHECK(n == 1);
    CHECK(wc.status == want, "completion of %llu is \"%s\", expected \"%s\"", (unsigned long long)wc.wr_id,
          ibv_wc_status_str(wc.status), ibv_wc_status_str(want));
    return wc;
}

bool vt_has_no_completion(struct ibv_cq *cq, unsigned ms)
{
    struct ibv_wc wc;
    double end = vt_now_seconds() + ms / 1e3;
    /* At least 100 polls: on a busy machine the time may be over before the first one. */
    for (unsigned polls = 0; polls < 100 || vt_now_seconds() < end; polls++)
        if (ibv_poll_cq(cq, 1, &wc))
            return false;
    return true;
}

void vt_fill(unsigned char *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)(seed * 31 + i * 7 + (i >> 8) * 13);
}

void vt_expect_bytes(const unsigned char *p, size_t n, unsigned seed, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char want = (unsigned char)(seed * 31 + i * 7 + (i >> 8) * 13);
        CHECK(p[i] == want, "%s: byte %zu of %zu is %02x, expected %02x", what, i, n, p[i], want);
    }
}
