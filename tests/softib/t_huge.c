/* t_huge.c: registration leaves new memory in small pages. Memory that is used again is collapsed into
 * huge pages, and from then on new memory too, for a while: a program that never reuses memory does not
 * pay the cost of collapsing forever.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#define HUGE    (2ul << 20)
#define REGIONS 40
#define ENOUGH  100000000 /* polls of another thread's progress */

/* Returns the KiB in huge pages of the mapping that contains the address. */
static long get_huge_page_kib(const void *p)
{
    char line[512];
    unsigned long from, to;
    long kib = 0;
    int here = 0;
    FILE *f = fopen("/proc/self/smaps", "r");
    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            here = (uintptr_t)p >= from && (uintptr_t)p < to;
        else if (here && sscanf(line, "AnonHugePages: %ld", &kib) == 1)
            break;
    }
    if (f)
        fclose(f);
    return kib;
}

static int report_failure(const char *what)
{
    fprintf(stderr, "t_huge: %s\n", what);
    return 1;
}

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;

/* Maps new memory of the size of a huge page in small pages, or returns NULL. Inaccessible pages around it
 * keep it a separate mapping. */
static char *map_small_pages(int fill)
{
    char *room = mmap(NULL, 3 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return NULL;
    char *block = (char *)(((uintptr_t)room + HUGE) & ~(HUGE - 1));
    if (mprotect(block, HUGE, PROT_READ | PROT_WRITE))
        return NULL;
    memset(block, fill, HUGE);
    return block;
}

static int can_collapse_pages(void)
{
    char *block = map_small_pages(1);
    return block && !get_huge_page_kib(block) && !madvise(block, HUGE, MADV_COLLAPSE) &&
           get_huge_page_kib(block);
}

/* Registers the given number of new blocks, one after the other; returns how many of them were collapsed,
 * or -1. */
static int register_new_blocks(int regions)
{
    int huge = 0;
    for (int i = 0; i < regions; i++) {
        char *block = map_small_pages(i);
        struct ibv_mr *mr = block ? ibv_reg_mr(pd, block, HUGE, IBV_ACCESS_LOCAL_WRITE) : NULL;
        if (!mr)
            return -1;
        huge += get_huge_page_kib(block) != 0;
        for (size_t k = 0; k < HUGE; k += 4096)
            if (block[k] != (char)i)
                return -1;
        ibv_dereg_mr(mr);
        munmap(block, HUGE);
    }
    return huge;
}

/* Creates a queue pair that is connected to itself. */
static int connect_qp(struct ibv_context *context)
{
    struct ibv_port_attr port;
    cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};
    qp = cq ? ibv_create_qp(pd, &init) : NULL;
    if (!qp || ibv_query_port(context, 1, &port))
        return -1;
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        return -1;
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = port.active_mtu,
                             .dest_qp_num = qp->qp_num,
                             .max_dest_rd_atomic = 1,
                             .min_rnr_timer = 1,
                             .ah_attr = {.dlid = port.lid, .port_num = 1}};
    if (ibv_modify_qp(qp, &a,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        return -1;
    a = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    return ibv_modify_qp(qp, &a,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC);
}

static int write_region(const struct ibv_mr *from, const struct ibv_mr *to)
{
    struct ibv_sge sge = {.addr = (uintptr_t)from->addr, .length = HUGE, .lkey = from->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = (uintptr_t)to->addr, .rkey = to->rkey}},
                       *bad;
    struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
    if (ibv_post_send(qp, &wr, &bad))
        return -1;
    while (ibv_poll_cq(cq, 1, &wc) == 0)
        sched_yield();
    return wc.status == IBV_WC_SUCCESS ? 0 : -1;
}

/* Reuses registered memory until it is in huge pages. */
static int reuse_until_collapsed(void)
{
    char *from = map_small_pages(3), *to = map_small_pages(4);
    struct ibv_mr *source = from ? ibv_reg_mr(pd, from, HUGE, IBV_ACCESS_LOCAL_WRITE) : NULL;
    struct ibv_mr *target =
        to ? ibv_reg_mr(pd, to, HUGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) : NULL;
    if (!source || !target)
        return report_failure("cannot register memory");
    if (write_region(source, target) || memcmp(from, to, HUGE) != 0)
        return report_failure("an RDMA WRITE failed");
    if (get_huge_page_kib(to))
        return report_failure("memory was collapsed after its first use");
    for (int i = 0; i < 3; i++)
        if (write_region(source, target))
            return report_failure("an RDMA WRITE failed");
    for (int i = 0; i < ENOUGH && !get_huge_page_kib(to); i++)
        sched_yield();
    if (!get_huge_page_kib(to) || memcmp(from, to, HUGE) != 0)
        return report_failure("memory was not collapsed although it was used again");
    ibv_dereg_mr(source);
    ibv_dereg_mr(target);
    return 0;
}

int main(void)
{
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    struct ibv_context *context = list && n > 0 ? ibv_open_device(list[0]) : NULL;
    pd = context ? ibv_alloc_pd(context) : NULL;
    if (!pd)
        return report_failure("cannot open a device");
    if (!can_collapse_pages())
        return 77;
    if (register_new_blocks(REGIONS) != 0)
        return report_failure("memory was collapsed at its first registration");
    if (connect_qp(context))
        return report_failure("cannot create a queue pair");
    if (reuse_until_collapsed())
        return 1;
    n = register_new_blocks(REGIONS);
    if (n <= 0)
        return report_failure("new memory was not collapsed after other memory had been reused");
    if (n == REGIONS)
        return report_failure("new memory is still collapsed although memory is never reused");
    ibv_destroy_qp(qp);
    ibv_destroy_cq(cq);
    ibv_dealloc_pd(pd);
    ibv_close_device(context);
    ibv_free_device_list(list);
    return 0;
}
