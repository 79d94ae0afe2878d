/* t_kill.c: processes are killed at random moments: their peers get an error after retries, and never hang
 * or receive a wrong byte; locks of the killed processes are taken over; their slots are reused; at the
 * end no file or socket of the fabric remains.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../verbs/vt.h"
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define VICTIMS 8

struct hello {
    struct vt_addr addr;
};

static void open_side(struct vt *t)
{
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    CHECK(list && n && (t->ctx = ibv_open_device(list[0])));
    ibv_free_device_list(list);
    CHECK(!ibv_query_port(t->ctx, 1, &t->port));
    t->gid_index = -1;
    CHECK((t->pd = ibv_alloc_pd(t->ctx)) && (t->ch = ibv_create_comp_channel(t->ctx)));
    CHECK((t->cq = ibv_create_cq(t->ctx, 65536, t, t->ch, 0)));
    CHECK((t->buf = aligned_alloc(4096, BUF_BYTES)));
    memset(t->buf, 0, BUF_BYTES);
    CHECK((t->mr = ibv_reg_mr(t->pd, t->buf, BUF_BYTES, ALL_ACCESS)));
}

static struct vt_opts make_options(struct ibv_srq *srq)
{
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    o.timeout = 12;
    o.retry = 2;
    o.srq = srq;
    o.sig_all = true;
    return o;
}

/* Sends continuously until it is killed. */
static void run_victim(int oob)
{
    struct vt t = {.side = 1, .oob = oob};
    struct vt_qp q;
    alarm(120);
    open_side(&t);
    vt_qp_open(&t, make_options(NULL), &q);
    memset(t.buf, 0x5a, 4096);
    char up = 1;
    CHECK(send(oob, &up, 1, 0) == 1);
    for (uint64_t i = 0;; i++) {
        struct ibv_wc wc;
        bool send = i % 3, large = i % 12 == 0; /* large messages: the receiver helps to copy them */
        vt_post_request(&q, &t, send ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, i, 0,
                        large ? 1u << 19 : 1 + (uint32_t)(i * 97 % 4096), 4u << 20, 0);
        while (ibv_poll_cq(t.cq, 1, &wc))
            ;
    }
}

static void refill_receives(struct vt *t, struct ibv_srq *srq, unsigned n)
{
    struct ibv_sge s = {(uintptr_t)t->buf, 4096, t->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &s, .num_sge = 1}, *bad;
    while (n--)
        if (ibv_post_srq_recv(srq, &wr, &bad))
            return;
}

static void drain_completions(struct vt *t, struct ibv_srq *srq, unsigned *got)
{
    struct ibv_wc wc;
    while (ibv_poll_cq(t->cq, 1, &wc))
        if (wc.status == IBV_WC_SUCCESS) {
            CHECK(wc.opcode == IBV_WC_RECV && t->buf[0] == 0x5a && wc.byte_len <= 4096);
            ++*got;
            refill_receives(t, srq, 1);
        }
}

static void serve_one_victim(struct vt *t, struct ibv_srq *srq, unsigned n)
{
    int pair[2], status;
    struct vt_qp q;
    unsigned got = 0;
    char up;
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid) {
        close(pair[0]);
        run_victim(pair[1]);
    }
    close(pair[1]);
    t->oob = pair[0];
    vt_qp_open(t, make_options(srq), &q);
    CHECK(recv(pair[0], &up, 1, 0) == 1);
    /* Kills the process at a different moment of its work each time. */
    while (got < 20 + n * 37 % 300)
        drain_completions(t, srq, &got);
    CHECK(!kill(pid, SIGKILL) && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    drain_completions(t, srq, &got);
    struct ibv_wc wc;
    CHECK(!vt_post_request(&q, t, IBV_WR_RDMA_WRITE, 7, 0, n % 2 ? 8 : 1u << 20, 0, 0));
    do
        wc = (struct ibv_wc){0};
    while (!ibv_poll_cq(t->cq, 1, &wc) || wc.opcode & IBV_WC_RECV);
    CHECK(wc.wr_id == 7 && wc.status == IBV_WC_RETRY_EXC_ERR,
          "request to a dead process: %s, expected a retry error", ibv_wc_status_str(wc.status));
    vt_qp_close(&q);
    close(pair[0]);
}

static void run_survivor(void)
{
    struct vt t = {.side = 0};
    alarm(140);
    open_side(&t);
    struct ibv_srq_init_attr a = {.attr = {.max_wr = 1024, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(t.pd, &a);
    CHECK(srq);
    refill_receives(&t, srq, 1000);
    for (unsigned n = 0; n < VICTIMS; n++)
        serve_one_victim(&t, srq, n);
    raise(SIGKILL); /* the last process of the fabric is killed too */
}

static bool find_traces(void)
{
    char line[512];
    FILE *f = fopen("/proc/net/unix", "r");
    bool found = false;
    CHECK(f);
    while (fgets(line, sizeof(line), f)) {
        char *p = strstr(line, "@softib/");
        int pid = p ? atoi(p + 25) : 0;
        found |= pid && (pid == getpid() || getpgid(pid) == getpgrp());
    }
    fclose(f);
    return found;
}

int main(void)
{
    int status;
    setpgid(0, 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (!pid)
        run_survivor();
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the victim ended with wait status %#x",
          status);
    CHECK(!find_traces(), "a file or socket of the fabric remains");
    return 0;
}
