/* t_wrong_calls.c: the error numbers that verbs calls return for invalid arguments, objects in use and
 * wrong states.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "wrong_use.h"
#include <errno.h>

/* Executes a call that creates an object, prints its error number, and destroys the object if the call
 * succeeded. */
#define REPORT_CREATE(call, destroy)        \
    do {                                    \
        errno = 0;                          \
        void *made = (call);                \
        print_errno(out, made ? 0 : errno); \
        if (made)                           \
            destroy(made);                  \
    } while (0)

static struct ibv_device_attr get_device_limits(struct vt *t)
{
    struct ibv_device_attr a;
    CHECK(!ibv_query_device(t->ctx, &a));
    return a;
}

static void try_cq_without_entries(struct vt *t, char *out)
{
    REPORT_CREATE(ibv_create_cq(t->ctx, 0, NULL, NULL, 0), ibv_destroy_cq);
}

static void try_cq_with_too_many_entries(struct vt *t, char *out)
{
    REPORT_CREATE(ibv_create_cq(t->ctx, get_device_limits(t).max_cqe + 1, NULL, NULL, 0), ibv_destroy_cq);
}

static void try_cq_with_wrong_vector(struct vt *t, char *out)
{
    REPORT_CREATE(ibv_create_cq(t->ctx, ENTRIES, NULL, t->ch, t->ctx->num_comp_vectors), ibv_destroy_cq);
}

static void try_resize_cq_beyond_limit(struct vt *t, char *out)
{
    print_errno(out, ibv_resize_cq(t->cq, get_device_limits(t).max_cqe + 1));
}

static void try_destroy_cq_in_use(struct vt *t, char *out)
{
    struct ibv_qp *qp = create_qp(t, IBV_QPT_RC, 1, 1, 0);
    print_errno(out, ibv_destroy_cq(t->cq));
    CHECK(!ibv_destroy_qp(qp));
}

static void try_mr_with_wrong_access(struct vt *t, char *out)
{
    REPORT_CREATE(ibv_reg_mr(t->pd, t->buf, 4096, IBV_ACCESS_REMOTE_WRITE), ibv_dereg_mr);
}

static void try_mr_of_unmapped_memory(struct vt *t, char *out)
{
    REPORT_CREATE(ibv_reg_mr(t->pd, (void *)(uintptr_t)4096, 4096, IBV_ACCESS_LOCAL_WRITE), ibv_dereg_mr);
}

static void try_dealloc_pd_in_use(struct vt *t, char *out)
{
    print_errno(out, ibv_dealloc_pd(t->pd));
}

static void try_qp_with_too_many_requests(struct vt *t, char *out)
{
    REPORT_CREATE(create_qp(t, IBV_QPT_RC, (uint32_t)get_device_limits(t).max_qp_wr + 1, 1, 0),
                  ibv_destroy_qp);
}

static void try_qp_with_too_many_pieces(struct vt *t, char *out)
{
    REPORT_CREATE(create_qp(t, IBV_QPT_RC, 1, (uint32_t)get_device_limits(t).max_sge + 1, 0), ibv_destroy_qp);
}

static void try_qp_with_too_much_inline(struct vt *t, char *out)
{
    REPORT_CREATE(create_qp(t, IBV_QPT_RC, 1, 1, 1u << 20), ibv_destroy_qp);
}

static void report_modify(struct vt *t, char *out, struct ibv_qp_attr a, int mask)
{
    struct ibv_qp *qp = create_qp(t, IBV_QPT_RC, 1, 1, 0);
    print_errno(out, ibv_modify_qp(qp, &a, mask));
    CHECK(!ibv_destroy_qp(qp));
}

static void try_qp_skipping_states(struct vt *t, char *out)
{
    report_modify(t, out, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS}, IBV_QP_STATE);
}

static void try_init_without_port(struct vt *t, char *out)
{
    report_modify(t, out, (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT}, IBV_QP_STATE);
}

static void try_init_with_wrong_port(struct vt *t, char *out)
{
    report_modify(t, out, (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 99},
                  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static void try_init_with_wrong_pkey(struct vt *t, char *out)
{
    report_modify(t, out, (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1, .pkey_index = 0xfffe},
                  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static void try_init_with_qkey(struct vt *t, char *out)
{
    report_modify(t, out, (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1},
                  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS | IBV_QP_QKEY);
}

static void try_send_in_reset(struct vt *t, char *out)
{
    struct ibv_qp *qp = create_qp(t, IBV_QPT_RC, 1, 1, 0);
    print_errno(out, post_send(qp, t, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8));
    CHECK(!ibv_destroy_qp(qp));
}

static void try_receive_in_reset(struct vt *t, char *out)
{
    struct ibv_qp *qp = create_qp(t, IBV_QPT_RC, 1, 1, 0);
    print_errno(out, post_receive(qp, t, 8, t->mr->lkey));
    CHECK(!ibv_destroy_qp(qp));
}

static void try_srq_with_too_many_requests(struct vt *t, char *out)
{
    struct ibv_srq_init_attr a = {
        .attr = {.max_wr = (uint32_t)get_device_limits(t).max_srq_wr + 1, .max_sge = 1}};
    REPORT_CREATE(ibv_create_srq(t->pd, &a), ibv_destroy_srq);
}

static void try_srq_limit_above_size(struct vt *t, char *out)
{
    struct ibv_srq_init_attr a = {.attr = {.max_wr = ENTRIES, .max_sge = 1}};
    struct ibv_srq_attr limit = {.srq_limit = 1u << 20};
    struct ibv_srq *srq = ibv_create_srq(t->pd, &a);
    CHECK(srq);
    print_errno(out, ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
    CHECK(!ibv_destroy_srq(srq));
}

static void try_destroy_srq_in_use(struct vt *t, char *out)
{
    struct ibv_srq_init_attr a = {.attr = {.max_wr = ENTRIES, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(t->pd, &a);
    struct ibv_qp_init_attr q = {.send_cq = t->cq,
                                 .recv_cq = t->cq,
                                 .srq = srq,
                                 .qp_type = IBV_QPT_RC,
                                 .cap = {.max_send_wr = 1, .max_send_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(t->pd, &q);
    CHECK(srq && qp);
    print_errno(out, ibv_destroy_srq(srq));
    CHECK(!ibv_destroy_qp(qp));
    ibv_destroy_srq(srq);
}

static void try_query_port_0(struct vt *t, char *out)
{
    struct ibv_port_attr a;
    print_errno(out, ibv_query_port(t->ctx, 0, &a));
}

static void try_query_port_99(struct vt *t, char *out)
{
    struct ibv_port_attr a;
    print_errno(out, ibv_query_port(t->ctx, 99, &a));
}

static void try_query_wrong_pkey(struct vt *t, char *out)
{
    __be16 key;
    print_errno(out, ibv_query_pkey(t->ctx, 1, t->port.pkey_tbl_len, &key) ? -1 : 0);
}

static void try_ah_with_wrong_port(struct vt *t, char *out)
{
    struct ibv_ah_attr a = {.dlid = t->port.lid, .port_num = 99};
    REPORT_CREATE(ibv_create_ah(t->pd, &a), ibv_destroy_ah);
}

static void report_group_call(struct vt *t, char *out, enum ibv_qp_type type, uint8_t first, bool leave)
{
    union ibv_gid gid = {.raw = {first, 0x12, [15] = 1}};
    struct ibv_qp *qp = create_qp(t, type, 1, 1, 0);
    CHECK(qp);
    print_errno(out, leave ? ibv_detach_mcast(qp, &gid, 0xc001) : ibv_attach_mcast(qp, &gid, 0xc001));
    CHECK(!ibv_destroy_qp(qp));
}

static void try_attach_rc_qp(struct vt *t, char *out)
{
    report_group_call(t, out, IBV_QPT_RC, 0xff, false);
}

static void try_attach_unicast_gid(struct vt *t, char *out)
{
    report_group_call(t, out, IBV_QPT_UD, 0xfe, false);
}

static void try_detach_without_attach(struct vt *t, char *out)
{
    report_group_call(t, out, IBV_QPT_UD, 0xff, true);
}

static const struct wrong_use uses[] = {
    {"create_cq: no entries", "EINVAL", try_cq_without_entries, NULL},
    {"create_cq: more entries than max_cqe", "EINVAL", try_cq_with_too_many_entries, NULL},
    {"create_cq: vector that is not there", "EINVAL", try_cq_with_wrong_vector, NULL},
    {"resize_cq: more entries than max_cqe", "EINVAL", try_resize_cq_beyond_limit, NULL},
    {"destroy_cq: a queue pair uses it", "EBUSY", try_destroy_cq_in_use, NULL},
    {"reg_mr: remote write without local write", "EINVAL", try_mr_with_wrong_access, NULL},
    {"reg_mr: memory that is not mapped", "EFAULT", try_mr_of_unmapped_memory, NULL},
    {"dealloc_pd: a region uses it", "EBUSY", try_dealloc_pd_in_use, NULL},
    {"create_qp: more requests than max_qp_wr", "EINVAL", try_qp_with_too_many_requests, NULL},
    {"create_qp: more pieces than max_sge", "EINVAL", try_qp_with_too_many_pieces, NULL},
    {"create_qp: 1 MiB inline", "EINVAL", try_qp_with_too_much_inline, NULL},
    {"modify_qp: RESET to RTS", "EINVAL", try_qp_skipping_states, NULL},
    {"modify_qp: INIT without a port", "EINVAL", try_init_without_port, NULL},
    {"modify_qp: INIT with a port that is not there", "EINVAL", try_init_with_wrong_port, NULL},
    {"modify_qp: INIT with a P_Key index that is not there", "EINVAL", try_init_with_wrong_pkey, "0"},
    {"modify_qp: INIT of an RC queue pair with a Q_Key", "EINVAL", try_init_with_qkey, NULL},
    {"create_srq: more requests than max_srq_wr", "EINVAL", try_srq_with_too_many_requests, NULL},
    {"modify_srq: limit above its size", "EINVAL", try_srq_limit_above_size, NULL},
    {"destroy_srq: a queue pair uses it", "EBUSY", try_destroy_srq_in_use, NULL},
    {"query_port: port 0", "EINVAL", try_query_port_0, NULL},
    {"query_port: port 99", "EINVAL", try_query_port_99, NULL},
    {"query_pkey: index that is not there", "-1", try_query_wrong_pkey, NULL},
    {"create_ah: port that is not there", "EINVAL", try_ah_with_wrong_port, NULL},
    {"attach_mcast: an RC queue pair", "EINVAL", try_attach_rc_qp, NULL},
    {"attach_mcast: a GID that is no group", "EINVAL", try_attach_unicast_gid, NULL},
    {"detach_mcast: not attached", "EINVAL", try_detach_without_attach, NULL},
    {"post_send: state RESET", "EINVAL", try_send_in_reset, NULL},
    {"post_recv: state RESET", "EINVAL", try_receive_in_reset, NULL},
};

static void run_table(struct vt *t)
{
    run_wrong_uses(t, uses, sizeof(uses) / sizeof(uses[0]));
}

int main(void)
{
    return vt_run(run_table);
}
