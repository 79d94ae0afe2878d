/* t_import.c: a device, protection domain and memory region of another process or context are imported by
 * file descriptor and handle: a QP of the importer transfers data of the region. Objects that cannot be
 * imported are refused.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "expect.h"
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES  8192
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

struct handles {
    uint32_t pd, shared, unshared, rkey;
    uint64_t iova;
};

static struct ibv_context *open_first(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *c = list ? ibv_open_device(list[0]) : NULL;
    ibv_free_device_list(list);
    return c;
}

static bool connect_qp(struct ibv_qp *q, uint32_t to, uint16_t lid)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS};
    if (ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        return false;
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = to;
    a.ah_attr.dlid = lid;
    a.ah_attr.port_num = 1;
    a.max_dest_rd_atomic = 1;
    if (ibv_modify_qp(q, &a,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        return false;
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 14;
    a.retry_cnt = 3;
    return !ibv_modify_qp(q, &a,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

/* Copies the first 100 bytes of the region to the next 100, through two QPs of the domain. */
static void write_region_half(struct ibv_pd *pd, struct ibv_mr *mr, uint64_t iova)
{
    struct ibv_cq *cq = ibv_create_cq(pd->context, 8, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
    struct ibv_qp *a = ibv_create_qp(pd, &init), *b = ibv_create_qp(pd, &init);
    struct ibv_port_attr port;
    EXPECT(a && b && !ibv_query_port(pd->context, 1, &port));
    EXPECT(connect_qp(a, b->qp_num, port.lid) && connect_qp(b, a->qp_num, port.lid));
    struct ibv_sge sge = {iova, 100, mr->lkey};
    struct ibv_send_wr *bad,
        wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.rdma.remote_addr = iova + 100;
    wr.wr.rdma.rkey = mr->rkey;
    EXPECT(!ibv_post_send(a, &wr, &bad));
    struct ibv_wc wc = {0};
    while (ibv_poll_cq(cq, 1, &wc) == 0)
        ;
    EXPECT(wc.status == IBV_WC_SUCCESS);
    EXPECT(!ibv_destroy_qp(a) && !ibv_destroy_qp(b) && !ibv_destroy_cq(cq));
}

static void import_and_write(int fd, const struct handles *h, bool same_process)
{
    struct ibv_context *c = ibv_import_device(fd);
    EXPECT(c && c->cmd_fd == fd);
    if (!c)
        return;
    struct ibv_pd *pd = ibv_import_pd(c, h->pd);
    EXPECT(pd && pd->handle == h->pd);
    struct ibv_mr *mr = pd ? ibv_import_mr(pd, h->shared) : NULL;
    EXPECT(mr && mr->rkey == h->rkey);
    if (!mr)
        return;
    write_region_half(pd, mr, h->iova);

    errno = 0;
    EXPECT(!ibv_import_pd(c, 0x12345678) && errno == ENOENT);
    EXPECT(!ibv_import_mr(pd, 1u << 30) && errno == ENOENT);
    EXPECT(!ibv_import_mr(pd, h->shared ^ 0x8000) && errno == ENOENT);
    struct ibv_mr *unshared = ibv_import_mr(pd, h->unshared);
    EXPECT((unshared != NULL) == same_process && (unshared || errno == EOPNOTSUPP));
    if (unshared)
        ibv_unimport_mr(unshared);
    struct ibv_pd *own = ibv_alloc_pd(c);
    EXPECT(own && !ibv_import_mr(own, h->shared) && errno == ENOENT); /* a region of another domain */
    EXPECT(!ibv_dealloc_pd(own));
    ibv_unimport_mr(mr);
    ibv_unimport_pd(pd);
    EXPECT(!ibv_close_device(c) && fcntl(fd, F_GETFD) < 0);
}

static void send_descriptor(int to, int fd, const struct handles *h)
{
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct handles copy = *h;
    struct iovec iov = {&copy, sizeof(copy)};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    EXPECT(sendmsg(to, &m, 0) == sizeof(copy));
}

static int run_importer(int from)
{
    char control[CMSG_SPACE(sizeof(int))];
    struct handles h;
    struct iovec iov = {&h, sizeof(h)};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    int fd = -1;
    EXPECT(recvmsg(from, &m, MSG_CMSG_CLOEXEC) == sizeof(h) && CMSG_FIRSTHDR(&m));
    if (failures)
        return 1;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
    import_and_write(fd, &h, false);
    return failures != 0;
}

static void expect_written(const char *at, const char *by)
{
    if (memcmp(at, at + 100, 100)) {
        printf("FAILED: the region was not written by %s\n", by);
        failures++;
    }
}

int main(void)
{
    static char unshared[BYTES];
    int pair[2];
    EXPECT(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
    const pid_t child = fork();
    if (!child) {
        close(pair[0]);
        return run_importer(pair[1]);
    }
    close(pair[1]);
    int file = memfd_create("t_import", MFD_CLOEXEC);
    EXPECT(!ftruncate(file, 4 * BYTES));
    char *shared = mmap(NULL, 4 * BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    struct ibv_context *c = open_first();
    struct ibv_pd *pd = c ? ibv_alloc_pd(c) : NULL;
    EXPECT(pd && shared != MAP_FAILED);
    if (failures)
        return 1;
    shared += 4200; /* not at the start of a page, and with an iova of its own */
    const uint64_t iova = 0x10000000;
    struct ibv_mr *mr = ibv_reg_mr_iova(pd, shared, BYTES, iova, ACCESS);
    struct ibv_mr *lone = ibv_reg_mr(pd, unshared, BYTES, ACCESS);
    EXPECT(mr && lone);
    const struct handles h = {pd->handle, mr->handle, lone->handle, mr->rkey, iova};

    memset(shared, 'a', 100);
    import_and_write(dup(c->cmd_fd), &h, true);
    expect_written(shared, "another context");
    memset(shared, 'b', 100);
    int status = -1;
    send_descriptor(pair[0], c->cmd_fd, &h);
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
    expect_written(shared, "another process");
    write_region_half(pd, mr, iova); /* the owner's region remains valid after its imports are gone */

    int other = memfd_create("no-device", MFD_CLOEXEC);
    errno = 0;
    EXPECT(!ibv_import_device(-1) && errno == EBADF);
    EXPECT(!ibv_import_device(other) && errno == ENODEV && fcntl(other, F_GETFD) >= 0);
    EXPECT(!ibv_dereg_mr(mr) && !ibv_dereg_mr(lone) && !ibv_dealloc_pd(pd) && !ibv_close_device(c));
    return failures != 0;
}
