/* t_lane.c: a multicast group whose members poll, sleep until an event comes, do not look at all for longer than a lane holds, come and
 * go in the middle, and are killed. Every packet comes once, in order and whole to each member that stays.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../verbs/vt.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define QKEY     0x1111u
#define GRH      40u
#define STRIDE   2048u
#define RECEIVES 1024u
#define WINDOW   64u
#define BURST    500u /* more than a lane holds, fewer than there are receives */
#define ROUNDS   100u
#define VICTIMS  12u

enum behaviour { POLLS, SLEEPS, IS_LATE, COMES_AND_GOES, BEHAVIOURS };

struct packet {
    uint64_t number;
    uint32_t answer, length; /* answer: tell the sender when this one is here */
    unsigned char bytes[];
};

struct end {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_comp_channel *ch;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    char *buf;
};

struct child {
    pid_t pid;
    int fd;
};

static const union ibv_gid group = {.raw = {0xff, 0x12, 0x40, 0x1b, [15] = 0x55}};

static void end_open(struct end *e)
{
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    CHECK(list && n && (e->ctx = ibv_open_device(list[0])));
    ibv_free_device_list(list);
    CHECK((e->pd = ibv_alloc_pd(e->ctx)) && (e->ch = ibv_create_comp_channel(e->ctx)));
    CHECK((e->cq = ibv_create_cq(e->ctx, RECEIVES + WINDOW, NULL, e->ch, 0)));
    CHECK((e->buf = aligned_alloc(4096, RECEIVES * STRIDE)));
    CHECK((e->mr = ibv_reg_mr(e->pd, e->buf, RECEIVES * STRIDE, IBV_ACCESS_LOCAL_WRITE)));
    struct ibv_qp_init_attr a = {
        .send_cq = e->cq,
        .recv_cq = e->cq,
        .qp_type = IBV_QPT_UD,
        .cap = {.max_send_wr = WINDOW, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1}};
    CHECK((e->qp = ibv_create_qp(e->pd, &a)));
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR}, rts = {.qp_state = IBV_QPS_RTS};
    CHECK(!ibv_modify_qp(e->qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    CHECK(!ibv_modify_qp(e->qp, &rtr, IBV_QP_STATE));
    CHECK(!ibv_modify_qp(e->qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

static void end_close(struct end *e)
{
    CHECK(!ibv_destroy_qp(e->qp) && !ibv_dereg_mr(e->mr) && !ibv_destroy_cq(e->cq));
    CHECK(!ibv_destroy_comp_channel(e->ch) && !ibv_dealloc_pd(e->pd) && !ibv_close_device(e->ctx));
    free(e->buf);
}

/* ---- a member ---- */

static void lane_repost(struct end *e, uint64_t i)
{
    struct ibv_sge s = {(uintptr_t)(e->buf + i * STRIDE), STRIDE, e->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &s, .num_sge = 1}, *bad;
    CHECK(!ibv_post_recv(e->qp, &wr, &bad));
}

static void wait_for_event(struct end *e)
{
    struct ibv_cq *cq;
    void *user;
    CHECK(!ibv_get_cq_event(e->ch, &cq, &user));
    ibv_ack_cq_events(cq, 1);
}

static struct ibv_wc next_completion(struct end *e, enum behaviour behaviour)
{
    struct ibv_wc wc;
    while (ibv_poll_cq(e->cq, 1, &wc) != 1) {
        if (behaviour != SLEEPS)
            continue;
        CHECK(!ibv_req_notify_cq(e->cq, 0));
        if (ibv_poll_cq(e->cq, 1, &wc) == 1)
            break;
        wait_for_event(e);
    }
    CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV);
    return wc;
}

static void test_token(int fd)
{
    char c = 1;
    CHECK(send(fd, &c, 1, MSG_NOSIGNAL) == 1);
}

static void lane_await(int fd)
{
    char c;
    CHECK(recv(fd, &c, 1, 0) == 1, "a member is gone");
}

static void comes_and_goes(struct end *e)
{
    struct ibv_wc wc;
    for (uint64_t last = 0;;) {
        CHECK(!ibv_attach_mcast(e->qp, &group, 0xc001));
        for (int polls = 0; polls < 300; polls++)
            while (ibv_poll_cq(e->cq, 1, &wc) == 1) {
                const struct packet *p = (const void *)(e->buf + wc.wr_id * STRIDE + GRH);
                CHECK(wc.status == IBV_WC_SUCCESS && p->number > last, "%llu after %llu",
                      (unsigned long long)p->number, (unsigned long long)last);
                last = p->number;
                lane_repost(e, wc.wr_id);
            }
        CHECK(!ibv_detach_mcast(e->qp, &group, 0xc001));
    }
}

static void test_member(int fd, enum behaviour behaviour)
{
    struct end e;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    end_open(&e);
    for (uint64_t i = 0; i < RECEIVES; i++)
        lane_repost(&e, i);
    if (behaviour == COMES_AND_GOES) {
        test_token(fd);
        comes_and_goes(&e);
    }
    CHECK(!ibv_attach_mcast(e.qp, &group, 0xc001));
    test_token(fd);
    for (uint64_t want = 0;; want++) {
        struct ibv_wc wc = next_completion(&e, behaviour);
        const struct packet *p = (const void *)(e.buf + wc.wr_id * STRIDE + GRH);
        want = want ? want : p->number;
        CHECK(p->number == want, "packet %llu instead of %llu", (unsigned long long)p->number,
              (unsigned long long)want);
        CHECK(wc.byte_len == GRH + sizeof(*p) + p->length);
        for (uint32_t k = 0; k < p->length; k++)
            CHECK(p->bytes[k] == (unsigned char)(want + k));
        bool answer = p->answer;
        lane_repost(&e, wc.wr_id);
        if (answer)
            test_token(fd);
        if (answer && behaviour == IS_LATE)
            lane_await(fd);
    }
}

static struct child lane_start(enum behaviour behaviour)
{
    int pair[2];
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    struct child c = {.pid = fork(), .fd = pair[0]};
    CHECK(c.pid >= 0);
    if (!c.pid) {
        close(pair[0]);
        test_member(pair[1], behaviour);
    }
    close(pair[1]);
    lane_await(c.fd);
    return c;
}

/* ---- the sender ---- */

static void send_burst(struct end *e, struct ibv_ah *ah, unsigned n, uint64_t *number)
{
    struct ibv_wc wc;
    for (unsigned sent = 0, done = 0; done < n; done++) {
        for (; sent < n && sent - done < WINDOW; sent++) {
            struct packet *p = (void *)(e->buf + *number % WINDOW * STRIDE);
            *p = (struct packet){++*number, sent + 1 == n, (uint32_t)(*number * 37 % 1500)};
            for (uint32_t k = 0; k < p->length; k++)
                p->bytes[k] = (unsigned char)(p->number + k);
            struct ibv_sge s = {(uintptr_t)p, (uint32_t)sizeof(*p) + p->length, e->mr->lkey};
            struct ibv_send_wr wr = {.sg_list = &s,
                                     .num_sge = 1,
                                     .opcode = IBV_WR_SEND,
                                     .send_flags = IBV_SEND_SIGNALED,
                                     .wr.ud = {ah, 0xffffff, QKEY}},
                               *bad;
            CHECK(!ibv_post_send(e->qp, &wr, &bad));
        }
        while (ibv_poll_cq(e->cq, 1, &wc) != 1)
            ;
        CHECK(wc.status == IBV_WC_SUCCESS);
    }
}

static void lane_stop(struct child *c)
{
    int status;
    CHECK(!kill(c->pid, SIGKILL) && waitpid(c->pid, &status, 0) == c->pid);
    CHECK(WIFSIGNALED(status), "a member ended with %x", status);
    close(c->fd);
}

int main(void)
{
    static const enum behaviour behaviours[] = {POLLS, SLEEPS, SLEEPS, SLEEPS, SLEEPS, IS_LATE};
    enum { MEMBERS = sizeof(behaviours) / sizeof(behaviours[0]) };
    struct child c[MEMBERS];
    struct end e;
    uint64_t number = 0;
    struct ibv_ah_attr to = {
        .dlid = 0xc001, .is_global = 1, .port_num = 1, .grh = {.dgid = group, .hop_limit = 1}};
    alarm(140);
    for (int i = 0; i < MEMBERS; i++)
        c[i] = lane_start(behaviours[i]);
    end_open(&e);
    struct ibv_ah *ah = ibv_create_ah(e.pd, &to);
    CHECK(ah);
    for (unsigned round = 0; round < ROUNDS; round++) {
        /* One packet, to wake the members that sleep; in every tenth round more than a lane holds, so that packets which the
         * late member has not taken hold up the sender. */
        send_burst(&e, ah, round % 10 ? 1 : BURST, &number);
        for (int i = 0; i < MEMBERS; i++)
            if (behaviours[i] != IS_LATE)
                lane_await(c[i].fd);
        lane_await(c[MEMBERS - 1].fd); /* it answers, and then waits for us */
        if (round % 10 != 8)
            test_token(c[MEMBERS - 1].fd);
        else {
            send_burst(&e, ah, BURST, &number); /* while it does not poll */
            for (int i = 0; i < MEMBERS - 1; i++)
                lane_await(c[i].fd);
            test_token(c[MEMBERS - 1].fd);
            lane_await(c[MEMBERS - 1].fd);
            test_token(c[MEMBERS - 1].fd);
        }
    }
    struct child guest = lane_start(COMES_AND_GOES);
    for (unsigned v = 0; v < VICTIMS; v++) {
        struct child victim = lane_start(v % 2 ? POLLS : SLEEPS);
        send_burst(&e, ah, 20 + v * 37 % 300, &number);
        lane_stop(&victim); /* in the middle of its work, another time each */
        send_burst(&e, ah, 10, &number);
        for (int i = 0; i < MEMBERS; i++) {
            lane_await(c[i].fd);
            if (behaviours[i] == IS_LATE) {
                test_token(c[i].fd);
                lane_await(c[i].fd);
                test_token(c[i].fd);
            } else {
                lane_await(c[i].fd);
            }
        }
    }
    lane_stop(&guest);
    for (int i = 0; i < MEMBERS; i++)
        lane_stop(&c[i]);
    CHECK(!ibv_destroy_ah(ah));
    end_close(&e);
    return 0;
}
