/* t_dereg.c: after ibv_dereg_mr the memory is neither read nor written over the network: by a frame that
 * stalled half-way, by answers to RDMA READs that wait because the peer does not read them, by a message
 * repeated on a second connection, and by an own request to a stopped peer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "wire_client.h"
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BYTES 200000u
#define FIRST 100u
#define READS (4u << 20)

static struct fabric fab;
static uint8_t data[FRAME_SEGMENT];

static struct vt_opts options_with_long_timeout(void)
{
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    o.timeout = 0;
    return o;
}

/* Side 0 registers a region and sends its key to side 1 in q->peer. */
static struct ibv_mr *offer_region(struct vt *t, struct vt_qp *q, unsigned char **p, size_t n)
{
    struct ibv_mr *mr = NULL;
    struct vt_addr me = {0}, other;
    if (t->side == 0) {
        *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(*p != MAP_FAILED && (mr = ibv_reg_mr(t->pd, *p, n, ALL_ACCESS)));
        me.buf = (uintptr_t)*p;
        me.rkey = mr->rkey;
    }
    vt_exchange(t, &me, &other, sizeof(me));
    q->peer.buf = other.buf;
    q->peer.rkey = other.rkey;
    return mr;
}

static struct frame make_write_frame(const struct vt_qp *q, uint32_t nth)
{
    struct frame f = wire_client_make_frame(q, FRAME_DATA, nth);
    f.length = f.total = BYTES;
    f.raddr = q->peer.buf;
    f.rkey = q->peer.rkey;
    return f;
}

static void wait_for_byte(const volatile unsigned char *p, unsigned char want)
{
    time_t end = time(NULL) + 60;
    while (*p != want)
        CHECK(time(NULL) < end, "the first part of the frame did not arrive in time");
}

static void expect_unwritten(const unsigned char *p, size_t n, unsigned char want)
{
    for (size_t i = 0; i < n; i++)
        CHECK(p[i] == want, "byte %zu was written after ibv_dereg_mr", i);
}

/* Sends the rest of the stalled frame; none of it may appear in the memory of the former region. */
static void complete_stalled_frame(struct vt *t, const struct vt_qp *q, int fd, unsigned char *p,
                                   unsigned char want)
{
    if (t->side == 1) {
        CHECK(send(fd, data + FIRST, BYTES - FIRST, MSG_NOSIGNAL) == (ssize_t)(BYTES - FIRST));
        CHECK(wire_client_ping(&fab, fd, q), "the other side closed the connection");
        close(fd);
    }
    vt_sync(t);
    if (t->side == 0) {
        expect_unwritten(p, BYTES, want);
        munmap(p, BYTES);
    }
}

/* Side 1 sends the first part of a frame and returns the connection; side 0 waits until the part is at p
 * and returns -1. */
static int send_first_part(struct vt *t, struct vt_qp *q, unsigned char *p)
{
    const struct frame f = make_write_frame(q, 0);
    if (t->side == 1) {
        const int fd = wire_client_greet(&fab, q);
        wire_client_send(&fab, fd, &f, data, FIRST);
        return fd;
    }
    wait_for_byte(p + FIRST - 1, 0xaa);
    return -1;
}

/* Half a frame arrives, the region is deregistered, the other half arrives. */
static void test_stalled_frame(struct vt *t)
{
    struct vt_qp q;
    unsigned char *p = NULL;
    vt_qp_open(t, options_with_long_timeout(), &q);
    struct ibv_mr *mr = offer_region(t, &q, &p, BYTES);
    const int fd = send_first_part(t, &q, p);
    if (t->side == 0) {
        CHECK(!ibv_dereg_mr(mr));
        memset(p, 0x11, BYTES);
    }
    vt_sync(t);
    complete_stalled_frame(t, &q, fd, p, 0x11);
    vt_qp_close(&q);
}

/* A message stalls on one connection, arrives completely on another, and then continues on the first. */
static void test_repeated_message(struct vt *t)
{
    struct vt_qp q;
    unsigned char *p = NULL;
    int second = -1;
    vt_qp_open(t, options_with_long_timeout(), &q);
    struct ibv_mr *mr = offer_region(t, &q, &p, BYTES);
    const struct frame f = make_write_frame(&q, 0);
    const int fd = send_first_part(t, &q, p);
    vt_sync(t);
    if (t->side == 1) {
        second = wire_client_greet(&fab, &q);
        wire_client_send(&fab, second, &f, data, BYTES);
        CHECK(wire_client_ping(&fab, second, &q), "the other side closed the connection");
    }
    vt_sync(t);
    if (t->side == 0) {
        wait_for_byte(p + BYTES - 1, 0xaa);
        CHECK(!ibv_dereg_mr(mr));
        memset(p, 0x22, BYTES);
    }
    vt_sync(t);
    complete_stalled_frame(t, &q, fd, p, 0x22);
    close(second);
    vt_qp_close(&q);
}

/* The peer does not read the answers to many READs; the answers must not contain data stored after
 * ibv_dereg_mr. */
static void test_unread_answers(struct vt *t)
{
    struct vt_qp q;
    unsigned char *p = NULL;
    int fd = -1;
    vt_qp_open(t, options_with_long_timeout(), &q);
    struct ibv_mr *mr = offer_region(t, &q, &p, READS);
    if (t->side == 1) {
        fd = wire_client_greet(&fab, &q);
        for (uint32_t i = 0; i < 8; i++) {
            struct frame f = wire_client_make_frame(&q, FRAME_READ, i);
            f.total = READS;
            f.raddr = q.peer.buf;
            f.rkey = q.peer.rkey;
            wire_client_send(&fab, fd, &f, NULL, 0);
        }
        struct frame f;
        /* The first answer has begun to arrive. */
        CHECK(wire_client_read(fd, data, FRAME_BYTES) && frame_decode(data, (uint32_t)fab.id, &f) &&
              f.type == FRAME_READ_DATA);
        CHECK(wire_client_read(fd, data, f.length));
    }
    vt_sync(t);
    if (t->side == 0) {
        CHECK(!ibv_dereg_mr(mr));
        memset(p, 0xee, READS);
    }
    vt_sync(t);
    if (t->side == 1) {
        struct frame f = {0};
        while (f.type != FRAME_NAK) {
            CHECK(wire_client_read(fd, data, FRAME_BYTES) && frame_decode(data, (uint32_t)fab.id, &f));
            CHECK(!f.length || wire_client_read(fd, data, f.length));
            for (uint32_t i = 0; i < f.length; i++)
                CHECK(data[i] != 0xee, "byte %u of an answer was read after ibv_dereg_mr", f.offset + i);
        }
        CHECK(f.arg == 4, "answer %u, expected ANS_ACCESS (4)", f.arg); /* 4: ANS_ACCESS */
        close(fd);
        memset(data, 0xaa, sizeof(data));
    }
    vt_sync(t);
    if (t->side == 0)
        munmap(p, READS);
    vt_qp_close(&q);
}

static bool thread_is_stopped(const char *path)
{
    char text[256] = "";
    FILE *in = fopen(path, "re");
    const char *after = in && fgets(text, sizeof(text), in) ? strrchr(text, ')') : NULL;
    /* A thread that has ended counts as stopped. */
    bool stands = !after || after[2] == 'T' || after[2] == 't';
    if (in)
        fclose(in);
    return stands;
}

static bool all_threads_are_stopped(pid_t pid)
{
    char path[600];
    bool all = true;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    CHECK(tasks);
    for (struct dirent *e; (e = readdir(tasks));) {
        snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)pid, e->d_name);
        all = all && (e->d_name[0] == '.' || thread_is_stopped(path));
    }
    closedir(tasks);
    return all;
}

/* Stops the process and waits until all its threads are stopped: until then its engine thread may still
 * receive. */
static void stop_process(pid_t pid)
{
    time_t end = time(NULL) + 60;
    CHECK(!kill(pid, SIGSTOP));
    while (!all_threads_are_stopped(pid))
        CHECK(time(NULL) < end, "process %d is not stopped", (int)pid);
}

/* Deregisters a region while an own request that uses it stalls because the peer is stopped. */
static void test_stopped_peer(struct vt *t)
{
    struct vt_qp q;
    pid_t me = getpid(), other;
    vt_qp_open(t, options_with_long_timeout(), &q);
    vt_exchange(t, &me, &other, sizeof(me));
    memset(t->buf, 0x33, BUF_BYTES);
    vt_sync(t);
    if (t->side == 0) {
        unsigned char *p = mmap(NULL, BUF_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        struct ibv_mr *mr = ibv_reg_mr(t->pd, p, BUF_BYTES, ALL_ACCESS);
        CHECK(mr);
        memset(p, 0x44, BUF_BYTES);
        /* A request that completes establishes the connection; then more data than the socket buffers
         * hold. */
        struct ibv_sge s = {(uintptr_t)p, 8, mr->lkey};
        struct ibv_send_wr wr = {.sg_list = &s,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_WRITE,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma = {q.peer.buf, q.peer.rkey}},
                           *bad;
        CHECK(!ibv_post_send(q.qp, &wr, &bad));
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        stop_process(other);
        s.length = BUF_BYTES;
        int posted = ibv_post_send(q.qp, &wr, &bad);
        int gone = ibv_dereg_mr(mr);
        memset(p, 0xee, BUF_BYTES);
        kill(other, SIGCONT);
        CHECK(!posted && !gone);
        vt_expect_completion(t->cq, IBV_WC_LOC_PROT_ERR);
        munmap(p, BUF_BYTES);
    }
    vt_sync(t);
    for (size_t i = 0; t->side == 1 && i < BUF_BYTES; i++)
        CHECK(t->buf[i] != 0xee, "byte %zu was sent after ibv_dereg_mr", i);
    vt_sync(t);
    vt_qp_close(&q);
}

static void run_test(struct vt *t)
{
    wire_client_setup(&fab);
    memset(data, 0xaa, sizeof(data));
    test_stalled_frame(t);
    test_repeated_message(t);
    test_unread_answers(t);
    test_stopped_peer(t);
    fabric_free(&fab);
}

int main(void)
{
    return vt_run(run_test);
}
