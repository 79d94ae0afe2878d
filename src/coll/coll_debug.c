/* coll_debug.c: FISHPLATE_DEBUG=coll: the record of a collective call, its exchange with the neighbours in the
 * ring of ranks, and the report when two records differ.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/coll_debug.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/place.h"
#include "base/tunable.h"
#include "boot/boot.h"

static TUNABLE_WORDS(
    debug, "DEBUG", "coll|leaks|match|rma",
    "Extra checks that find mistakes in programs: `coll` compares what ranks pass to collective "
    "operations and ends the job when they differ. Most calls with a different operation or root are "
    "found without it; a different order of blocking and nonblocking calls is a warning. `rma` warns when "
    "one-sided operations of one epoch touch the same bytes, and names "
    "both call sites. `leaks` lists at MPI_Finalize what was never freed, completed or received, and where "
    "it was made. `match` compares the datatypes of each send with those of its receive. Several are "
    "separated "
    "by commas.");

bool debug_coll;

#define UNKNOWN UINT64_MAX /* value not known at this rank; it is not compared */

struct record {
    char name[32];
    char type[48];
    uint64_t op;    /* handle of a predefined operator; 1: user-defined */
    uint64_t bytes; /* bytes of data, which must match for any choice of datatypes */
    int64_t count;
    int32_t root;
    int32_t rank;
    int32_t rooted;
    uint32_t form;  /* enum coll_form */
    uint64_t order; /* number of the call among the calls of all forms */
    struct code_place caller;
};

/* The messages to the next and from the previous rank of one comparison; freed when both are complete. */
struct comparison {
    struct record mine, theirs;
    struct comm *comm;
    int pending;
    int error; /* of a message, for example because a neighbour has died; the records are not compared */
    bool done;
    bool detached; /* the call does not wait for the comparison, which frees itself */
};

void debug_open(void)
{
    debug_coll = tunable_has_word(&debug, "coll");
}

static uint64_t count_calls(const struct comm *c)
{
    uint64_t calls = 0;
    for (int form = 0; form < COLL_FORMS; form++)
        calls += c->coll_sequence[form];
    return calls;
}

static void record_fill(struct record *r, const struct coll_args *args, const struct call *call)
{
    const struct coll_shape *shape = &call->shape;
    const struct coll_side *side = args->in_place || !args->send.type ? &args->recv : &args->send;
    memset(r, 0, sizeof(*r));
    snprintf(r->name, sizeof(r->name), "%s", args->name);
    const char *type = !side->type ? "" : side->type->name[0] ? side->type->name : "derived";
    snprintf(r->type, sizeof(r->type), "%.*s", (int)sizeof(r->type) - 1, type);
    if (args->op)
        r->op = args->op->handle ? args->op->handle : 1;
    r->bytes = args->vector && args->kind != COLL_REDUCE_SCATTER ? UNKNOWN : call->where.bytes;
    if (shape->remote_size || args->kind >= COLL_NEIGHBOR_ALLGATHER)
        r->bytes = UNKNOWN;
    r->count = side->type ? side->count : 0;
    r->root = shape->root;
    r->rank = shape->rank;
    r->rooted = kind_has_root(args->kind);
    r->form = call->form;
    r->order = count_calls(args->comm);
    place_find_mpi_caller(&r->caller, NULL, 0);
}

static bool are_values_known(uint64_t a, uint64_t b, uint64_t unknown)
{
    return a != unknown && b != unknown;
}

/* Compares two records. Skips unknown values: in the root group of an intercommunicator only the root has
 * data. */
static bool record_differs(const struct record *a, const struct record *b)
{
    if (strcmp(a->name, b->name) != 0 ||
        (are_values_known(a->bytes, b->bytes, UNKNOWN) && a->bytes != b->bytes))
        return true;
    if (a->root != b->root && (a->root >= 0 || b->root >= 0))
        return true;
    return are_values_known(a->op, b->op, 0) &&
           (a->op != b->op || (are_values_known(a->type[0], b->type[0], 0) && strcmp(a->type, b->type)));
}

static const char *root_constant_name(int root)
{
    return root == ROOT_SELF ? "MPI_ROOT" : "MPI_PROC_NULL";
}

/* Prints a record as "rank 1 at solver.c:12 calls MPI_Bcast with 4 x MPI_INT (16 bytes), root 0". */
static void record_print(FILE *out, const struct record *r)
{
    char caller[256];
    place_text(&r->caller, caller, sizeof(caller));
    fprintf(out, "rank %d at %s calls %s", r->rank, caller, r->name);
    if (r->type[0])
        fprintf(out, " with %lld x %s", (long long)r->count, r->type);
    if (r->type[0] && r->bytes != UNKNOWN)
        fprintf(out, " (%llu bytes)", (unsigned long long)r->bytes);
    if (r->op)
        fprintf(out, ", operator %s", op_name((uint32_t)r->op));
    if (r->rooted && r->root >= 0)
        fprintf(out, ", root %d", r->root);
    else if (r->rooted)
        fprintf(out, ", root %s", root_constant_name(r->root));
}

static void comparison_report(const struct comparison *c)
{
    char sentence[1024] = "";
    FILE *out = fmemopen(sentence, sizeof(sentence), "w");
    if (out) {
        fprintf(out, "collective calls do not match on %s: ", comm_label(c->comm));
        record_print(out, &c->mine);
        fprintf(out, ", but ");
        record_print(out, &c->theirs);
        fclose(out);
    }
    boot_abort(c->comm->proc->boot, MPI_ERR_OTHER, sentence);
}

/* Warns once that ranks call blocking, nonblocking and persistent collectives in different orders. MPI
 * 5.0, 6.12 forbids this, but the calls have different tags, so data is not mixed up. */
static void order_report(const struct comm *c, const struct record *theirs)
{
    if (!c->coll || c->coll->order_reported) /* no state: the communicator has lost a process */
        return;
    c->coll->order_reported = true;
    /* debug_check() and the executor both number each call, so two numbers are one call. */
    const unsigned long long call = (theirs->order + 1) / 2;
    log_warn("The order of collective calls differs on %s: call %llu of rank %d is %s, call %llu of rank %d "
             "is another one. MPI requires "
             "the same order of blocking, nonblocking and persistent calls on all ranks. The job continues. "
             "This is reported once "
             "for each communicator.",
             comm_label(c), call, theirs->rank, theirs->name, call, c->rank);
}

void debug_check_record(const struct comm *c, const void *record, uint64_t length)
{
    struct record theirs;
    if (length != sizeof(theirs) || !record)
        return;
    memcpy(&theirs, record, sizeof(theirs));
    if (theirs.form < COLL_FORMS && theirs.order <= count_calls(c) &&
        memchr(theirs.name, 0, sizeof(theirs.name)))
        order_report(c, &theirs);
}

/* Called when one of the two messages, or the call that started them, has ended. Compares the records
 * after the last of the three. */
static void on_message_finished(struct comparison *c)
{
    if (--c->pending > 0)
        return;
    if (!c->error && record_differs(&c->mine, &c->theirs))
        comparison_report(c);
    if (!c->error && c->mine.order != c->theirs.order)
        order_report(c->comm, &c->theirs);
    c->done = true;
    if (c->detached)
        free(c);
}

static void message_done(struct request *m)
{
    struct comparison *c = m->user;
    c->error = c->error ? c->error : m->error;
    on_message_finished(c);
}

static void comparison_watch_request(struct comparison *c, struct request *m)
{
    if (request_detach(m, message_done, c)) {
        c->pending++;
        return;
    }
    c->error = c->error ? c->error : m->error;
    request_free(m);
}

static int comparison_exchange(struct comparison *cmp, struct comm *c, int tag)
{
    struct request *in, *out;
    struct peer *next;
    int rc = comm_get_peer(c, (c->rank + 1) % c->size, &next);
    if (!rc)
        rc = p2p_irecv(c->proc->p2p, &cmp->theirs, sizeof(cmp->theirs), byte_type(),
                       comm_coll_envelope(c, (c->rank + c->size - 1) % c->size, tag), &in);
    if (rc)
        return rc;
    comparison_watch_request(cmp, in);
    rc = p2p_isend(c->proc->p2p, &cmp->mine, sizeof(cmp->mine), byte_type(), next,
                   comm_coll_envelope(c, c->rank, tag), SEND_STANDARD, &out);
    if (!rc)
        comparison_watch_request(cmp, out);
    return rc;
}

/* Waits until both messages are complete, and frees the comparison. */
static int comparison_wait(struct comparison *cmp, const struct comm *c)
{
    const uint32_t previous = group_job_rank(c->group, (c->rank + c->size - 1) % c->size);
    const struct net_named what = {"record of a collective call of the previous rank", previous, false};
    struct net_waiter w = {.awaited_kind = NET_NAMED, .awaited = &what};
    while (!cmp->done)
        net_wait_step(c->proc->net, &w);
    net_wait_end(c->proc->net, &w);
    const int rc = cmp->error;
    free(cmp);
    return rc;
}

int debug_check(const struct coll_args *args, const struct call *call, bool wait)
{
    struct comm *c = args->comm->remote ? args->comm->local_comm : args->comm;
    struct coll_state *state = args->comm->coll;
    /* also for a single rank, so that call numbers do not depend on the size */
    const uint32_t number = coll_number_call(state, args, call->form, 0);
    state->past[call->form][number % COLL_PAST] = COLL_KIND_REPORTED;
    if (c->size == 1)
        return 0;
    struct comparison *cmp = calloc(1, sizeof(*cmp));
    if (!cmp)
        return err_set(MPI_ERR_NO_MEM, "out of memory while comparing collective calls");
    record_fill(&cmp->mine, args, call);
    cmp->comm = args->comm;
    cmp->pending = 1; /* 1 until both messages have been started */
    const int rc = comparison_exchange(cmp, c, coll_make_tag(COLL_KIND_DEBUG, 0, call->form, number));
    cmp->error = cmp->error ? cmp->error : rc;
    const bool detached = cmp->detached = (!wait || rc) && cmp->pending > 1;
    on_message_finished(cmp);
    return detached ? rc : comparison_wait(cmp, c);
}
