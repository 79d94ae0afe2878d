/* t_lane.c: a multicast group whose members poll, sleep until an event, do not poll for longer than a lane
 * has room, join and leave during traffic, and are killed. Every packet arrives once, in order and
 * complete at each member that stays.
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
#define BURST    500u /* more than a lane holds, fewer than the posted receives */
#define ROUNDS   100u
#define VICTIMS  12u

enum member_behaviour { POLLS, SLEEPS, IS_LATE, JOINS_AND_LEAVES, BEHAVIOURS };

struct packet {
    uint64_t number;
    uint32_t answer, length; /* answer: 1 if the member notifies the sender of this packet's arrival */
    unsigned char bytes[];
};

struct multicast_end {
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

static void open_multicast_end(struct multicast_end *e)
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

static void close_multicast_end(struct multicast_end *e)
{
    CHECK(!ibv_destroy_qp(e->qp) && !ibv_dereg_mr(e->mr) && !ibv_destroy_cq(e->cq));
    CHECK(!ibv_destroy_comp_channel(e->ch) && !ibv_dealloc_pd(e->pd) && !ibv_close_device(e->ctx));
    free(e->buf);
}

/* ---- a member ---- */

static void repost_receive(struct multicast_end *e, uint64_t i)
{
    struct ibv_sge s = {(uintptr_t)(e->buf + i * STRIDE), STRIDE, e->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &s, .num_sge = 1}, *bad;
    CHECK(!ibv_post_recv(e->qp, &wr, &bad));
}

static void wait_for_event(struct multicast_end *e)
{
    struct ibv_cq *cq;
    void *user;
    CHECK(!ibv_get_cq_event(e->ch, &cq, &user));
    ibv_ack_cq_events(cq, 1);
}

static struct ibv_wc next_completion(struct multicast_end *e, enum member_behaviour member_behaviour)
{
    struct ibv_wc wc;
    while (ibv_poll_cq(e->cq, 1, &wc) != 1) {
        if (member_behaviour != SLEEPS)
            continue;
        CHECK(!ibv_req_notify_cq(e->cq, 0));
        if (ibv_poll_cq(e->cq, 1, &wc) == 1)
            break;
        wait_for_event(e);
    }
    CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV);
    return wc;
}

static void send_token(int fd)
{
    char c = 1;
    CHECK(send(fd, &c, 1, MSG_NOSIGNAL) == 1);
}

static void await_token(int fd)
{
    char c;
    CHECK(recv(fd, &c, 1, 0) == 1, "a member has ended");
}

static void rejoin_group(struct multicast_end *e)
{
    struct ibv_wc wc;
    for (uint64_t last = 0;;) {
        CHECK(!ibv_attach_mcast(e->qp, &group, 0xc001));
        for (int polls = 0; polls < 300; polls++)
            while (ibv_poll_cq(e->cq, 1, &wc) == 1) {
                const struct packet *p = (const void *)(e->buf + wc.wr_id * STRIDE + GRH);
                CHECK(wc.status == IBV_WC_SUCCESS && p->number > last, "packet %llu arrived after %llu",
                      (unsigned long long)p->number, (unsigned long long)last);
                last = p->number;
                repost_receive(e, wc.wr_id);
            }
        CHECK(!ibv_detach_mcast(e->qp, &group, 0xc001));
    }
}

static void run_member(int fd, enum member_behaviour member_behaviour)
{
    struct multicast_end e;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    open_multicast_end(&e);
    for (uint64_t i = 0; i < RECEIVES; i++)
        repost_receive(&e, i);
    if (member_behaviour == JOINS_AND_LEAVES) {
        send_token(fd);
        rejoin_group(&e);
    }
    CHECK(!ibv_attach_mcast(e.qp, &group, 0xc001));
    send_token(fd);
    for (uint64_t want = 0;; want++) {
        struct ibv_wc wc = next_completion(&e, member_behaviour);
        const struct packet *p = (const void *)(e.buf + wc.wr_id * STRIDE + GRH);
        want = want ? want : p->number;
        CHECK(p->number == want, "packet %llu arrived, expected %llu", (unsigned long long)p->number,
              (unsigned long long)want);
        CHECK(wc.byte_len == GRH + sizeof(*p) + p->length);
        for (uint32_t k = 0; k < p->length; k++)
            CHECK(p->bytes[k] == (unsigned char)(want + k));
        bool answer = p->answer;
        repost_receive(&e, wc.wr_id);
        if (answer)
            send_token(fd);
        if (answer && member_behaviour == IS_LATE)
            await_token(fd);
    }
}

static struct child start_member(enum member_behaviour member_behaviour)
{
    int pair[2];
    CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    struct child c = {.pid = fork(), .fd = pair[0]};
    CHECK(c.pid >= 0);
    if (!c.pid) {
        close(pair[0]);
        run_member(pair[1], member_behaviour);
    }
    close(pair[1]);
    await_token(c.fd);
    return c;
}

/* ---- the sender ---- */

static void send_burst(struct multicast_end *e, struct ibv_ah *ah, unsigned n, uint64_t *number)
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

static void stop_member(struct child *c)
{
    int status;
    CHECK(!kill(c->pid, SIGKILL) && waitpid(c->pid, &status, 0) == c->pid);
    CHECK(WIFSIGNALED(status), "a member ended with wait status %#x", status);
    close(c->fd);
}

int main(void)
{
    static const enum member_behaviour behaviours[] = {POLLS, SLEEPS, SLEEPS, SLEEPS, SLEEPS, IS_LATE};
    enum { MEMBERS = sizeof(behaviours) / sizeof(behaviours[0]) };
    struct child c[MEMBERS];
    struct multicast_end e;
    uint64_t number = 0;
    struct ibv_ah_attr to = {
        .dlid = 0xc001, .is_global = 1, .port_num = 1, .grh = {.dgid = group, .hop_limit = 1}};
    alarm(140);
    for (int i = 0; i < MEMBERS; i++)
        c[i] = start_member(behaviours[i]);
    open_multicast_end(&e);
    struct ibv_ah *ah = ibv_create_ah(e.pd, &to);
    CHECK(ah);
    for (unsigned round = 0; round < ROUNDS; round++) {
        /* One packet wakes the sleeping members; in every tenth round more packets than a lane holds, so
         * that the sender must wait for the late member. */
        send_burst(&e, ah, round % 10 ? 1 : BURST, &number);
        for (int i = 0; i < MEMBERS; i++)
            if (behaviours[i] != IS_LATE)
                await_token(c[i].fd);
        await_token(c[MEMBERS - 1].fd); /* the late member answers, and then waits for the sender */
        if (round % 10 != 8)
            send_token(c[MEMBERS - 1].fd);
        else {
            send_burst(&e, ah, BURST, &number); /* while the late member does not poll */
            for (int i = 0; i < MEMBERS - 1; i++)
                await_token(c[i].fd);
            send_token(c[MEMBERS - 1].fd);
            await_token(c[MEMBERS - 1].fd);
            send_token(c[MEMBERS - 1].fd);
        }
    }
    struct child guest = start_member(JOINS_AND_LEAVES);
    for (unsigned v = 0; v < VICTIMS; v++) {
        struct child victim = start_member(v % 2 ? POLLS : SLEEPS);
        send_burst(&e, ah, 20 + v * 37 % 300, &number);
        stop_member(&victim); /* kills the member at a different moment each time */
        send_burst(&e, ah, 10, &number);
        for (int i = 0; i < MEMBERS; i++) {
            await_token(c[i].fd);
            if (behaviours[i] == IS_LATE) {
                send_token(c[i].fd);
                await_token(c[i].fd);
                send_token(c[i].fd);
            } else {
                await_token(c[i].fd);
            }
        }
    }
    /* A member in the slot of a killed one, whose queue pair has the same number: forked processes inherit the
     * start of the numbers. */
    struct child successor = start_member(POLLS);
    send_burst(&e, ah, 10, &number);
    await_token(successor.fd);
    stop_member(&successor);
    stop_member(&guest);
    for (int i = 0; i < MEMBERS; i++)
        stop_member(&c[i]);
    CHECK(!ibv_destroy_ah(ah));
    close_multicast_end(&e);
    return 0;
}
