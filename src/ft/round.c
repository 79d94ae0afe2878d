/* round.c: runs agreements on communicators: messages, members, retention of decisions (round.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/kill_point.h"
#include "ft/round.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "net/guest.h"
#include "net/lost.h"
#include "obj/epoch.h"

/* ---- frames ---- */

struct parcel {
    struct net_pending pending;
    struct peer *to;
    struct frame_header header;
    size_t len;
    char payload[];
};

static int parcel_resend(struct net_pending *item)
{
    struct parcel *p = container_of(item, struct parcel, pending);
    int rc = peer_send_now(p->to, &p->header, p->payload, p->len);
    if (rc == ERR_AGAIN)
        return rc;
    free(p);
    return 0;
}

void ft_send(struct proc *p, uint32_t number, const struct frame_header *h, const void *payload, size_t len)
{
    struct peer *to;
    if (net_peer(p->net, number, &to) != 0 || peer_send(to, h, payload, len) != ERR_AGAIN)
        return;
    struct parcel *parcel = malloc(sizeof(*parcel) + len);
    CHECK_MEMORY(parcel != NULL, "a fault-tolerance message");
    *parcel = (struct parcel){.pending.resume = parcel_resend, .to = to, .header = *h, .len = len};
    if (len)
        memcpy(parcel->payload, payload, len);
    peer_queue(to, &parcel->pending);
}

/* ---- members ---- */

static int round_compare_by_name(const void *a, const void *b)
{
    const struct net_name *x = a, *y = b;
    if (x->world != y->world)
        return x->world < y->world ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Orders the members of an intercommunicator by their names, which are the same at both sides. */
static void sort_both_sides(struct net *net, struct ft_members *m)
{
    struct {
        struct net_name name;
        uint32_t number;
    } *all = malloc(m->n * sizeof(*all));
    CHECK_MEMORY(all != NULL, "the members of an intercommunicator");
    for (uint32_t i = 0; i < m->n; i++) {
        all[i].name = net_process_name(net, m->numbers[i]);
        all[i].number = m->numbers[i];
    }
    qsort(all, m->n, sizeof(*all), round_compare_by_name);
    for (uint32_t i = 0; i < m->n; i++)
        m->numbers[i] = all[i].number;
    free(all);
}

int ft_members_open(struct comm *c, struct ft_members *out)
{
    uint32_t n = (uint32_t)(c->size + (c->remote ? c->remote->size : 0));
    *out = (struct ft_members){.n = n, .numbers = malloc(n * sizeof(*out->numbers))};
    if (!out->numbers)
        return err_set(MPI_ERR_NO_MEM, "out of memory for an agreement of %u processes", n);
    for (int i = 0; i < c->size; i++)
        out->numbers[i] = group_job_rank(c->group, i);
    for (int i = 0; c->remote && i < c->remote->size; i++)
        out->numbers[c->size + i] = group_job_rank(c->remote, i);
    if (c->remote)
        sort_both_sides(c->proc->net, out);
    while (out->numbers[out->me] != c->proc->rank)
        out->me++;
    return MPI_SUCCESS;
}

void ft_members_close(struct ft_members *m)
{
    free(m->numbers);
    m->numbers = NULL;
}

/* ---- one agreement ---- */

static void send_agree_message(void *arg, uint32_t to, const struct agree_message *m)
{
    struct ft_round *r = arg;
    struct frame_header h = {.kind = P2P_FRAME_FAULT,
                             .flags = FT_AGREE,
                             .context = r->context,
                             .source = (int32_t)r->members.me,
                             .tag = (int32_t)r->number,
                             .word = r->agree->nwords};
    KILL_POINT(agree_sending);
    ft_send(r->proc, r->members.numbers[to], &h, m, agree_message_size(r->agree));
    KILL_POINT(agree_sent);
}

static struct agree_out make_agree_output(struct ft_round *r)
{
    return (struct agree_out){send_agree_message, r, r->scratch};
}

/* Marks the agreements below this number as spent: all living members have decided them. */
static void free_decided_rounds(struct ft *ft, uint32_t context, uint32_t number)
{
    list_foreach(pos, &ft->rounds)
    {
        struct ft_round *r = list_entry(pos, struct ft_round, link);
        if (r->context == context && r->number < number)
            r->spent = ft->spent = true;
    }
}

/* Returns the number of the first agreement on this communicator that is not decided at this process. */
static uint32_t first_undecided_agreement(const struct ft *ft, const struct comm *c)
{
    uint32_t first = c->agreements;
    list_foreach(pos, &ft->rounds)
    {
        const struct ft_round *r = list_entry(pos, struct ft_round, link);
        if (r->context == c->context && !r->is_reported && r->number < first)
            first = r->number;
    }
    return first;
}

static void round_report_decision(struct ft_round *r)
{
    if (r->is_reported || !r->agree->decided || !r->agree->begun)
        return;
    r->is_reported = true;
    r->over(r, r->arg);
    if (r->number != FT_FAREWELL)
        free_decided_rounds(r->proc->ft, r->context, agree_decode_first_open(r->agree));
}

/* Called after an event. If this process has just become the root of the agreement of MPI_Finalize,
 * requests FT_LEFT from members that have left. led: this process was the root before the event. */
static void round_request_departure_replies(struct ft_round *r, bool led)
{
    struct proc *p = r->proc;
    struct frame_header h = {.kind = P2P_FRAME_FAULT, .flags = FT_ASK, .context = r->context};
    if (likely(led || !p->ending || r->context != p->world->context || r->agree->decided ||
               r->agree->epoch != r->agree->me))
        return;
    for (uint32_t i = 0; i < r->members.n; i++)
        if (i != r->members.me && !net_is_lost(p->net, r->members.numbers[i]))
            ft_send(p, r->members.numbers[i], &h, NULL, 0);
}

static void round_receive(struct ft_round *r, uint32_t from, const void *payload, size_t len)
{
    struct agree_out out = make_agree_output(r);
    CHECK(len == agree_message_size(r->agree),
          "an agreement message has the wrong length: all processes of this communicator must make the same "
          "fault-tolerance calls in the same order");
    const bool led = r->agree->epoch == r->agree->me;
    agree_receive(r->agree, from, payload, &out);
    round_request_departure_replies(r, led);
    round_report_decision(r);
}

void ft_round_free(struct ft_round *r)
{
    list_remove(&r->link);
    ft_members_close(&r->members);
    free(r->agree);
    free(r->scratch);
    free(r);
}

static struct ft_round *round_find(struct ft *ft, uint32_t context, uint32_t number)
{
    list_foreach(pos, &ft->rounds)
    {
        struct ft_round *r = list_entry(pos, struct ft_round, link);
        if (r->context == context && r->number == number)
            return r;
    }
    return NULL;
}

/* Between ft_enter() and ft_leave() no rounds are freed, since callers may still use them. */
static void ft_enter(struct ft *ft)
{
    ft->inside++;
}

/* Frees spent rounds. In a job without recovery, decided rounds are freed too: this process has already
 * forwarded the decision. */
static void ft_leave(struct proc *p)
{
    struct ft *ft = p->ft;
    if (--ft->inside > 0 || !(ft->spent || !p->net->lost))
        return;
    ft->spent = false;
    list_foreach_safe(pos, after, &ft->rounds)
    {
        struct ft_round *r = list_entry(pos, struct ft_round, link);
        if (r->spent || (!r->outlives && r->is_reported))
            ft_round_free(r);
    }
}

static void round_mark_freed(struct ft *ft, uint32_t context)
{
    list_foreach(pos, &ft->rounds)
    {
        struct ft_round *r = list_entry(pos, struct ft_round, link);
        r->spent = r->spent || r->context == context;
    }
    list_foreach_safe(pos, after, &ft->early)
    {
        struct ft_early *e = list_entry(pos, struct ft_early, link);
        if (e->context != context)
            continue;
        list_remove(&e->link);
        free(e);
    }
    ft->spent = true;
}

static struct ft_round *round_new(struct comm *c, uint32_t nwords, uint32_t nmost)
{
    struct ft_round *r = calloc(1, sizeof(*r));
    if (!r || ft_members_open(c, &r->members) != 0) {
        free(r);
        return NULL;
    }
    r->proc = c->proc;
    r->context = c->context;
    r->outlives = comm_outlives_deaths(c);
    r->agree = malloc(agree_size(r->members.n, nwords));
    if (r->agree) {
        agree_init(r->agree, r->members.n, r->members.me, nwords);
        agree_set_max_words(r->agree, nmost);
    }
    r->scratch = r->agree ? malloc(agree_message_size(r->agree)) : NULL;
    list_init(&r->link);
    if (!r->scratch) {
        ft_round_free(r);
        return NULL;
    }
    return r;
}

/* Reports the members that are known to be dead to the agreement, before its first message. */
static void round_report_dead(struct ft_round *r)
{
    struct agree_out out = make_agree_output(r);
    for (uint32_t i = 0; i < r->members.n; i++)
        if (net_is_lost(r->proc->net, r->members.numbers[i]))
            agree_member_died(r->agree, i, &out);
}

static void round_receive_early(struct ft *ft, struct ft_round *r)
{
    list_foreach_safe(pos, after, &ft->early)
    {
        struct ft_early *e = list_entry(pos, struct ft_early, link);
        if (e->context != r->context || e->number != r->number)
            continue;
        list_remove(&e->link);
        round_receive(r, e->from, e->message, e->len);
        free(e);
    }
}

/* A message of an agreement is one frame. All transports take frames of this size by default. */
#define MESSAGE_MAX 4096

static int round_check_size(const struct ft_round *r)
{
    if (agree_message_size(r->agree) <= MESSAGE_MAX)
        return 0;
    return err_set(MPI_ERR_UNSUPPORTED_OPERATION,
                   "an agreement of %u processes needs messages of %zu bytes, and the limit is %d bytes: use "
                   "a smaller communicator",
                   r->members.n, agree_message_size(r->agree), MESSAGE_MAX);
}

static void round_start(struct ft_round *r, const uint64_t *words)
{
    struct proc *p = r->proc;
    struct agree_out out = make_agree_output(r);
    ft_enter(p->ft);
    list_append(&p->ft->rounds, &r->link);
    round_report_dead(r);
    agree_begin(r->agree, words, &out);
    round_receive_early(p->ft, r);
    round_report_decision(r);
    ft_leave(p);
}

int ft_round_begin(struct comm *c, const uint64_t *words, uint32_t nwords, uint32_t nmost,
                   void (*over)(struct ft_round *r, void *arg), void *arg)
{
    uint64_t *all = malloc((nwords + 1) * sizeof(*all));
    struct ft_round *r = all ? round_new(c, nwords + 1, nmost + 1) : NULL;
    int rc = r ? round_check_size(r) : err_set(MPI_ERR_NO_MEM, "out of memory for an agreement");
    if (rc) {
        if (r)
            ft_round_free(r);
        free(all);
        return rc;
    }
    memcpy(all, words, nwords * sizeof(*all));
    all[nwords] = agree_encode_first_open(first_undecided_agreement(c->proc->ft, c));
    r->number = c->agreements++;
    r->over = over;
    r->arg = arg;
    c->messages_may_arrive_later =
        true; /* messages of this agreement may arrive after the communicator is freed */
    round_start(r, all);
    free(all);
    return MPI_SUCCESS;
}

/* ---- farewell ---- */

static void on_farewell_decided(struct ft_round *r, void *arg)
{
    (void)arg;
    round_mark_freed(r->proc->ft, r->context);
}

/* Ends farewells that wait for disconnected processes of other jobs, whose deaths are not reported. */
static void round_check_farewells(struct ft *ft)
{
    list_foreach(pos, &ft->rounds)
    {
        struct ft_round *r = list_entry(pos, struct ft_round, link);
        if (r->number != FT_FAREWELL || r->is_reported)
            continue;
        round_report_dead(r);
        round_report_decision(r);
    }
}

void ft_round_begin_farewell(struct comm *c)
{
    const uint64_t nothing = 0;
    struct proc *p = c->proc;
    /* Without recovery a message to a process of another job that has ended would end this job. */
    if (!p->net->lost) {
        ft_enter(p->ft);
        round_mark_freed(p->ft, c->context);
        ft_leave(p);
        return;
    }
    struct ft_round *r = round_new(c, 1, 0);
    CHECK_MEMORY(r != NULL, "the end of a communicator");
    r->number = FT_FAREWELL;
    r->over = on_farewell_decided;
    ft_enter(p->ft);
    round_check_farewells(p->ft);
    round_start(r, &nothing);
    ft_leave(p);
}

void ft_round_handle_departure(struct proc *p, uint32_t context)
{
    struct ft *ft = p->ft;
    ft_enter(ft);
    if (context_is_retired(p, context)) {
        round_mark_freed(ft, context);
    } else if (p->ending && context == p->world->context) {
        struct ft_round *r = round_find(ft, context, p->world->agreements - 1);
        if (r && !r->is_reported) {
            struct agree_out out = make_agree_output(r);
            agree_end_without_result(r->agree, &out);
            round_report_decision(r);
        }
    }
    ft_leave(p);
}

void ft_round_add_departure_request(struct proc *p, uint32_t number)
{
    struct ft *ft = p->ft;
    uint32_t *grown = realloc(ft->askers, (ft->naskers + 1) * sizeof(*grown));
    CHECK_MEMORY(grown != NULL, "the agreement of MPI_Finalize");
    ft->askers = grown;
    grown[ft->naskers++] = number;
}

/* ---- events ---- */

/* Replies FT_LEFT to a late message: this process has freed the agreements of the communicator, since all
 * members have left it or have called MPI_Finalize. */
void ft_reply_departed(struct proc *p, uint32_t number, uint32_t context)
{
    struct frame_header h = {.kind = P2P_FRAME_FAULT, .flags = FT_LEFT, .context = context};
    ft_send(p, number, &h, NULL, 0);
}

void ft_round_arrived(struct proc *p, struct peer *peer, const struct frame_header *h, const void *payload,
                      size_t len)
{
    struct ft *ft = p->ft;
    const struct comm *c = comm_of_context(p, h->context);
    uint32_t number = (uint32_t)h->tag, from = (uint32_t)h->source;
    struct ft_round *r = round_find(ft, h->context, number);
    if (r) {
        ft_enter(ft);
        round_receive(r, from, payload, len);
        ft_leave(p);
        return;
    }
    if (!c && context_is_retired(p, h->context)) {
        if (number == FT_FAREWELL)
            ft_reply_departed(p, peer->rank, h->context);
        return;
    }
    if (c && number < c->agreements)
        return; /* all members have decided this agreement */
    struct ft_early *e = malloc(sizeof(*e) + len);
    CHECK_MEMORY(e != NULL, "an agreement message that arrived before this process began the agreement");
    *e = (struct ft_early){.context = h->context, .number = number, .from = from, .len = len};
    memcpy(e->message, payload, len);
    list_append(&ft->early, &e->link);
}

void ft_round_died(struct proc *p, uint32_t number)
{
    struct ft *ft = p->ft;
    ft_enter(ft);
    list_foreach(pos, &ft->rounds)
    {
        struct ft_round *r = list_entry(pos, struct ft_round, link);
        struct agree_out out = make_agree_output(r);
        for (uint32_t i = 0; i < r->members.n; i++)
            if (r->members.numbers[i] == number) {
                const bool led = r->agree->epoch == r->agree->me;
                agree_member_died(r->agree, i, &out);
                round_request_departure_replies(r, led);
                round_report_decision(r);
                break;
            }
    }
    ft_leave(p);
}
