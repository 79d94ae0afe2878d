/* barrier_run.c: barriers of ranks on several nodes [Hoefler05 4.1.3]. Within a node the ranks set flags in
 * shared memory. The leaders of the nodes synchronise by n-way dissemination: each has a few bytes of
 * registered memory, one for each partner of each round. The partner writes the number of the barrier there,
 * and the leader polls it. There are no messages, no matching and no receives. The RDMA writes are inline and
 * unsignalled. A flag is one byte, so a reader never sees a partial write. barrier_machine.c defines the
 * order of the rounds.
 *
 * The first barrier of a communicator uses messages, which carry the addresses of flags: a leader sends its
 * address to the leaders that will write to it. The same messages carry whether all leaders known so far
 * support RDMA writes. After the last round every leader has this information from all leaders, as in any
 * dissemination, so all decide alike. If one leader does not support RDMA writes, all continue with messages.
 *
 * Barriers of a communicator that are in progress at the same time are queued (struct hbarrier_lane): the
 * next one begins at a rank when the previous one is complete there. So a flag needs to hold only one number.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/counter.h"
#include "coll/barrier/barrier_internal.h"

static COUNTER(runs, "coll_barrier_rdma", "Barriers whose nodes synchronised by RDMA writes.");
static COUNTER(switched, "coll_barrier_switch", "Barriers whose nodes synchronised in the switch.");
static COUNTER(wired, "coll_barrier_wires",
               "Barriers whose nodes synchronised over a dedicated barrier network (softwire0).");
static COUNTER(by_tree, "coll_barrier_multicast",
               "Barriers whose nodes were released by one multicast packet.");
static COUNTER(by_counter, "coll_barrier_counter",
               "Barriers in which adapters counted the nodes by fetch-and-add.");
static COUNTER(by_node, "coll_barrier_by_node",
               "Barriers whose ranks synchronised in shared memory on each node, and between nodes through "
               "one leader per node.");

/* ---- the first barrier ---- */

/* Merges the messages of the partners of this round. */
static void merge_setups(struct hbarrier *w, int round)
{
    for (int i = 0; i < w->setups; i++) {
        const struct hbarrier_setup *in = &w->inbox[i];
        if (w->setup_at[i].round != round)
            continue;
        if (w->mine.counter.address == 0)
            w->mine.counter = in->counter;
        w->mine.all_write = w->mine.all_write && in->all_write;
        w->mine.all_add = w->mine.all_add && in->all_add;
        w->mine.all_switch = w->mine.all_switch && in->all_switch;
        w->mine.group = MIN(w->mine.group, in->group);
    }
}

/* Synchronises after the join of the switch group: a message states that its sender has joined. No rank
 * may enter the barrier before all have joined. */
static void synchronize_join(struct hbarrier_run *r, int round)
{
    struct hbarrier *w = r->w;
    if (round == 0) {
        merge_setups(w, w->setup_rounds - 1);
        hbarrier_join(w);
    }
    for (int i = 0; i < w->setups; i++)
        if (w->setup_at[i].round == round) {
            hbarrier_recv(r, w->leader_rank[w->setup_at[i].from], NULL, 0);
            hbarrier_send(r, w->leader_rank[w->setup_at[i].to], NULL, 0);
        }
}

static void send_addresses(struct hbarrier_run *r)
{
    struct hbarrier *w = r->w;
    for (int i = 0; i < w->partners; i++) {
        const struct barrier_partner *at = &w->partner_at[i];
        if (at->to >= 0)
            hbarrier_recv(r, w->leader_rank[at->to], &w->partner[i].flag, sizeof(w->partner[i].flag));
        if (at->from >= 0)
            hbarrier_send(r, w->leader_rank[at->from], &w->partner[i].offer, sizeof(w->partner[i].offer));
    }
}

/* Sends the setup messages. Round 0: addresses of flags. Next rounds: the agreement. Last rounds, if a
 * switch may be used: confirmations that leaders have joined its group. */
static void send_setups(struct hbarrier_run *r, int round)
{
    struct hbarrier *w = r->w;
    if (round-- == 0) {
        send_addresses(r);
        return;
    }
    if (round >= w->setup_rounds) {
        synchronize_join(r, round - w->setup_rounds);
        return;
    }
    merge_setups(w, round - 1);
    for (int i = 0; i < w->setups; i++)
        if (w->setup_at[i].round == round) {
            hbarrier_recv(r, w->leader_rank[w->setup_at[i].from], &w->inbox[i], sizeof(w->inbox[i]));
            hbarrier_send(r, w->leader_rank[w->setup_at[i].to], &w->mine, sizeof(w->mine));
        }
}

/* ---- within a node ---- */

static bool uses_node_flags(const struct hbarrier_run *r)
{
    return r->w->block && r->method != METHOD_SETUP;
}

static bool all_reported(const struct hbarrier *w, int lane, uint8_t turn)
{
    for (int i = 1; i < w->nlocal; i++)
        if (!barrier_flag_is_set(atomic_load_explicit(&w->block->report[i].turn[lane], memory_order_acquire),
                                 turn))
            return false;
    return true;
}

static struct doorbell *local_doorbell(const struct hbarrier *w, int place)
{
    return net_bell_local(w->net, group_job_rank(w->comm->group, w->local[place]));
}

/* Reports this rank's arrival to its leader. Only the rank that reports last wakes a sleeping leader. If
 * two ranks report at the same time, at least one sees the other's report: both order their store before
 * the check of all_reported(). */
static void barrier_report_arrival(struct hbarrier_run *r)
{
    struct hbarrier *w = r->w;
    struct doorbell *bell = local_doorbell(w, 0);
    const uint8_t turn = hbarrier_get_lane(r)->machine.turn;
    atomic_store_explicit(&w->block->report[w->place].turn[r->lane], turn, memory_order_release);
    net_fence_before_sleep_check(w->net);
    if (likely(atomic_load_explicit(&bell->sleepers, memory_order_relaxed) == 0))
        return;
    atomic_thread_fence(memory_order_seq_cst);
    if (all_reported(w, r->lane, turn))
        net_wake_doorbell(bell);
}

static void barrier_release_node(struct hbarrier_run *r)
{
    struct hbarrier *w = r->w;
    atomic_store_explicit(&w->block->release.turn[r->lane], hbarrier_get_lane(r)->machine.turn,
                          memory_order_release);
    for (int i = 1; i < w->nlocal; i++)
        net_wake_local_doorbell(w->net, local_doorbell(w, i));
}

static void report_by_message(struct hbarrier_run *r)
{
    struct hbarrier *w = r->w;
    const bool setup = r->method == METHOD_SETUP;
    hbarrier_recv(r, w->local[0], setup ? &w->result : NULL, setup ? sizeof(w->result) : 0);
    hbarrier_send(r, w->local[0], NULL, 0);
}

static void release_by_message(struct hbarrier_run *r)
{
    struct hbarrier *w = r->w;
    const bool setup = r->method == METHOD_SETUP;
    if (setup) {
        if (!w->may_switch)
            merge_setups(w, w->setup_rounds - 1);
        w->result.method = !w->mine.all_write                ? METHOD_MESSAGE
                           : w->may_count && w->mine.all_add ? METHOD_COUNTER
                                                             : METHOD_WRITE;
        w->result.switched = w->member != NULL;
    }
    for (int i = 1; i < w->nlocal; i++)
        hbarrier_send(r, w->local[i], setup ? &w->result : NULL, setup ? sizeof(w->result) : 0);
}

/* ---- between nodes ---- */

static void send_round(struct hbarrier_run *r, int round)
{
    const struct hbarrier *w = r->w;
    for (uint32_t i = w->round_at[round]; i < w->round_at[round + 1]; i++) {
        const struct step *step = &w->sched.steps[i];
        if (step->kind == STEP_SEND)
            hbarrier_send(r, w->leader_rank[step->peer], NULL, 0);
        else if (step->kind == STEP_RECV)
            hbarrier_recv(r, w->leader_rank[step->peer], NULL, 0);
    }
}

static void on_add_completed(struct net_op *op, int status)
{
    struct hbarrier_run *r = container_of(op, struct hbarrier_run, add);
    hbarrier_record_error(r, status);
    r->pending--;
}

/* Adds 1 to the counter of the first leader. Only atomics of the adapter modify the counter. */
static void count_arrival(struct hbarrier_run *r)
{
    struct hbarrier *w = r->w;
    const struct net_atomic one = {.operand = 1};
    uint64_t *previous = (uint64_t *)(uintptr_t)&w->counters[r->lane];
    struct peer *first;
    int rc = comm_get_peer(w->comm, w->leader_rank[0], &first);
    r->add = (struct net_op){.done = on_add_completed, .once = true};
    r->pending++;
    w->busy = true; /* no other run may advance inside net_progress() */
    while (!rc && (rc = first->ops->atomic(first, &one, previous, &w->mem,
                                           w->mine.counter.address + (uint64_t)r->lane * sizeof(uint64_t),
                                           &w->mine.counter.key, &r->add)) == ERR_AGAIN) {
        net_progress(w->net);
        rc = 0;
    }
    w->busy = false;
    if (rc)
        on_add_completed(&r->add, rc);
}

static void counter_round(struct hbarrier_run *r, int round)
{
    struct hbarrier *w = r->w;
    if (round > 0)
        hbarrier_write_round(r, w->rounds[METHOD_WRITE]);
    else if (w->leader > 0)
        count_arrival(r);
    else
        hbarrier_get_lane(r)->arrivals += (uint64_t)w->leaders - 1;
}

static bool is_counter_round_over(const struct hbarrier_run *r, int round)
{
    const struct hbarrier *w = r->w;
    if (round > 0)
        return hbarrier_round_written(r, w->rounds[METHOD_WRITE]);
    return w->leader > 0 || atomic_load_explicit(&w->counters[r->lane], memory_order_acquire) >=
                                hbarrier_get_lane(r)->arrivals;
}

/* ---- the run ---- */

/* True if this run may advance: it is the first of its lane. Persistent barriers (lane > 0) have their own
 * flags, but the first barrier of the communicator must be complete. */
static bool is_next_to_run(const struct hbarrier_run *r)
{
    return list_first(&hbarrier_get_lane(r)->runs) == &r->link &&
           (r->lane == 0 || r->w->method != METHOD_SETUP) && !r->w->busy;
}

/* True if the switch has completed the barrier. The unit reports this once: r->crossed records it. */
static bool has_switch_completed(struct hbarrier_run *r)
{
    if (!r->crossed)
        r->crossed = r->w->unit->over(r->w->unit, r->w->member);
    return r->crossed;
}

/* True if the current stage can end. */
static bool barrier_stage_is_ready(struct hbarrier_run *r)
{
    const struct hbarrier *w = r->w;
    const struct barrier_machine *m = &hbarrier_get_lane(r)->machine;
    if (m->stage == BARRIER_LEADERS && r->method == METHOD_WRITE)
        return hbarrier_round_written(r, m->round);
    if (m->stage == BARRIER_LEADERS && r->method == METHOD_SWITCH)
        return has_switch_completed(r);
    if (m->stage == BARRIER_LEADERS && r->method == METHOD_MULTICAST)
        return r->pending == 0 && hbarrier_is_tree_round_complete(r, m->round);
    if (m->stage == BARRIER_LEADERS && r->method == METHOD_COUNTER)
        return r->pending == 0 && is_counter_round_over(r, m->round);
    if (m->stage == BARRIER_GATHER && uses_node_flags(r))
        return all_reported(w, r->lane, m->turn);
    if (m->stage == BARRIER_RELEASE && uses_node_flags(r) && !w->leads)
        return barrier_flag_is_set(
            atomic_load_explicit(&w->block->release.turn[r->lane], memory_order_acquire), m->turn);
    return r->pending == 0;
}

bool hbarrier_can_advance(void *arg)
{
    struct hbarrier_run *r = arg;
    return is_next_to_run(r) &&
           (hbarrier_get_lane(r)->machine.stage == BARRIER_IDLE || barrier_stage_is_ready(r));
}

void hbarrier_update_counters(const struct hbarrier *w, enum hbarrier_method method)
{
    if (method == METHOD_WRITE)
        counter_add(&runs, 1);
    else if (method == METHOD_SWITCH)
        counter_add(w->may_wire ? &wired : &switched, 1);
    else if (method == METHOD_MULTICAST)
        counter_add(&by_tree, 1);
    else if (method == METHOD_COUNTER)
        counter_add(&by_counter, 1);
    if (w->block)
        counter_add(&by_node, 1);
}

static void barrier_finish(struct hbarrier_run *r)
{
    if (r->method == METHOD_SETUP)
        hbarrier_adopt_result(r->w);
    hbarrier_update_counters(r->w, (enum hbarrier_method)r->method);
    list_remove(&r->link);
    r->over = true;
}

static void barrier_start_round(struct hbarrier_run *r, int round)
{
    struct hbarrier *w = r->w;
    r->crossed = false;
    if (r->method == METHOD_WRITE)
        hbarrier_write_round(r, round);
    else if (r->method == METHOD_MESSAGE)
        send_round(r, round);
    else if (r->method == METHOD_SWITCH)
        w->unit->enter(w->unit, w->member);
    else if (r->method == METHOD_MULTICAST)
        hbarrier_tree_round(r, round);
    else if (r->method == METHOD_COUNTER)
        counter_round(r, round);
    else
        send_setups(r, round);
}

static void barrier_perform_action(struct hbarrier_run *r, enum barrier_machine_action action)
{
    struct hbarrier *w = r->w;
    const int round = hbarrier_get_lane(r)->machine.round;
    if (action == BARRIER_EXPECT && !uses_node_flags(r)) {
        for (int i = 1; i < w->nlocal; i++)
            hbarrier_recv(r, w->local[i], NULL, 0);
    } else if (action == BARRIER_REPORT) {
        uses_node_flags(r) ? barrier_report_arrival(r) : report_by_message(r);
    } else if (action == BARRIER_RELEASE_NODE) {
        uses_node_flags(r) ? barrier_release_node(r) : release_by_message(r);
    } else if (action == BARRIER_ROUND) {
        barrier_start_round(r, round);
    }
}

static enum hbarrier_method hbarrier_choose_method(const struct hbarrier_run *r)
{
    if (r->tree)
        return METHOD_MULTICAST;
    return r->lane == 0 && r->w->switched ? METHOD_SWITCH : r->w->method;
}

/* Advances the barrier as far as possible without waiting. */
void hbarrier_advance(struct hbarrier_run *r)
{
    while (!r->over && is_next_to_run(r)) {
        struct barrier_machine *m = &hbarrier_get_lane(r)->machine;
        /* Sends must complete before the run ends, since their callbacks access the run. */
        if (m->stage == BARRIER_RELEASE && r->w->leads && r->pending > 0)
            return;
        if (m->stage == BARRIER_IDLE)
            r->method = hbarrier_choose_method(r);
        const struct barrier_machine_shape shape = {r->w->leads, r->w->nlocal == 1, r->w->rounds[r->method]};
        enum barrier_machine_action action =
            barrier_machine_next(m, &shape, m->stage != BARRIER_IDLE && barrier_stage_is_ready(r));
        if (action == BARRIER_WAIT)
            return;
        if (action == BARRIER_DONE)
            barrier_finish(r);
        else
            barrier_perform_action(r, action);
    }
}

/* True if the run waits for an event on other nodes that rings no doorbell. */
static bool waits_without_doorbell(const struct hbarrier_run *r)
{
    return (r->method == METHOD_WRITE || r->method == METHOD_SWITCH || r->method == METHOD_COUNTER ||
            (r->method == METHOD_MULTICAST && r->w->method == METHOD_WRITE)) &&
           hbarrier_get_lane(r)->machine.stage == BARRIER_LEADERS;
}

void hbarrier_wait(struct hbarrier_run *r)
{
    struct net *net = r->w->net;
    struct net_waiter waiter = {
        .ready = hbarrier_can_advance, .arg = r, .awaited_kind = NET_MEMBERS, .awaited = r->comm};
    while (!r->over) {
        if (!hbarrier_can_advance(r)) {
            const uint32_t unrung = waits_without_doorbell(r);
            net->unrung += unrung;
            net_wait_step(net, &waiter);
            net->unrung -= unrung;
        }
        hbarrier_advance(r);
    }
    net_wait_end(net, &waiter);
}
