/* lane.c: delivers multicast packets to the members of this machine. A thread that delivers to a member, of
 * the member's process or of another one, holds the member's lock, and so does a thread that changes the
 * member's bits in `asleep` and `dozing`.
 *
 * No sleeping member misses a packet: a program that is about to sleep sets its bit and then checks for
 * packets; a sender publishes its packet and then checks the bits. A thread that delivers to a sleeping
 * member clears the bit only if the member has an event (its CQ is not armed any more), and checks for
 * packets again after it has released the lock. A member that fetched an event of another CQ since it
 * armed this one is probably awake, and its bit is in `dozing`: only a sender that checks again after a
 * while delivers to it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "local/lane.h"
#include "hca/send_queue.h"
#include "local/local.h"
#include "memory/gpu.h"
#include <stdlib.h>

#define PATIENCE 10000 /* failed attempts after which a thread checks whether the lock owner is alive */
#define LATE     NS_MS /* age of a packet after which its sender wakes sleeping members itself */
#define STUCK    NS_S  /* limit of a sender's wait for a process that is delivering */

_Static_assert(sizeof(struct request) <= LANE_HEAD, "a packet has room for its request");
_Static_assert(GROUP_QPS <= 64 * LANE_WORDS, "a bit for each member");

/* A QP of this process in a group. */
struct membership {
    struct membership *next;
    int row, i;
    uint32_t cq;
    uint64_t seen; /* packet count of the lane at the last search for sleeping members */
    unsigned refused;
};

_Atomic uint64_t lane_delivered;
atomic_uint lane_memberships;
static struct lock mine_lock;
static struct membership *mine;
static _Atomic uint64_t sent[GROUPS]; /* for each lane: number of this process's last packet + 1 */
static _Atomic uint64_t
    lanes_to_search[GROUPS / 64]; /* lanes whose sleeping members are searched by `later` */
static void run_lane_task(struct task *t);
static struct task later = {.run = run_lane_task};

static bool try_lock(struct shlock *l)
{
    unsigned zero = 0;
    return atomic_compare_exchange_strong(&l->owner, &zero, shlock_self);
}

static void release_dead_owner_lock(struct shlock *l)
{
    unsigned owner = atomic_load(&l->owner);
    if (owner && owner != shlock_self && !shlock_owner_alive(owner))
        atomic_compare_exchange_strong(&l->owner, &owner, 0);
}

static bool has_packets(struct reg_lane *l, int i)
{
    return atomic_load(&l->taker[i].taken) != atomic_load(&l->tail);
}

static void lane_schedule_poll(int row, uint64_t due)
{
    atomic_fetch_or(&lanes_to_search[row / 64], 1ull << row % 64);
    engine_defer(&later, due);
}

/* ---- delivering ---- */

static void lane_deliver(const struct reg_packet *p, struct peer *owner, uint32_t qpn, uint64_t number)
{
    struct request r;
    memcpy(&r, p->head, sizeof(r));
    struct iovec iov = {(void *)(uintptr_t)p->data, p->length};
    if (qpn != p->not_qpn)
        ud_deliver_numbered(owner, qpn, &r, &iov, 1, number);
}

/* Delivers the packets that have arrived at member i, whose lock is held. Returns the time at which the
 * next packet arrives; NEVER: there is none. */
static uint64_t lane_deliver_to_member(int row, int i, struct peer *owner, uint32_t qpn)
{
    struct reg_lane *l = &proc.reg->lane[row];
    struct reg_taker *m = &l->taker[i];
    for (uint64_t n; (n = atomic_load(&m->taken)) != atomic_load(&l->tail);) {
        const struct reg_packet *p = &l->packet[n % LANE_PACKETS];
        if (UNLIKELY(p->began)) {
            if (!m->due)
                m->due =
                    pace_arrival_time(p, atomic_load(&proc.reg->group[row].port[i]), atomic_load(&m->books));
            if (m->due > now_ns())
                return m->due;
        }
        lane_deliver(p, owner, qpn, n);
        m->due = 0;
        atomic_store(&m->taken, n + 1);
    }
    return NEVER;
}

static bool cq_is_armed(const struct peer *owner, uint32_t qpn)
{
    const struct sh_qp *q = &owner->arena->qp[qpn & (QP_MAX - 1)];
    return atomic_load(&owner->arena->cq[atomic_load(&q->rcq) % CQ_MAX].armed);
}

enum sleep { AWAKE, DOZING, ASLEEP };

/* Sets the sleep state of member i, whose lock is held. */
static void set_sleep_state(struct reg_lane *l, int i, enum sleep is)
{
    const uint64_t bit = 1ull << i % 64;
    if (is == ASLEEP)
        atomic_fetch_or(&l->asleep[i / 64], bit);
    if (is == DOZING)
        atomic_fetch_or(&l->dozing[i / 64], bit);
    if (is != ASLEEP)
        atomic_fetch_and(&l->asleep[i / 64], ~bit);
    if (is != DOZING)
        atomic_fetch_and(&l->dozing[i / 64], ~bit);
}

/* Marks member i as awake if its CQ, no longer armed, has raised an event. The member's lock is held. */
static void update_sleep_state(struct reg_lane *l, int i, const struct peer *owner, uint32_t qpn)
{
    const uint64_t bit = 1ull << i % 64;
    if ((atomic_load(&l->asleep[i / 64]) | atomic_load(&l->dozing[i / 64])) & bit && !cq_is_armed(owner, qpn))
        set_sleep_state(l, i, AWAKE);
}

/* Skips all packets of a member that has died or left. Its lock is held. */
static void lane_skip_to_tail(struct reg_lane *l, int i)
{
    l->taker[i].due = 0;
    atomic_store(&l->taker[i].taken, atomic_load(&l->tail));
    set_sleep_state(l, i, AWAKE);
}

/* Skips undelivered packets of a slow member before number `must`, to make room for newer ones. Its lock
 * is held. */
static void lane_skip_packets(int row, int i, uint64_t must)
{
    struct reg_taker *m = &proc.reg->lane[row].taker[i];
    for (; atomic_load(&m->taken) < must; atomic_fetch_add(&m->taken, 1)) {
        m->due = 0;
        port_count(atomic_load(&proc.reg->group[row].port[i]) % FAB_MAX_PORTS, CNT_RX_DROPS, 1);
    }
}

/* Delivers packets on behalf of another process's member. Returns false if another thread is delivering to
 * it. */
static bool lane_deliver_for_other(int row, int i, uint64_t must, uint64_t *next)
{
    struct reg_lane *l = &proc.reg->lane[row];
    struct shlock *lock = &l->taker[i].lock;
    *next = NEVER;
    if (!try_lock(lock)) {
        release_dead_owner_lock(lock);
        if (!try_lock(lock))
            return false;
    }
    const uint32_t qpn = atomic_load(&proc.reg->group[row].qpn[i]);
    struct peer *p = qpn ? peer_get(qpn >> QP_BITS) : NULL;
    if (p) {
        *next = lane_deliver_to_member(row, i, p, qpn);
        lane_skip_packets(row, i, must);
        update_sleep_state(l, i, p, qpn);
    } else {
        lane_skip_to_tail(l, i);
    }
    shlock_unlock(lock);
    peer_release(p);
    return true;
}

static uint64_t lane_sleepers(struct reg_lane *l, int word, bool dozing)
{
    return atomic_load(&l->asleep[word]) | (dozing ? atomic_load(&l->dozing[word]) : 0);
}

static bool has_sleepers(struct reg_lane *l, bool dozing)
{
    uint64_t any = 0;
    for (int w = 0; w < LANE_WORDS; w++)
        any |= lane_sleepers(l, w, dozing);
    return any != 0;
}

/* Delivers to at most `most` sleeping members with pending packets. *met: set if there was such a member.
 * Returns true if there may be more. */
static bool lane_deliver_to_sleepers(int row, int most, bool dozing, bool *met)
{
    struct reg_lane *l = &proc.reg->lane[row];
    bool more = false;
    *met = false;
    for (int w = 0; w < LANE_WORDS; w++)
        for (uint64_t bits = lane_sleepers(l, w, dozing); bits; bits &= bits - 1) {
            const int i = w * 64 + __builtin_ctzll(bits);
            uint64_t next = 0;
            while (has_packets(l, i) && lane_sleepers(l, w, dozing) >> i % 64 & 1) {
                if (next == 0 && most-- <= 0)
                    return true;
                *met = true;
                if (!lane_deliver_for_other(row, i, 0, &next)) {
                    more = true; /* the thread that is delivering polls once more, unless it dies */
                    break;
                }
                if (next != NEVER) {
                    lane_schedule_poll(row, next);
                    break;
                }
            }
        }
    return more;
}

/* Wakes sleeping members with pending packets. While a woken process has not yet searched for further
 * sleeping members, `waking` is 1 and senders wake no member: otherwise the sender of many packets would
 * wake all of them. `waking` is set before a process is woken, which may clear it; the process that clears
 * it searches once more, because a sender may have found it set. */
static bool lane_wake_members(int row, int most, bool dozing)
{
    struct reg_lane *l = &proc.reg->lane[row];
    bool more, met;
    atomic_store(&l->waking, 1);
    more = lane_deliver_to_sleepers(row, most, dozing, &met);
    if (!met) {
        atomic_store(&l->waking, 0);
        more = lane_deliver_to_sleepers(row, most, dozing, &met);
    }
    return more;
}

/* ---- sending ---- */

/* Delivers to a member that has not taken the packets before `must`. Returns false if the delivering thread
 * makes no progress: its process is stopped, and the packet is dropped so that the sender can continue. The
 * lock of a process that has died is taken over at once. */
static bool lane_deliver_until(int row, int i, uint64_t must)
{
    uint64_t next, give_up = 0;
    unsigned turn = 0;
    while (!lane_deliver_for_other(row, i, must, &next)) {
        give_up = give_up ? give_up : now_ns() + STUCK;
        if (now_ns() > give_up)
            return false;
        spin_wait(&turn);
    }
    return true;
}

/* Makes room for one more packet. The lane's lock is held. */
static bool lane_make_room(int row, uint64_t tail)
{
    struct reg_lane *l = &proc.reg->lane[row];
    const struct reg_group *g = &proc.reg->group[row];
    if (LIKELY(tail - l->floor < LANE_PACKETS))
        return true;
    const uint64_t must = tail - LANE_PACKETS + 1;
    const int top = (int)atomic_load(&g->top);
    uint64_t floor = tail;
    /* Members that have left are included: another process may still deliver to them. */
    for (int i = 0; i < top; i++) {
        if (atomic_load(&l->taker[i].taken) < must && !lane_deliver_until(row, i, must))
            return false;
        floor = min_u64(floor, atomic_load(&l->taker[i].taken));
    }
    l->floor = floor;
    return true;
}

static bool lane_put_packet(int row, uint32_t from, const uint8_t gid[16], const struct request *r,
                            const struct iovec *iov, int n, uint32_t not_qpn)
{
    struct reg_lane *l = &proc.reg->lane[row];
    shlock_lock(&l->lock);
    const uint64_t tail = atomic_load(&l->tail);
    const bool room =
        r->length <= LANE_BYTES && !memcmp(proc.reg->group[row].gid, gid, 16) && lane_make_room(row, tail);
    if (room) {
        struct reg_packet *p = &l->packet[tail % LANE_PACKETS];
        memcpy(p->head, r, sizeof(*r));
        p->began = pace_send_start(from, r->length);
        p->from = from;
        p->not_qpn = not_qpn;
        p->length = 0;
        for (int i = 0; i < n; i++) {
            gpu_read(p->data + p->length, iov[i].iov_base, iov[i].iov_len);
            p->length += (uint32_t)iov[i].iov_len;
        }
        atomic_store_explicit(&sent[row], tail + 1, memory_order_relaxed);
        atomic_store(&l->tail, tail + 1);
    }
    shlock_unlock(&l->lock);
    return room;
}

void lane_send(uint32_t from, const uint8_t gid[16], const struct request *r, const struct iovec *iov, int n,
               uint32_t not_qpn)
{
    const int row = group_row(gid);
    if (row < 0)
        return;
    if (!lane_put_packet(row, from, gid, r, iov, n, not_qpn)) {
        port_count(from, CNT_TX_DROPS, 1);
        return;
    }
    atomic_fetch_add(&proc.reg->multicasts, 1);
    struct reg_lane *l = &proc.reg->lane[row];
    const bool asleep = has_sleepers(l, false);
    if (asleep ? atomic_load(&l->waking) || lane_wake_members(row, 1, false) : has_sleepers(l, true))
        lane_schedule_poll(row, now_ns() + LATE);
}

/* ---- receiving ---- */

/* Delivers new packets to a QP of this process. Returns false if another thread is delivering. */
static bool lane_deliver_own(struct membership *m)
{
    struct reg_lane *l = &proc.reg->lane[m->row];
    while (has_packets(l, m->i)) {
        struct shlock *lock = &l->taker[m->i].lock;
        if (!try_lock(lock)) {
            if (++m->refused % PATIENCE == 0)
                release_dead_owner_lock(lock);
            return false;
        }
        const uint32_t qpn = atomic_load(&proc.reg->group[m->row].qpn[m->i]);
        const uint64_t next = qpn ? lane_deliver_to_member(m->row, m->i, proc.self, qpn) : NEVER;
        if (qpn)
            update_sleep_state(l, m->i, proc.self, qpn);
        shlock_unlock(lock);
        if (next != NEVER)
            engine_defer(&later, next);
        if (next != NEVER || !qpn)
            break;
    }
    m->refused = 0;
    return true;
}

static void lane_deliver_all_rows(void)
{
    bool again = false;
    atomic_store(&lane_delivered, atomic_load(&proc.reg->multicasts));
    for (struct membership *m = mine; m; m = m->next) {
        const uint64_t tail = atomic_load(&proc.reg->lane[m->row].tail);
        again |= !lane_deliver_own(m);
        if (m->seen != tail && tail != atomic_load_explicit(&sent[m->row], memory_order_relaxed))
            lane_wake_members(m->row, 2, false);
        m->seen = tail;
    }
    if (again)
        atomic_fetch_sub(&lane_delivered, 1);
}

void lane_deliver_new_packets(void)
{
    if (lock_try(&mine_lock)) {
        lane_deliver_all_rows();
        spinlock_release(&mine_lock);
    }
}

/* Runs when a packet is due to arrive, or when a member that should have woken others was slow, stopped or
 * killed. */
static void run_lane_task(struct task *t)
{
    (void)t;
    spinlock_acquire(&mine_lock);
    lane_deliver_all_rows();
    spinlock_release(&mine_lock);
    for (int w = 0; w < GROUPS / 64; w++)
        for (uint64_t bits = atomic_exchange(&lanes_to_search[w], 0); bits; bits &= bits - 1) {
            const int row = w * 64 + __builtin_ctzll(bits);
            if (lane_wake_members(row, 2, true))
                lane_schedule_poll(row, now_ns() + LATE);
        }
}

void lane_check_armed(void)
{
    if (LIKELY(!atomic_load_explicit(&lane_memberships, memory_order_relaxed)))
        return;
    spinlock_acquire(&mine_lock);
    for (struct membership *m = mine; m; m = m->next) {
        struct reg_lane *l = &proc.reg->lane[m->row];
        if (!atomic_load(&proc.arena->cq[m->cq].armed))
            continue;
        shlock_lock(&l->taker[m->i].lock);
        set_sleep_state(l, m->i, ASLEEP);
        shlock_unlock(&l->taker[m->i].lock);
        lane_deliver_own(m); /* false: the delivering thread sees the bit and checks for packets again */
    }
    spinlock_release(&mine_lock);
}

void lane_mark_dozing(void)
{
    if (LIKELY(!atomic_load_explicit(&lane_memberships, memory_order_relaxed)) || !lock_try(&mine_lock))
        return;
    for (struct membership *m = mine; m; m = m->next) {
        struct reg_lane *l = &proc.reg->lane[m->row];
        if (!(atomic_load(&l->asleep[m->i / 64]) >> m->i % 64 & 1) || !try_lock(&l->taker[m->i].lock))
            continue;
        set_sleep_state(l, m->i, DOZING);
        shlock_unlock(&l->taker[m->i].lock);
    }
    spinlock_release(&mine_lock);
}

/* ---- members ---- */

/* The lane's lock is held from the choice of the first packet until the member's number is in the
 * registry: a sender that did not see the number in between would overwrite packets that the member has
 * not taken. */
bool lane_open(int row, int i, struct ibv_qp *v)
{
    struct reg_lane *l = &proc.reg->lane[row];
    struct reg_group *g = &proc.reg->group[row];
    struct membership *m = calloc(1, sizeof(*m));
    if (!m)
        return false;
    shlock_lock(&l->lock);
    shlock_lock(&l->taker[i].lock);
    const uint64_t tail = atomic_load(&l->tail);
    *m = (struct membership){.row = row, .i = i, .cq = cq_from_ibv(v->recv_cq)->idx, .seen = tail};
    l->taker[i].due = 0;
    atomic_store(&l->taker[i].taken, tail);
    set_sleep_state(l, i, ASLEEP); /* its CQ may be armed */
    atomic_store(&g->port[i], qp_from_ibv(v)->linear);
    atomic_store(&g->qpn[i], v->qp_num);
    if (atomic_load(&g->top) <= (unsigned)i)
        atomic_store(&g->top, (unsigned)i + 1);
    shlock_unlock(&l->taker[i].lock);
    shlock_unlock(&l->lock);
    spinlock_acquire(&mine_lock);
    m->next = mine;
    mine = m;
    atomic_fetch_add(&lane_memberships, 1);
    spinlock_release(&mine_lock);
    return true;
}

void lane_close(int row, int i)
{
    struct reg_lane *l = &proc.reg->lane[row];
    spinlock_acquire(&mine_lock);
    for (struct membership **at = &mine; *at; at = &(*at)->next)
        if ((*at)->row == row && (*at)->i == i) {
            struct membership *m = *at;
            *at = m->next;
            free(m);
            atomic_fetch_sub(&lane_memberships, 1);
            break;
        }
    spinlock_release(&mine_lock);
    /* Waits for a thread that delivers to the member and holds its lock. A later thread finds no QP
     * number. */
    shlock_lock(&l->taker[i].lock);
    lane_skip_to_tail(l, i);
    shlock_unlock(&l->taker[i].lock);
}

void lane_update_members(int row)
{
    struct reg_group *g = &proc.reg->group[row];
    struct reg_lane *l = &proc.reg->lane[row];
    uint64_t seen[FAB_MAX_PORTS / 64] = {0}, slowest = 0;
    unsigned top = 0;
    for (unsigned i = 0; i < GROUP_QPS; i++) {
        const uint32_t port = atomic_load(&g->port[i]);
        if (!atomic_load(&g->qpn[i]) || port >= proc.fab.nports)
            continue;
        const struct fab_port *f = &proc.fab.port[port];
        const uint64_t rate = f->bus && (!f->rate || f->bus < f->rate) ? f->bus : f->rate;
        atomic_store(&l->taker[i].books, !(seen[port / 64] >> port % 64 & 1));
        seen[port / 64] |= 1ull << port % 64;
        slowest = rate && (!slowest || rate < slowest) ? rate : slowest;
        top = i + 1;
    }
    atomic_store(&l->slowest, slowest);
    atomic_store(&g->top, top);
}

void lane_reuse_for_group(int row, const uint8_t gid[16])
{
    struct reg_lane *l = &proc.reg->lane[row];
    shlock_lock(&l->lock); /* waits for senders to the former group */
    memcpy(proc.reg->group[row].gid, gid, 16);
    for (int w = 0; w < LANE_WORDS; w++) {
        atomic_store(&l->asleep[w], 0);
        atomic_store(&l->dozing[w], 0);
    }
    l->floor = atomic_load(&l->tail);
    shlock_unlock(&l->lock);
}

void lane_reset_after_fork(void)
{
    mine = NULL;
    memset(&mine_lock, 0, sizeof(mine_lock));
    atomic_store(&lane_memberships, 0);
    later = (struct task){.run = run_lane_task};
}
