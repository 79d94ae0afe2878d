/* net.c: opens the adapter, and creates and connects queue pairs of each transport type to each peer (net.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "net.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/fishplate/command.h"
#include "api/inside.h"
#include "boot/launch_env.h"

enum {
    STRIDE = LOGP_SLOT + 64, /* the word `done` is at the end */
    OUT = LOGP_PEERS * STRIDE,
    SINK = OUT + LOGP_SLOT,
    MEMORY = SINK + LOGP_SLOT + 4096,
    QUEUE = 4 * LOGP_PEERS,
    INLINE = 64,
    QKEY = 0x11111111,
    POLLS_BEFORE_YIELD = 20000,
    TIMEOUT_SECONDS = 20
};

void logp_abort_job(const char *what)
{
    fprintf(stderr, "fishplate-lab logp: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

void logp_pause_polling(struct logp_polling *p)
{
    if (++p->polls < POLLS_BEFORE_YIELD)
        return;
    const double now = ib_now_seconds();
    if (p->since == 0)
        p->since = now;
    if (now - p->since > TIMEOUT_SECONDS)
        logp_abort_job("a message did not arrive within 20 seconds");
    sched_yield();
}

static void net_load(struct logp_net *n)
{
    const char *path = getenv(ENV_SOFTIB_LIB);
    const bool softib = n->port.made == NET_SOFTIB_MEMORY || n->port.made == NET_SOFTIB_TCP;
    void *library = dlopen(softib && path ? path : "libibverbs.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
        logp_abort_job(dlerror());
#define FIND(result, name, args)                                     \
    *(void **)(void *)&n->verbs.name = dlsym(library, "ibv_" #name); \
    if (!n->verbs.name)                                              \
        logp_abort_job("libibverbs has no function ibv_" #name);
    VERBS_FUNCTIONS(FIND)
#undef FIND
}

static void net_find_port(struct logp_net *n)
{
    struct net_port *ports = NULL;
    size_t count = 0;
    const char *why = "no adapter";
    if (get_library_table()->ports(&ports, &count, &why) != 0)
        logp_abort_job(why);
    bool found = false;
    for (size_t i = 0; i < count && !found; i++)
        if (ports[i].chosen) {
            n->port = ports[i];
            found = true;
        }
    free(ports);
    if (!found)
        logp_abort_job(
            "this job uses no adapter: start it on several nodes, for example with mpiexec -vnodes 2");
}

static void net_open_device(struct logp_net *n)
{
    struct ibv_device **list = n->verbs.get_device_list(NULL);
    for (int i = 0; list && list[i] && !n->context; i++)
        if (strcmp(n->verbs.get_device_name(list[i]), n->port.device) == 0)
            n->context = n->verbs.open_device(list[i]);
    if (list)
        n->verbs.free_device_list(list);
    if (!n->context)
        logp_abort_job("the adapter cannot be opened");
    /* Shared memory, as for the library's flags, so that a software adapter in another process can write
     * to it. */
    int fd = memfd_create("fishplate-logp", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, MEMORY) != 0)
        logp_abort_job("out of memory");
    n->memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    n->pd = n->verbs.alloc_pd(n->context);
    n->sent = n->verbs.create_cq(n->context, 4 * QUEUE, NULL, NULL, 0);
    n->received = n->verbs.create_cq(n->context, LOGP_PEERS * LOGP_RECEIVES, NULL, NULL, 0);
    if (n->memory == MAP_FAILED || !n->pd || !n->sent || !n->received)
        logp_abort_job("the adapter cannot create a protection domain and two completion queues");
    n->mr = n->verbs.reg_mr(n->pd, n->memory, MEMORY,
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                IBV_ACCESS_REMOTE_ATOMIC);
    if (!n->mr)
        logp_abort_job("memory cannot be registered");
    n->out = n->memory + OUT;
    n->sink = n->memory + SINK;
}

static enum ibv_qp_type qp_type(enum logp_type t)
{
    return t == LOGP_RC ? IBV_QPT_RC : t == LOGP_UC ? IBV_QPT_UC : IBV_QPT_UD;
}

static void link_create(struct logp_net *n, struct logp_link *l, struct logp_address *mine)
{
    l->slot = n->memory + (size_t)l->peer * STRIDE;
    *mine = (struct logp_address){.rkey = n->mr->rkey,
                                  .slot = (uintptr_t)l->slot,
                                  .subnet = n->port.subnet,
                                  .lid = n->port.lid,
                                  .mtu = n->port.mtu,
                                  .roce = n->port.link == NET_ROCE};
    memcpy(mine->gid, n->port.gid, sizeof(mine->gid));
    for (int t = 0; t < LOGP_TYPES; t++) {
        struct ibv_qp_init_attr a = {.send_cq = n->sent,
                                     .recv_cq = n->received,
                                     .cap = {.max_send_wr = QUEUE,
                                             .max_recv_wr = LOGP_RECEIVES,
                                             .max_send_sge = 1,
                                             .max_recv_sge = 1,
                                             .max_inline_data = INLINE},
                                     .qp_type = qp_type((enum logp_type)t)};
        struct ibv_qp_attr i = {.qp_state = IBV_QPS_INIT, .port_num = n->port.port, .qkey = QKEY};
        int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
        l->qp[t] = n->verbs.create_qp(n->pd, &a);
        if (!l->qp[t])
            continue; /* some adapters lack some types of queue pairs */
        i.qp_access_flags =
            IBV_ACCESS_REMOTE_WRITE | (t == LOGP_RC ? IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC : 0);
        mask |= t == LOGP_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
        if (n->verbs.modify_qp(l->qp[t], &i, mask) != 0)
            logp_abort_job("a queue pair cannot be initialised");
        mine->qpn[t] = l->qp[t]->qp_num;
    }
    if (!l->qp[LOGP_RC])
        logp_abort_job("the adapter cannot create another reliable connection");
}

static enum ibv_mtu mtu_from_bytes(unsigned bytes)
{
    return bytes >= 4096   ? IBV_MTU_4096
           : bytes >= 2048 ? IBV_MTU_2048
           : bytes >= 1024 ? IBV_MTU_1024
           : bytes >= 512  ? IBV_MTU_512
                           : IBV_MTU_256;
}

static void net_route(const struct logp_net *n, const struct logp_address *to, struct ibv_ah_attr *a)
{
    *a = (struct ibv_ah_attr){.dlid = to->lid, .port_num = n->port.port};
    if (!to->roce && to->subnet == n->port.subnet)
        return;
    a->is_global = 1;
    memcpy(a->grh.dgid.raw, to->gid, sizeof(to->gid));
    a->grh.sgid_index = (uint8_t)n->port.gid_index;
    a->grh.hop_limit = 64;
}

static int link_connect_qp(struct logp_net *n, struct logp_link *l, int t)
{
    struct ibv_qp_attr r = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = mtu_from_bytes(l->far.mtu < n->port.mtu ? l->far.mtu : n->port.mtu),
                            .dest_qp_num = l->far.qpn[t],
                            .max_dest_rd_atomic = 4,
                            .min_rnr_timer = 1};
    struct ibv_qp_attr s = {
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4};
    int to_rtr = IBV_QP_STATE, to_rts = IBV_QP_STATE | IBV_QP_SQ_PSN;
    net_route(n, &l->far, &r.ah_attr);
    if (t != LOGP_UD)
        to_rtr |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (t == LOGP_RC) {
        to_rtr |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        to_rts |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    int rc = n->verbs.modify_qp(l->qp[t], &r, to_rtr);
    return rc ? rc : n->verbs.modify_qp(l->qp[t], &s, to_rts);
}

static void link_connect(struct logp_net *n, struct logp_link *l)
{
    struct ibv_ah_attr a;
    net_route(n, &l->far, &a);
    l->ah = n->verbs.create_ah(n->pd, &a);
    for (int t = 0; t < LOGP_TYPES; t++) {
        if (l->qp[t] && l->far.qpn[t] && link_connect_qp(n, l, t) == 0)
            continue;
        if (t == LOGP_RC)
            logp_abort_job("a reliable connection cannot be made");
        if (l->qp[t])
            n->verbs.destroy_qp(l->qp[t]);
        l->qp[t] = NULL;
    }
    if (!l->ah && l->qp[LOGP_UD])
        logp_abort_job("an address handle cannot be made");
    for (int t = 0; t < LOGP_TYPES; t++)
        for (int i = 0; l->qp[t] && i < LOGP_RECEIVES / 2; i++)
            logp_post_receive(n, l, (enum logp_type)t);
}

void logp_net_open(struct logp_net *n, const struct ib_rank *r, int peers)
{
    const int others = r->bench.size - 1;
    *n = (struct logp_net){.hub = r->bench.rank == 0, .peers = peers};
    if (others < 1)
        logp_abort_job("at least two ranks are needed (--ranks 2)");
    net_find_port(n);
    net_load(n);
    net_open_device(n);
    for (int i = 0; i < peers; i++)
        if (n->hub || r->bench.rank == 1 + i % others) {
            struct logp_link *l = &n->link[n->links++];
            struct logp_address mine;
            l->peer = i;
            l->rank = n->hub ? 1 + i % others : 0;
            link_create(n, l, &mine);
            MPI_Sendrecv(&mine, sizeof(mine), MPI_BYTE, l->rank, i, &l->far, sizeof(l->far), MPI_BYTE,
                         l->rank, i, r->bench.comm, MPI_STATUS_IGNORE);
            link_connect(n, l);
        }
    MPI_Barrier(r->bench.comm);
}

void logp_net_close(struct logp_net *n)
{
    MPI_Barrier(MPI_COMM_WORLD); /* afterwards no peer writes to the memory */
    for (int i = 0; i < n->links; i++) {
        for (int t = 0; t < LOGP_TYPES; t++)
            if (n->link[i].qp[t])
                n->verbs.destroy_qp(n->link[i].qp[t]);
        if (n->link[i].ah)
            n->verbs.destroy_ah(n->link[i].ah);
    }
    n->verbs.dereg_mr(n->mr);
    n->verbs.destroy_cq(n->sent);
    n->verbs.destroy_cq(n->received);
    n->verbs.dealloc_pd(n->pd);
    n->verbs.close_device(n->context);
    munmap(n->memory, MEMORY);
}

bool logp_adapter_supports(const struct logp_net *n, const struct logp_verb *v)
{
    return n->link[0].qp[v->type] != NULL;
}
