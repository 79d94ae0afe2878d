/* exec.c: executes the steps of a schedule: local steps at once, messages as requests whose completion
 * continues the schedule. If a step fails, its error is recorded and the schedule continues, so that other
 * ranks do not wait for ever. Later messages of this rank are empty, which their receivers detect as an
 * error.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/sched/exec.h"

#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "gpu/gpu.h"

static COUNTER(direct, "coll_device_direct_calls",
               "Collective calls that ran on GPU memory as it is, without copies in host memory.");
static COUNTER(steps_done, "coll_steps", "Steps of collective schedules executed.");

static void request_number(struct coll_request *r, const struct coll_args *args, enum coll_form form)
{
    const uint32_t number = coll_number_call(r->state, args, form, 0);
    r->tag =
        coll_make_tag(args->kind, coll_get_past_root(r->state->past[form][number % COLL_PAST]), form, number);
}

static int progress_hook(struct net_hook *hook);
static void request_release_arguments(struct coll_request *r);

static void exec_record_error(struct coll_request *r, int rc)
{
    if (unlikely(rc) && !r->error)
        r->error = rc;
}

/* Checks a completed receive. Sender and receiver specify the same number of bytes, so a short message
 * means mismatched calls or an earlier error of the sender. */
static void check_received_message(struct coll_request *r, const struct request *m)
{
    exec_record_error(r, m->error);
    if (unlikely(!r->error && p2p_receive_is_short(m)))
        exec_record_error(
            r, err_set(MPI_ERR_OTHER,
                       "a collective call got %lld bytes from rank %d, fewer than it expects: counts and "
                       "datatypes do not match there, or that rank met an error",
                       (long long)m->bytes, m->source));
}

/* Records a completed message. Runs inside progress, where new messages must not be started; the hook
 * starts them later in the same call of progress. */
static void message_done(struct request *m)
{
    struct coll_request *r = m->user;
    check_received_message(r, m);
    if (--r->pending == 0 && !r->running)
        list_append(&r->comm->proc->net->hooks, &r->hook.link);
}

static void exec_watch_request(struct coll_request *r, struct request *m)
{
    if (request_detach(m, message_done, r)) {
        r->pending++;
        return;
    }
    check_received_message(r, m);
    request_free(m);
}

static void start_message(struct coll_request *r, const struct step *step)
{
    struct place p = {.type = byte_type()};
    if (step->count > 0) {
        p = binding_get_place(&r->binding, step->buf[0], step->at[0], step->count);
        if (p.count == 0 || p.type->size == 0)
            return; /* the peer skips this message too */
    }
    const bool remote = PEER_IS_REMOTE(step->peer);
    struct comm *c = r->comm->remote && !remote ? r->comm->local_comm : r->comm;
    const int rank = remote ? PEER_REMOTE(step->peer) : step->peer;
    const int tag = c == r->comm ? r->tag : r->tag | COLL_TAG_LOCAL;
    struct request *m = NULL;
    int rc;
    if (step->kind == STEP_SEND) {
        struct peer *peer;
        if (unlikely(r->error))
            p = (struct place){.type = byte_type()};
        rc = comm_get_peer(c, rank, &peer);
        if (!rc)
            rc = p2p_isend(r->base.p2p, p.at, p.count, p.type, peer, comm_coll_envelope(c, c->rank, tag),
                           SEND_STANDARD, &m);
    } else {
        rc = p2p_irecv(r->base.p2p, p.at, p.count, p.type, comm_coll_envelope(c, rank, tag), &m);
    }
    exec_record_error(r, rc);
    if (!rc)
        exec_watch_request(r, m);
}

static void exec_copy_step(struct coll_request *r, const struct step *step)
{
    struct place from = binding_get_place(&r->binding, step->buf[0], step->at[0], step->count);
    struct place to = binding_get_place(&r->binding, step->buf[1], step->at[1], step->count);
    exec_record_error(r, dt_copy(from.at, from.count, from.type, to.at, to.count, to.type));
    /* Data that a rank sends to itself has a send and a receive description, whose lengths may differ. */
    if (unlikely(from.count * from.type->size < to.count * to.type->size))
        exec_record_error(
            r, err_set(MPI_ERR_OTHER,
                       "a collective call sends %lld bytes from this rank to itself, where it expects %lld: "
                       "counts and datatypes do not match",
                       (long long)(from.count * from.type->size), (long long)(to.count * to.type->size)));
}

static void exec_reduce_step(struct coll_request *r, const struct step *step)
{
    struct place left = binding_get_place(&r->binding, step->buf[0], step->at[0], step->count);
    struct place right = binding_get_place(&r->binding, step->buf[1], step->at[1], step->count);
    struct place out = binding_get_place(&r->binding, step->buf[2], step->at[2], step->count);
    if (unlikely(r->near != NULL)) {
        const bool swap = out.at == left.at;
        exec_record_error(r, op_apply3_on_device(r->op, swap ? right.at : left.at, swap ? left.at : right.at,
                                                 out.at, out.count, out.type));
        return;
    }
    if (out.at == right.at) {
        op_apply(r->op, left.at, out.at, out.count, out.type);
    } else if (out.at == left.at) { /* only for commutative operators (sched.h) */
        op_apply(r->op, right.at, out.at, out.count, out.type);
    } else if (!op_apply3(r->op, left.at, right.at, out.at, out.count, out.type)) {
        dt_copy(right.at, right.count, right.type, out.at, out.count, out.type);
        op_apply(r->op, left.at, out.at, out.count, out.type);
    }
}

static void exec_finish(struct coll_request *r)
{
    binding_unpack_staged(&r->binding);
    if (r->scratch) {
        r->state->scratch_busy = r->scratch = false;
        r->temp = NULL;
    }
    request_complete(&r->base, r->error);
}

static bool is_failure_error(int error)
{
    return error == MPIX_ERR_PROC_FAILED || error == MPIX_ERR_REVOKED;
}

static void exec_advance(struct coll_request *r)
{
    const struct sched *s = &r->plan->sched;
    r->running = true;
    while (r->next < s->count) {
        if (unlikely(r->error) && is_failure_error(r->error)) {
            r->next = s->count; /* other ranks are notified of the failure and await no messages */
            break;
        }
        const struct step *step = &s->steps[r->next];
        if (step->kind == STEP_FENCE && r->pending > 0)
            break;
        r->next++;
        switch (step->kind) {
        case STEP_SEND:
        case STEP_RECV:
            start_message(r, step);
            break;
        case STEP_COPY:
            exec_copy_step(r, step);
            break;
        case STEP_REDUCE:
            exec_reduce_step(r, step);
            break;
        }
    }
    r->running = false;
    if (r->next == s->count && r->pending == 0) {
        counter_add(&steps_done, s->count);
        exec_finish(r);
    }
}

static int progress_hook(struct net_hook *hook)
{
    list_remove(&hook->link);
    exec_advance(container_of(hook, struct coll_request, hook));
    return 1;
}

static int exec_allocate_temp(struct coll_request *r)
{
    struct coll_state *state = r->state;
    size_t need = r->binding.temp_size;
    if (need == 0)
        return 0;
    r->temp_on_device = r->near && (r->temp = gpu_get_temporary(need, r->near)) != NULL;
    if (r->temp_on_device) {
        binding_temp(&r->binding, r->temp);
        return 0;
    }
    if (r->owns || need > SCRATCH_MAX || state->scratch_busy) {
        r->temp = malloc(need);
    } else {
        if (state->scratch_size < need) {
            free(state->scratch);
            state->scratch_size = 0;
            size_t size = need < 4096 ? 4096 : SCRATCH_MAX;
            state->scratch = malloc(size);
            if (state->scratch)
                state->scratch_size = size;
        }
        r->temp = state->scratch;
        r->scratch = state->scratch_busy = r->temp != NULL;
    }
    if (!r->temp)
        return err_set(MPI_ERR_NO_MEM, "out of memory for %zu bytes of temporary data of a collective", need);
    binding_temp(&r->binding, r->temp);
    return 0;
}

static int request_new(struct coll_state *state, const struct coll_args *args, const struct coll_shape *shape,
                       struct plan *plan, bool splits, struct coll_request **out)
{
    struct coll_request *r = state->spare;
    if (r) {
        state->spare = r->spare;
        if (unlikely(objmem_watch != NULL))
            objmem_watch(r, sizeof(*r)); /* report a new object to debugging tools */
    } else if (!(r = objmem_new(sizeof(*r)))) {
        plan_release(plan);
        return err_set(MPI_ERR_NO_MEM, "out of memory for a collective request");
    }
    r->base = (struct request){.obj = object_init(MAGIC_REQUEST),
                               .ops = &coll_request_ops,
                               .p2p = args->comm->proc->p2p,
                               .active = true,
                               .source = MPI_ANY_SOURCE,
                               .tag = MPI_ANY_TAG};
    r->hook.progress = progress_hook;
    list_init(&r->hook.link);
    r->state = state;
    r->plan = plan;
    r->op = args->op;
    r->comm = args->comm;
    r->running = r->scratch = r->owns = false;
    r->temp = NULL;
    r->near = NULL;
    r->temp_on_device = false;
    r->types[0] = r->types[1] = NULL;
    r->block_types = NULL;
    r->nblock_types = 0;
    r->arrays = NULL;
    int rc = binding_make(&r->binding, args, shape, plan->sched.temp, splits);
    if (rc)
        request_release_arguments(r);
    else
        *out = r;
    return rc;
}

static void request_begin(struct coll_request *r)
{
    atomic_store_explicit(&r->base.complete, 0, memory_order_relaxed);
    r->next = r->pending = 0;
    r->error = r->temp ? 0 : exec_allocate_temp(r);
    if (r->error) {
        request_complete(&r->base, r->error);
        return;
    }
    binding_pack_staged(&r->binding);
    exec_advance(r);
}

static void exec_retain_type(struct coll_request *r, int i, struct dtype *type)
{
    if (type)
        dtype_retain(type);
    r->types[i] = type;
}

/* Retains the datatype of each block of the w variants. */
static int retain_block_types(struct coll_request *r, const struct coll_side *side, int n)
{
    if (!side->types || !side->counts.p || n == 0)
        return 0;
    struct dtype **grown = realloc(r->block_types, (size_t)(r->nblock_types + n) * sizeof(*grown));
    if (!grown)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the datatypes of %d blocks", n);
    r->block_types = grown;
    for (int i = 0; i < n; i++) {
        struct dtype *type = dtype_from_handle(side->types[i]);
        dtype_retain(type);
        r->block_types[r->nblock_types++] = type;
    }
    return 0;
}

/* Returns the bytes of one array of n numbers, rounded up so that the next array is aligned. */
static size_t array_size(struct ivec v, int n)
{
    return v.p ? ALIGN_UP((size_t)n * (v.wide ? sizeof(int64_t) : sizeof(int)), sizeof(int64_t)) : 0;
}

static char *copy_array(struct ivec *v, int n, char *at)
{
    const size_t size = array_size(*v, n);
    if (size) {
        memcpy(at, v->p, (size_t)n * (v->wide ? sizeof(int64_t) : sizeof(int)));
        v->p = at;
    }
    return at + size;
}

static size_t side_size(const struct bound *b, int n)
{
    return (b->types ? (size_t)n * sizeof(*b->types) : 0) + array_size(b->counts, n) +
           array_size(b->displs, n);
}

static char *copy_side(struct bound *b, int n, char *at)
{
    if (b->types && n > 0) {
        b->types = memcpy(at, b->types, (size_t)n * sizeof(*b->types));
        at += (size_t)n * sizeof(*b->types);
    }
    return copy_array(&b->displs, n, copy_array(&b->counts, n, at));
}

/* Copies the arrays of counts, displacements and types: the standard forbids changes during the call, but
 * programs and language bindings free the arrays as soon as the call returns. */
static int copy_argument_arrays(struct coll_request *r, const struct coll_args *args, int nsend, int nrecv)
{
    if (!kind_has_blocks(args->kind) || (!args->send.counts.p && !args->recv.counts.p))
        return 0;
    struct bound *send = &r->binding.buf[BUF_SEND], *recv = &r->binding.buf[BUF_RECV];
    const size_t size = side_size(send, nsend) + side_size(recv, nrecv);
    if (size == 0)
        return 0;
    r->arrays = malloc(size);
    if (!r->arrays)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the counts and displacements of %d blocks",
                       nsend + nrecv);
    copy_side(recv, nrecv, copy_side(send, nsend, r->arrays));
    return 0;
}

static int request_retain_arguments(struct coll_request *r, const struct coll_args *args)
{
    const bool neighbors = args->kind >= COLL_NEIGHBOR_ALLGATHER;
    const int peers = comm_peers(args->comm);
    const int nsend = neighbors ? r->state->ndestinations : peers;
    const int nrecv = neighbors ? r->state->nsources : peers;
    r->owns = true;
    r->base.comm = comm_retain(args->comm);
    exec_retain_type(r, 0, args->send.type);
    exec_retain_type(r, 1, args->recv.type);
    if (r->op)
        op_retain(r->op);
    int rc = retain_block_types(r, &args->send, nsend);
    if (!rc)
        rc = retain_block_types(r, &args->recv, nrecv);
    return rc ? rc : copy_argument_arrays(r, args, nsend, nrecv);
}

static void request_release_arguments(struct coll_request *r)
{
    struct coll_state *state = r->state;
    binding_free(&r->binding);
    plan_release(r->plan);
    free(r->arrays);
    if (r->temp_on_device)
        gpu_put_temporary(r->temp);
    else if (!r->scratch)
        free(r->temp);
    if (r->owns) {
        for (int i = 0; i < 2; i++)
            if (r->types[i])
                dtype_release(r->types[i]);
        for (int i = 0; i < r->nblock_types; i++)
            dtype_release(r->block_types[i]);
        free(r->block_types);
        if (r->op)
            op_release(r->op);
    }
    r->base.obj.magic = MAGIC_FREED;
    r->spare = state->spare;
    state->spare = r;
}

static void exec_release(struct request *base)
{
    request_release_arguments(container_of(base, struct coll_request, base));
}

static int exec_start(struct request *base)
{
    base->active = true;
    request_begin(container_of(base, struct coll_request, base));
    return 0;
}

const struct request_ops coll_request_ops = {.name = "collective", .release = exec_release};
const struct request_ops coll_persistent_ops = {
    .name = "persistent collective", .start = exec_start, .release = exec_release};

/* ---- the executor ---- */

static bool schedule_fits(const struct call *call, const struct coll_choice *choice)
{
    (void)call;
    return choice->algorithm->generate != NULL;
}

static int run_blocking(struct coll_request *r)
{
    r->number = r->state->page->calls;
    request_begin(r);
    net_wait(r->comm->proc->net, &r->base.complete);
    const int rc = r->base.error;
    request_release_arguments(r);
    return rc;
}

/* Runs the call as a request: retains the arguments, and starts the call unless it is persistent. */
static int run_as_request(struct coll_request *r, const struct call *call, struct request **out)
{
    struct coll_state *state = call->state;
    const int rc = request_retain_arguments(r, call->args);
    if (rc) {
        request_free(&r->base);
        return rc;
    }
    *out = &r->base;
    if (call->form == FORM_PERSISTENT) {
        r->number = 0; /* not numbered: ranks may start persistent calls in different orders */
        r->base.ops = &coll_persistent_ops;
        r->base.persistent = true;
        r->base.active = false;
        atomic_store_explicit(&r->base.complete, 1, memory_order_relaxed);
        return 0;
    }
    page_comm_count(state->page);
    page_comm_record_kind(state->page, call->args->kind);
    r->number = state->page->calls;
    request_begin(r);
    return 0;
}

static bool schedule_run(struct call *call, const struct coll_choice *choice, struct request **request,
                         int *rc)
{
    struct plan *plan;
    struct coll_request *r;
    call_choose(call, choice);
    *rc = plan_get(&call->state->plans, choice->algorithm, &call->shape, &plan);
    if (!*rc)
        *rc = request_new(call->state, call->args, &call->shape, plan,
                          call_can_split(call, choice->algorithm), &r);
    if (*rc)
        return true;
    request_number(r, call->messages_of, call->form);
    if (unlikely(call->device_direct)) {
        counter_add(&direct, 1);
        r->near = gpu_memory_is_device(call->args->recv.buf) ? call->args->recv.buf : call->args->send.buf;
    }
    *rc = request ? run_as_request(r, call, request) : run_blocking(r);
    return true;
}

static void schedule_close(struct coll_state *state)
{
    plan_cache_close(&state->plans);
    while (state->spare) {
        struct coll_request *r = state->spare;
        state->spare = r->spare;
        objmem_free(r);
    }
    free(state->scratch);
}

const struct coll_executor schedule_executor = {.name = "schedule",
                                                .fits = schedule_fits,
                                                .run = schedule_run,
                                                .takes_device_memory = true,
                                                .close = schedule_close};
