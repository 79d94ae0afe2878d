/* cq_ex.c: the extended interface for polling a completion queue: start, next, end, and one read function per
 * field.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verbs/verbs.h"

#define SUPPORTED                                                             \
    (IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG | \
     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

#define STAMPS (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

static struct cq *cq_from_ex(struct ibv_cq_ex *c)
{
    return CONTAINER_OF(c, struct cq, ex);
}

static int pop_completion(struct cq *cq)
{
    struct sh_cq *s = cq->sh;
    if (cq->cursor == atomic_load_explicit(&s->tail, memory_order_acquire))
        return ENOENT;
    struct sh_cqe *ring = cq_ring(proc.self, s);
    cq->now = ring[cq->cursor++ & (atomic_load(&s->size) - 1)];
    cq->ex.wr_id = cq->now.wr_id;
    cq->ex.status = cq->now.status;
    return 0;
}

static void free_send_slot(struct cq *cq)
{
    if (cq->now.is_send)
        cq_free_send_slots(&cq->now);
}

static int cq_start_poll(struct ibv_cq_ex *c, struct ibv_poll_cq_attr *a)
{
    struct cq *cq = cq_from_ex(c);
    if (a && a->comp_mask)
        return EINVAL;
    engine_poll();
    spinlock_acquire(&cq->poll_lock);
    cq->cursor = atomic_load(&cq->sh->head);
    int r = pop_completion(cq);
    if (r)
        spinlock_release(&cq->poll_lock);
    return r;
}

static int cq_next_poll(struct ibv_cq_ex *c)
{
    struct cq *cq = cq_from_ex(c);
    free_send_slot(cq);
    cq->now.is_send = 0;
    return pop_completion(cq);
}

static void cq_end_poll(struct ibv_cq_ex *c)
{
    struct cq *cq = cq_from_ex(c);
    free_send_slot(cq);
    atomic_store_explicit(&cq->sh->head, cq->cursor, memory_order_release);
    spinlock_release(&cq->poll_lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *c)
{
    return cq_from_ex(c)->now.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *c)
{
    (void)c;
    return 0;
}

static uint32_t read_byte_len(struct ibv_cq_ex *c)
{
    return cq_from_ex(c)->now.byte_len;
}

static __be32 read_imm(struct ibv_cq_ex *c)
{
    return cq_from_ex(c)->now.imm;
}

static uint32_t read_qp_num(struct ibv_cq_ex *c)
{
    return cq_from_ex(c)->now.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *c)
{
    return cq_from_ex(c)->now.src_qp;
}

static unsigned read_flags(struct ibv_cq_ex *c)
{
    return cq_from_ex(c)->now.wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *c)
{
    return cq_from_ex(c)->now.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *c)
{
    return cq_from_ex(c)->now.sl;
}

static uint8_t read_path_bits(struct ibv_cq_ex *c)
{
    return cq_from_ex(c)->now.path_bits;
}

/* Fields of raw packets and flow steering, which softib does not have. */
static uint16_t read_cvlan(struct ibv_cq_ex *c)
{
    (void)c;
    return 0;
}

static uint32_t read_flow_tag(struct ibv_cq_ex *c)
{
    (void)c;
    return 0;
}

static uint64_t read_stamp(struct ibv_cq_ex *c)
{
    return cq_from_ex(c)->now.stamp;
}

static uint64_t read_wallclock(struct ibv_cq_ex *c)
{
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    uint64_t wall = (uint64_t)real.tv_sec * NS_S + (uint64_t)real.tv_nsec;
    return wall - (now_ns() - cq_from_ex(c)->now.stamp);
}

struct ibv_cq_ex *cq_create_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *a)
{
    if (!ctx_has_feature(ctx_from_ibv(c), FEATURE_CQ_EX)) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    if (a->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD) ||
        a->wc_flags & ~(uint64_t)SUPPORTED || (int)a->comp_vector >= c->num_comp_vectors) {
        errno = a->comp_vector ? EINVAL : EOPNOTSUPP;
        return NULL;
    }
    struct cq *cq = cq_make(c, a->cqe, a->cq_context, a->channel);
    if (!cq)
        return NULL;
    cq->is_ex = true;
    atomic_store(&cq->sh->stamped, (a->wc_flags & STAMPS) != 0);
    cq->ex.start_poll = cq_start_poll;
    cq->ex.next_poll = cq_next_poll;
    cq->ex.end_poll = cq_end_poll;
    cq->ex.read_opcode = read_opcode;
    cq->ex.read_vendor_err = read_vendor_err;
    cq->ex.read_wc_flags = read_flags;
    cq->ex.read_byte_len = read_byte_len;
    cq->ex.read_imm_data = read_imm;
    cq->ex.read_qp_num = read_qp_num;
    cq->ex.read_src_qp = read_src_qp;
    cq->ex.read_slid = read_slid;
    cq->ex.read_sl = read_sl;
    cq->ex.read_dlid_path_bits = read_path_bits;
    cq->ex.read_cvlan = read_cvlan;
    cq->ex.read_flow_tag = read_flow_tag;
    cq->ex.read_completion_ts = read_stamp;
    cq->ex.read_completion_wallclock_ns = read_wallclock;
    return &cq->ex;
}
