/* t_hold.c: after ibv_dereg_mr, and after a queue pair is reset, no process of the machine accesses the
 * memory: the call waits for a sender that is stopped in the middle of a copy, but not for one that is
 * killed there.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../verbs/vt.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BYTES (16u << 20)

static atomic_bool returned;

/* Continues the stopped sender once the call has returned, or after one second, since the call may wait
 * for the sender. */
static void *continue_sender(void *arg)
{
    struct timespec tick = {0, 1000000};
    for (int i = 0; i < 1300 && !atomic_load(&returned); i++)
        nanosleep(&tick, NULL);
    kill(*(pid_t *)arg, SIGCONT);
    return NULL;
}

static unsigned char *map_shared_region(int *fd)
{
    *fd = memfd_create("t_hold", MFD_CLOEXEC);
    CHECK(*fd >= 0 && !ftruncate(*fd, BYTES));
    unsigned char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    CHECK(p != MAP_FAILED);
    return p;
}

/* Writes the whole region repeatedly until a write is refused. */
static void write_until_refused(struct vt *t, struct vt_qp *q, const struct vt_addr *to)
{
    unsigned char *from = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr = ibv_reg_mr(t->pd, from, BYTES, ALL_ACCESS);
    struct ibv_wc wc = {0};
    CHECK(mr);
    memset(from, 0x99, BYTES);
    while (wc.status == IBV_WC_SUCCESS) {
        struct ibv_sge s = {(uintptr_t)from, BYTES, mr->lkey};
        struct ibv_send_wr wr = {.sg_list = &s,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_WRITE,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma = {to->buf, to->rkey}},
                           *bad;
        CHECK(!ibv_post_send(q->qp, &wr, &bad));
        while (!ibv_poll_cq(t->cq, 1, &wc))
            ;
    }
    CHECK(!ibv_dereg_mr(mr));
    munmap(from, BYTES);
}

enum ending_call { DEREG, RESET };

static void revoke_access(enum ending_call ending_call, struct vt_qp *q, struct ibv_mr **mr)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET};
    if (ending_call == RESET)
        CHECK(!ibv_modify_qp(q->qp, &a, IBV_QP_STATE));
    else
        CHECK(!ibv_dereg_mr(*mr));
    if (ending_call == DEREG)
        *mr = NULL;
}

static void test_stopped(struct vt *t, enum ending_call ending_call)
{
    struct vt_qp q;
    struct vt_addr me = {0}, other;
    pid_t pid = getpid(), sender;
    struct ibv_mr *mr = NULL;
    unsigned char *p = NULL;
    int fd = -1;
    if (t->side == 0) {
        p = map_shared_region(&fd);
        CHECK((mr = ibv_reg_mr(t->pd, p, BYTES, ALL_ACCESS)));
        me.buf = (uintptr_t)p;
        me.rkey = mr->rkey;
    }
    struct vt_opts impatient = vt_defaults(IBV_QPT_RC);
    impatient.timeout = 8; /* 1 ms, three tries: then the sender detects that the queue pair was reset */
    impatient.retry = 2;
    vt_qp_open(t, impatient, &q);
    vt_exchange(t, &me, &other, sizeof(me));
    vt_exchange(t, &pid, &sender, sizeof(pid));
    if (t->side == 1) {
        write_until_refused(t, &q, &other);
    } else {
        pthread_t thread;
        const volatile unsigned char *middle = p + BYTES / 2;
        while (*middle != 0x99) /* until the first copy is half done */
            ;
        kill(sender, SIGSTOP);
        atomic_store(&returned, false);
        CHECK(!pthread_create(&thread, NULL, continue_sender, &sender));
        revoke_access(ending_call, &q, &mr);
        memset(p, 0x11, BYTES);
        atomic_store(&returned, true);
        pthread_join(thread, NULL);
    }
    vt_sync(t); /* the sender was refused */
    if (t->side == 0) {
        for (size_t i = 0; i < BYTES; i++)
            CHECK(p[i] == 0x11, "byte %zu was written after %s", i,
                  ending_call == RESET ? "the queue pair was reset" : "ibv_dereg_mr");
        CHECK(!mr || !ibv_dereg_mr(mr));
        munmap(p, BYTES);
        close(fd);
    }
    vt_qp_close(&q);
}

static void run_test(struct vt *t)
{
    for (int i = 0; i < 2; i++) /* each time the copy is stopped at another position */
        test_stopped(t, DEREG), test_stopped(t, RESET);
}

int main(void)
{
    return vt_run(run_test);
}
