/* t_stress.c: several threads and QPs at once, with all kinds of requests in flight in both directions and
 * every byte checked, to find races and lost wake-ups; runs under the thread sanitizer too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "vt.h"
#include <pthread.h>
#include <sched.h>

#define THREADS  3
#define MESSAGES 400
#define WINDOW   16
#define SLICE    (BUF_BYTES / THREADS / 2)
#define SLOT     8192u

struct thread_job {
    struct vt *t;
    struct vt_qp q;
    struct ibv_cq *cq;
    size_t base;
    unsigned id;
};

static uint32_t message_size(unsigned thread, unsigned i)
{
    return 1 + (i * 2654435761u + thread * 40503u) % SLOT;
}

static void *run_thread(void *arg)
{
    struct thread_job *j = arg;
    struct vt *t = j->t;
    unsigned sent = 0, completed = 0, received = 0, other = j->id + (t->side ? 0 : 100),
             mine = j->id + (t->side ? 100 : 0);
    for (unsigned i = 0; i < WINDOW; i++)
        vt_post_receive(&j->q, t, i, j->base + i * SLOT, SLOT);
    while (received < MESSAGES || completed < MESSAGES) {
        struct ibv_wc wc;
        if (sent < MESSAGES && sent - completed < WINDOW / 2) {
            size_t at = j->base + SLICE + (sent % WINDOW) * SLOT;
            uint32_t n = message_size(mine, sent);
            vt_fill(t->buf + at, n, sent + mine);
            CHECK(!vt_post_request(&j->q, t, IBV_WR_SEND, 1000 + sent, at, n, 0, IBV_SEND_SIGNALED));
            sent++;
        }
        int n = ibv_poll_cq(j->cq, 1, &wc);
        CHECK(n >= 0);
        if (!n) {
            sched_yield();
            continue;
        }
        CHECK(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
        if (wc.opcode == IBV_WC_RECV) {
            CHECK(wc.wr_id == received % WINDOW && wc.byte_len == message_size(other, received),
                  "message %u out of order", received);
            vt_expect_bytes(t->buf + j->base + wc.wr_id * SLOT, wc.byte_len, received + other, "stress");
            vt_post_receive(&j->q, t, wc.wr_id, j->base + wc.wr_id * SLOT, SLOT);
            received++;
        } else {
            CHECK(wc.wr_id == 1000 + completed);
            completed++;
        }
    }
    return NULL;
}

static void run_test(struct vt *t)
{
    struct thread_job j[THREADS];
    pthread_t th[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        struct vt_opts o = vt_defaults(IBV_QPT_RC);
        o.timeout = 18;
        o.rnr_timer = 5;
        j[i] = (struct thread_job){.t = t, .base = i * 2 * SLICE, .id = i};
        CHECK((j[i].cq = ibv_create_cq(t->ctx, 256, NULL, NULL, 0)));
        o.rcq = o.scq = j[i].cq;
        vt_qp_open(t, o, &j[i].q);
    }
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&th[i], NULL, run_thread, &j[i]));
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(!pthread_join(th[i], NULL));
    vt_sync(t);
    for (unsigned i = 0; i < THREADS; i++) {
        vt_qp_close(&j[i].q);
        CHECK(!ibv_destroy_cq(j[i].cq));
    }
}

int main(void)
{
    return vt_run(run_test);
}
