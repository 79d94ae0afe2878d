/* assembly.c: implements the tree, the exchange between two groups and the state machine of assembly.h. Each
 * state posts messages; the completion of the last message runs the next state in the same call of progress.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/assembly.h"

#include <stdlib.h>
#include <string.h>

#include "base/kill_point.h"
#include "dt/dtype.h"
#include "net/lost.h"
#include "p2p/peer_death.h"
#include "p2p/request.h"

enum { GATHER, GATHERED, SWAP_RECORDS, SWAPPED, DOWN_HEAD, SPREAD, FINISH, OVER };

static void assembly_run(struct assembly *a);

static size_t words_byte_size(const struct assembly *a)
{
    return a->nwords * sizeof(uint64_t);
}

/* Bytes of a message header: one 64-bit number, then the words. The number is HEAD_FAILED | error class,
 * or a group size: of the own group between leaders, of the remote group from parent to child, 0 from
 * child to parent. */
static size_t head_byte_size(const struct assembly *a)
{
    return sizeof(uint64_t) + words_byte_size(a);
}

static int rank_of_place(const struct assembly *a, int place)
{
    return (int)(((int64_t)place + a->gang.leader) % a->gang.members->size);
}

static int32_t member_number(const struct assembly *a, int rank)
{
    return a->gang.numbers ? a->gang.numbers[rank] : rank;
}

/* Number of tree positions in the subtree of `place`: consecutive positions that begin with `place`. */
static int subtree_span(int place, int size)
{
    int64_t reach = place ? place & -place : size;
    return (int)MIN(reach, (int64_t)size - place);
}

/* The children of `place` are place + b for every power of two b below the returned limit (the lowest set
 * bit of `place`; `size` at the root). */
static int first_child_limit(int place, int size)
{
    return place ? place & -place : size;
}

static void message_done(struct request *r)
{
    struct assembly *a = r->user;
    if (r->error && !a->error)
        a->error = r->error;
    if (--a->pending == 0 && !a->stepping)
        assembly_run(a);
}

static void track_posted_message(struct assembly *a, int rc, struct request *r)
{
    if (rc) {
        if (!a->error)
            a->error = rc;
        return;
    }
    if (request_detach(r, message_done, a)) {
        a->pending++;
        return;
    }
    if (r->error && !a->error)
        a->error = r->error;
    request_free(r);
}

static void send_to(struct assembly *a, uint32_t job_rank, struct envelope env, const void *data, size_t len)
{
    struct proc *p = a->gang.proc;
    struct request *r = NULL;
    struct peer *peer;
    int rc = net_peer(p->net, job_rank, &peer);
    if (!rc)
        rc = p2p_isend(p->p2p, data, (MPI_Count)len, dtype_from_handle(MPI_BYTE), peer, env, SEND_STANDARD,
                       &r);
    track_posted_message(a, rc, r);
}

static void receive_from(struct assembly *a, struct envelope env, void *data, size_t len)
{
    struct request *r = NULL;
    int rc = p2p_irecv(a->gang.proc->p2p, data, (MPI_Count)len, dtype_from_handle(MPI_BYTE), env, &r);
    track_posted_message(a, rc, r);
}

static void tree_send(struct assembly *a, int place, const void *data, size_t len)
{
    const struct gang *g = &a->gang;
    struct envelope env = {
        .context = g->context, .source = member_number(a, g->members->rank), .tag = g->tag};
    send_to(a, group_job_rank(g->members, rank_of_place(a, place)), env, data, len);
}

static void tree_receive(struct assembly *a, int place, void *data, size_t len)
{
    const struct gang *g = &a->gang;
    struct envelope env = {
        .context = g->context, .source = member_number(a, rank_of_place(a, place)), .tag = g->tag};
    receive_from(a, env, data, len);
}

static void combine_words(struct assembly *a, const char *from)
{
    for (unsigned i = 0; i < a->nwords; i++) {
        uint64_t w;
        memcpy(&w, from + i * sizeof(w), sizeof(w));
        a->words[i] = i < a->nwords - a->max_words ? a->words[i] & w : MAX(a->words[i], w);
    }
}

static void assembly_allocate(struct assembly *a)
{
    int size = a->gang.members->size;
    size_t span = (size_t)subtree_span(a->place, size);
    size_t children = 0;
    for (int64_t bit = 1; bit < first_child_limit(a->place, size) && a->place + bit < size; bit *= 2)
        children++;
    a->up = malloc(head_byte_size(a) + span * a->record_size);
    a->staging = malloc(children * head_byte_size(a) + span * a->record_size + 1);
    a->head = malloc(head_byte_size(a));
    a->other_head = malloc(head_byte_size(a));
    CHECK_MEMORY(a->up && a->staging && a->head && a->other_head, "the creation of a communicator");
}

static void assembly_gather(struct assembly *a)
{
    int size = a->gang.members->size;
    char *into = a->staging;
    for (int64_t bit = 1; bit < first_child_limit(a->place, size) && a->place + bit < size; bit *= 2) {
        int child = a->place + (int)bit;
        size_t len = head_byte_size(a) + (size_t)subtree_span(child, size) * a->record_size;
        tree_receive(a, child, into, len);
        into += len;
    }
    a->state = GATHERED;
}

/* Flag in the first word of a header: the sender's side has failed. The low 16 bits are the error class. */
#define HEAD_FAILED (1ull << 63)

static void fill_head(struct assembly *a, uint64_t n)
{
    memcpy(a->head, &n, sizeof(n));
    memcpy(a->head + sizeof(n), a->words, words_byte_size(a));
}

/* Parses a message header. Returns false, with a->error set, if the sender has failed. */
static bool parse_head(struct assembly *a, const char *head)
{
    uint64_t n;
    memcpy(&n, head, sizeof(n));
    if (!(n & HEAD_FAILED)) {
        a->others = (int)n;
        return true;
    }
    a->error = err_set((int)(uint16_t)n, "another process could not make its part of the communicator");
    return false;
}

/* Combines the children's messages into `up`, the message to the parent. Returns false, with a->error set,
 * if a child has failed. */
static bool assembly_combine_children(struct assembly *a)
{
    int size = a->gang.members->size;
    const char *from = a->staging;
    char *records = a->up + head_byte_size(a);
    if (a->record_size)
        memcpy(records, a->record, a->record_size);
    for (int64_t bit = 1; bit < first_child_limit(a->place, size) && a->place + bit < size; bit *= 2) {
        size_t len = (size_t)subtree_span(a->place + (int)bit, size) * a->record_size;
        if (!parse_head(a, from))
            return false;
        combine_words(a, from + sizeof(uint64_t));
        from += head_byte_size(a);
        memcpy(records + (size_t)bit * a->record_size, from, len);
        from += len;
    }
    fill_head(a, 0);
    memcpy(a->up, a->head, head_byte_size(a));
    return true;
}

static void bridge_send(struct assembly *a, const void *data, size_t len)
{
    const struct gang *g = &a->gang;
    struct envelope env = {.context = g->bridge_context, .source = g->bridge_me, .tag = g->bridge_tag};
    send_to(a, g->other_leader, env, data, len);
}

static void bridge_receive(struct assembly *a, void *data, size_t len)
{
    const struct gang *g = &a->gang;
    struct envelope env = {.context = g->bridge_context, .source = g->bridge_other, .tag = g->bridge_tag};
    receive_from(a, env, data, len);
}

static void assembly_forward_gathered(struct assembly *a)
{
    if (!assembly_combine_children(a))
        return;
    if (a->place > 0) {
        int size = a->gang.members->size;
        int parent = a->place & (a->place - 1);
        tree_send(a, parent, a->up,
                  head_byte_size(a) + (size_t)subtree_span(a->place, size) * a->record_size);
        KILL_POINT(assembly_contributed);
        tree_receive(a, parent, a->head, head_byte_size(a));
        a->state = DOWN_HEAD;
    } else if (a->gang.bridged) {
        fill_head(a, (uint64_t)a->gang.members->size);
        bridge_send(a, a->head, head_byte_size(a));
        bridge_receive(a, a->other_head, head_byte_size(a));
        a->state = SWAP_RECORDS;
    } else {
        a->state = SWAPPED;
    }
}

static size_t records_size(const struct assembly *a)
{
    return ((size_t)a->gang.members->size + (size_t)a->others) * a->record_size;
}

static void allocate_records(struct assembly *a)
{
    a->records = malloc(records_size(a) + 1);
    CHECK_MEMORY(a->records, "the creation of a communicator");
}

/* Copies the records from tree order to rank order: tree position = (rank - leader) mod size. */
static void records_by_rank(struct assembly *a)
{
    size_t size = (size_t)a->gang.members->size, leader = (size_t)a->gang.leader, each = a->record_size;
    const char *by_place = a->up + head_byte_size(a);
    memcpy(a->records + leader * each, by_place, (size - leader) * each);
    memcpy(a->records, by_place + (size - leader) * each, leader * each);
}

static void assembly_exchange_records(struct assembly *a)
{
    size_t mine = (size_t)a->gang.members->size * a->record_size;
    if (!parse_head(a, a->other_head))
        return;
    combine_words(a, a->other_head + sizeof(uint64_t));
    a->state = SWAPPED;
    if (!a->record_size)
        return;
    allocate_records(a);
    records_by_rank(a);
    bridge_send(a, a->records, mine);
    bridge_receive(a, a->records + mine, (size_t)a->others * a->record_size);
}

/* Called when the leader has the records of both sides. */
static void assembly_prepare_results(struct assembly *a)
{
    KILL_POINT(assembly_results_known);
    a->state = SPREAD;
    if (a->record_size && !a->records) {
        allocate_records(a);
        records_by_rank(a);
    }
    fill_head(a, (uint64_t)a->others);
}

static void receive_result_head(struct assembly *a)
{
    if (!parse_head(a, a->head))
        return;
    memcpy(a->words, a->head + sizeof(uint64_t), words_byte_size(a));
    a->state = SPREAD;
    if (a->record_size) {
        allocate_records(a);
        tree_receive(a, a->place & (a->place - 1), a->records, records_size(a));
    }
}

static void send_result_head(struct assembly *a, bool records)
{
    int size = a->gang.members->size;
    int64_t bit = 1;
    while (bit < first_child_limit(a->place, size) && a->place + bit < size)
        bit *= 2;
    for (bit /= 2; bit >= 1; bit /= 2) { /* the deepest subtree first */
        tree_send(a, a->place + (int)bit, a->head, head_byte_size(a));
        if (records)
            tree_send(a, a->place + (int)bit, a->records, records_size(a));
    }
    a->state = FINISH;
}

static void assembly_send_results(struct assembly *a)
{
    send_result_head(a, a->record_size > 0);
}

/* True if the parent still waits for this process. Every process is notified of a death or a revocation and
 * fails by itself, except in MPI_Comm_create_group, where a receive fails only if its own sender has died. The
 * parent must receive a failure message and answer it; otherwise a message would remain for a later call of
 * MPI_Comm_create_group with the same tag. */
static bool assembly_is_parent_waiting(const struct assembly *a)
{
    const bool all_are_notified =
        !a->gang.numbers && (a->error == MPIX_ERR_PROC_FAILED || a->error == MPIX_ERR_REVOKED);
    return !all_are_notified && a->place > 0 && a->state <= GATHERED;
}

static void assembly_report_failure_to_parent(struct assembly *a)
{
    const int parent = a->place & (a->place - 1);
    fill_head(a, HEAD_FAILED | (uint16_t)a->error);
    memcpy(a->up, a->head, sizeof(uint64_t));
    a->error = 0; /* the parent's answer sets it again */
    tree_send(a, parent, a->up, sizeof(uint64_t));
    tree_receive(a, parent, a->head, head_byte_size(a));
    a->state = DOWN_HEAD;
}

/* Fails the exchange and notifies the children and the remote leader that wait for this process: their
 * receives do not fail by themselves, since this process is alive. */
static void fail_exchange(struct assembly *a)
{
    const bool other_side_waits =
        a->gang.bridged && !a->gang.other_side_lost && a->place == 0 && a->state <= GATHERED;
    if (assembly_is_parent_waiting(a)) {
        assembly_report_failure_to_parent(a);
        return;
    }
    fill_head(a, HEAD_FAILED | (uint16_t)a->error);
    if (other_side_waits)
        bridge_send(a, a->head, head_byte_size(a));
    send_result_head(a, false);
}

static void assembly_finish(struct assembly *a)
{
    free(a->up);
    free(a->staging);
    free(a->head);
    free(a->other_head);
    a->state = OVER;
}

static void assembly_step(struct assembly *a)
{
    switch (a->state) {
    case GATHER:
        assembly_gather(a);
        break;
    case GATHERED:
        assembly_forward_gathered(a);
        break;
    case SWAP_RECORDS:
        assembly_exchange_records(a);
        break;
    case SWAPPED:
        assembly_prepare_results(a);
        break;
    case DOWN_HEAD:
        receive_result_head(a);
        break;
    case SPREAD:
        assembly_send_results(a);
        break;
    default:
        assembly_finish(a);
    }
}

static void assembly_run(struct assembly *a)
{
    a->stepping = true;
    while (a->pending == 0 && a->state != OVER) {
        if (a->error && a->state < FINISH)
            fail_exchange(a);
        else
            assembly_step(a);
    }
    a->stepping = false;
    if (a->state != OVER)
        return;
    list_remove(&a->link);
    a->done(a);
}

void assembly_start(struct assembly *a)
{
    int size = a->gang.members->size;
    a->place = (a->gang.members->rank - a->gang.leader + size) % size;
    a->state = GATHER;
    a->pending = 0;
    a->error = MPI_SUCCESS;
    a->records = NULL;
    a->others = 0;
    assembly_allocate(a);
    list_append(&a->gang.proc->assemblies, &a->link);
    assembly_run(a);
}

void assembly_mark_other_lost(struct assembly *a)
{
    a->gang.other_side_lost = true;
    p2p_recheck_faults(a->gang.proc->p2p);
}

static bool has_lost_member(const struct assembly *a)
{
    const struct gang *g = &a->gang;
    for (int i = 0; i < g->members->size; i++)
        if (net_is_lost(g->proc->net, group_job_rank(g->members, i)))
            return true;
    return false;
}

int assembly_check_message(const struct proc *p, uint32_t context, int tag)
{
    list_foreach(pos, &p->assemblies)
    {
        const struct assembly *a = list_entry(pos, struct assembly, link);
        const struct gang *g = &a->gang;
        if ((g->context == context && g->tag == tag && has_lost_member(a)) ||
            (g->bridged && g->bridge_context == context && g->bridge_tag == tag &&
             (g->other_side_lost || net_is_lost(p->net, g->other_leader))))
            return MPIX_ERR_PROC_FAILED;
    }
    return 0;
}
