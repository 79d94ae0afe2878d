/* file_op.c: the steps of a collective access: exchange records of the accesses of all ranks, transfer the
 * data, and, for a write, agree whether all data is in the file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/file_op.h"

#include <stdlib.h>

#include "base/objmem.h"
#include "io/same_call.h"
#include "io/aggregators.h"

static void io_op_release(struct request *base)
{
    struct io_op *op = container_of(base, struct io_op, base);
    list_remove(&op->link);
    free(op->all);
    base->obj.magic = MAGIC_FREED;
    objmem_free(op);
}

static const struct request_ops file_ops = {.name = "file operation", .release = io_op_release};

struct file *io_op_file(const struct request *r)
{
    return r->ops == &file_ops ? container_of(r, struct io_op, base)->file : NULL;
}

static int progress_hook(struct net_hook *hook);

static int io_op_new(struct file *f, struct io_op **out)
{
    struct io_op *op = objmem_new(sizeof(*op));
    if (!op)
        return err_set(MPI_ERR_NO_MEM, "%s: out of memory for a request", f->name);
    *op = (struct io_op){.file = f};
    request_setup(&op->base, f->comm->proc->p2p, &file_ops);
    op->hook.progress = progress_hook;
    list_append(&f->ops, &op->link);
    *out = op;
    return 0;
}

int io_op_create_complete(struct access *a, int rc, struct request **out)
{
    struct io_op *op;
    MPI_Count bytes = 0;
    rc = access_close(a, rc, &bytes);
    const int failed = io_op_new(a->file, &op);
    if (failed)
        return failed;
    op->base.bytes = bytes;
    request_complete(&op->base, rc);
    *out = &op->base;
    return 0;
}

/* The caller of a blocking operation advances it, because the small collectives may not block inside
 * progress. */
void io_op_ready(struct io_op *op)
{
    struct net *net = op->file->comm->proc->net;
    if (op->running || op->linked)
        return;
    op->linked = true;
    if (!op->blocking)
        list_append(&net->hooks, &op->hook.link);
    else if (net->lock)
        net_ring_own_doorbell(net);
}

int io_op_wait_all(struct file *f)
{
    const struct net_named what = {"operations on a file that is being closed", NET_NOBODY, false};
    struct net_waiter w = {.awaited_kind = NET_NAMED, .awaited = &what};
    list_foreach(node, &f->ops)
    {
        if (!list_entry(node, struct io_op, link)->base.freed)
            return err_set(MPI_ERR_FILE,
                           "%s has an operation that was begun and not completed; wait for it first",
                           f->name);
    }
    while (!list_empty(&f->ops))
        net_wait_step(f->comm->proc->net, &w);
    net_wait_end(f->comm->proc->net, &w);
    return 0;
}

static void io_op_record_error(struct io_op *op, int rc)
{
    if (rc && !op->error)
        op->error = rc;
}

/* Ends the operation with an error: without the records of the other ranks it cannot continue. */
static void io_op_fail(struct io_op *op, int rc)
{
    op->lost = op->lost || rc != 0;
    io_op_record_error(op, agree_map_failure(op->file->comm, op->file->name, rc));
}

static void io_op_on_collective_done(struct request *r)
{
    io_op_ready(r->user);
}

/* Starts a small collective whose sequence number is reserved, or completes it at once. */
static void io_op_start_collective(struct io_op *op, struct request *r, struct coll_args *args)
{
    if (op->blocking) {
        io_op_fail(op, coll_run(args));
        return;
    }
    r->on_complete = io_op_on_collective_done;
    r->user = op;
    r->ops->start(r);
}

static bool io_op_is_collective_complete(struct io_op *op, struct request **r)
{
    if (!*r)
        return true;
    if (!atomic_load_explicit(&(*r)->complete, memory_order_acquire))
        return false;
    io_op_fail(op, (*r)->error);
    request_free(*r);
    *r = NULL;
    return true;
}

static void io_op_describe(struct io_op *op)
{
    const struct access *a = &op->access;
    int64_t at;
    op->mine[RECORD_LENGTH] = (int64_t)a->length;
    if (a->length == 0)
        return;
    view_file_range(&a->view, a->start, a->length, &op->mine[RECORD_FROM], &op->mine[RECORD_TO]);
    if (!view_is_sorted(&a->view, a->start, a->length)) {
        op->mine[RECORD_PIECES] = RECORD_UNSORTED;
        return;
    }
    struct view_walk w;
    view_walk_open(&w, &a->view, a->start, a->start + a->length);
    const uint64_t first = view_walk_next(&w, a->length, &at);
    op->mine[RECORD_PIECES] = (int64_t)((a->length + first - 1) / first);
}

static void io_op_fill_gather_args(struct io_op *op, struct coll_args *args)
{
    agree_args_gather(args, op->file->comm, op->mine, op->all, RECORD_SIZE);
}

static void io_op_fill_verdict_args(struct io_op *op, struct coll_args *args)
{
    agree_args_max(args, op->file->comm, &op->code, 1);
}

/* Called with the records of all ranks: chooses access by each rank or by aggregators. */
static void io_op_choose_method(struct io_op *op)
{
    const struct file *f = op->file;
    struct access *a = &op->access;
    op->stage = IO_AGREEING;
    if (op->lost)
        return;
    const bool buffers = !f->atomic && aggregators_are_faster(f, a->write, op->all);
    if (!buffers) {
        io_op_record_error(op, access_transfer(a));
        return;
    }
    const int rc = exchange_open(op, &op->exchange);
    CHECK_MEMORY(rc == 0, "a collective file operation");
    op->stage = IO_EXCHANGING;
}

static void io_op_finish_exchange(struct io_op *op)
{
    struct access *a = &op->access;
    int64_t end;
    io_op_record_error(op,
                       agree_map_failure(op->file->comm, op->file->name, exchange_close(op->exchange, &end)));
    a->moved = op->error ? 0 : a->length;
    if (!op->error && !a->write)
        a->moved = view_offset_to_position(&a->view, a->start, a->start + a->length, end) - a->start;
    op->stage = IO_AGREEING;
}

static void io_op_finish(struct io_op *op)
{
    if (op->access.write)
        io_op_record_error(op, agree_decode(op->code, op->file->comm, op->file->name));
    op->error = access_close(&op->access, op->error, &op->base.bytes);
    op->stage = IO_DONE;
}

/* Makes one step. Returns true if the next step need not wait. */
static bool io_op_step(struct io_op *op)
{
    struct coll_args args;
    switch (op->stage) {
    case IO_BEGIN:
        op->stage = IO_GATHERING;
        io_op_fill_gather_args(op, &args);
        io_op_start_collective(op, op->gather, &args);
        return true;
    case IO_GATHERING:
        if (!io_op_is_collective_complete(op, &op->gather))
            return false;
        io_op_choose_method(op);
        if (op->stage == IO_AGREEING)
            break;
        return true;
    case IO_EXCHANGING:
        if (!exchange_advance(op->exchange))
            return false;
        io_op_finish_exchange(op);
        break;
    case IO_AGREEING:
        if (!io_op_is_collective_complete(op, &op->verdict))
            return false;
        io_op_finish(op);
        return false;
    default:
        return false;
    }
    /* The data was transferred. The result of a read is local; the result of a write includes the errors
     * of all ranks. */
    if (op->access.write) {
        op->code = agree_encode(op->error, op->file->comm->rank);
        io_op_fill_verdict_args(op, &args);
        io_op_start_collective(op, op->verdict, &args);
    }
    return true;
}

static void io_op_advance(struct io_op *op)
{
    op->running = true;
    while (io_op_step(op))
        ;
    op->running = false;
    if (op->stage == IO_DONE) /* frees the operation if the user has freed its request */
        request_complete(&op->base, op->error);
}

static int progress_hook(struct net_hook *hook)
{
    struct io_op *op = container_of(hook, struct io_op, hook);
    list_remove(&hook->link);
    op->linked = false;
    io_op_advance(op);
    return 1;
}

/* Describes the access and reserves the sequence numbers of the small collectives. */
static int io_op_prepare(struct io_op *op)
{
    struct coll_args args;
    struct file *f = op->file;
    op->all = malloc((size_t)f->comm->size * RECORD_SIZE * sizeof(*op->all));
    if (!op->all)
        return err_set(MPI_ERR_NO_MEM, "%s: out of memory for the records of %d ranks", f->name,
                       f->comm->size);
    op->tag = (int)(f->sequence++ & 0xffffff) << 3;
    io_op_describe(op);
    if (op->blocking)
        return 0;
    io_op_fill_gather_args(op, &args);
    int rc = coll_init(&args, &op->gather);
    if (!rc && op->access.write) {
        io_op_fill_verdict_args(op, &args);
        rc = coll_init(&args, &op->verdict);
    }
    return rc;
}

static int io_op_begin(struct access *a, int rc, bool blocking, struct io_op **out)
{
    struct io_op *op;
    MPI_Count bytes;
    const int failed = io_op_new(a->file, &op);
    if (failed)
        return access_close(a, failed, &bytes);
    op->access = *a;
    io_op_record_error(op, rc);
    op->blocking = blocking;
    rc = agree_map_failure(op->file->comm, op->file->name, io_op_prepare(op));
    if (rc) {
        access_close(&op->access, rc, &bytes);
        request_free(&op->base);
        return rc;
    }
    *out = op;
    io_op_advance(op);
    return 0;
}

int io_op_start(struct access *a, int rc, struct request **out)
{
    struct io_op *op;
    rc = io_op_begin(a, rc, false, &op);
    if (!rc)
        *out = &op->base;
    return rc;
}

int io_op_run(struct access *a, int rc, MPI_Count *bytes)
{
    struct io_op *op;
    struct net *net = a->file->comm->proc->net;
    rc = io_op_begin(a, rc, true, &op);
    if (rc)
        return rc;
    const struct net_named what = {"data of a file from other ranks", NET_NOBODY, false};
    struct net_waiter w = {.awaited_kind = NET_NAMED, .awaited = &what};
    while (op->stage != IO_DONE) {
        if (op->linked) {
            op->linked = false;
            io_op_advance(op);
        } else {
            net_wait_step(net, &w);
        }
    }
    net_wait_end(net, &w);
    rc = op->error;
    *bytes = op->base.bytes;
    request_free(&op->base);
    return rc;
}
