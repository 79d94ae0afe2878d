/* device_collectives.c: runs collectives on copies of GPU buffers in host memory, or decides to use them
 * directly.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/device_collectives.h"

#include <stdlib.h>

#include "base/counter.h"
#include "base/objmem.h"
#include "base/tunable.h"
#include "coll/sched/bind.h"
#include "dt/device_pack.h"
#include "obj/topo.h"

static COUNTER(staged, "coll_device_staged_bytes",
               "Bytes of collectives in GPU memory that were copied to or from host memory.");

static LABORATORY_SIZE(
    least, "GPU_COLL_MIN", 2 << 20, 64 * 1024, (int64_t)1 << 40,
    "Smallest collective call between two ranks, in bytes of the vector or of one block, that "
    "runs on buffers in GPU memory as they are; for each further rank as much again. "
    "Smaller calls run on copies in host memory.");

/* A range of the user's memory, and the offset of its copy in host memory. */
struct piece {
    void *at;
    MPI_Count count;
    struct dtype *type; /* retained */
    size_t offset;
};

/* Host copy of one buffer of a call. */
struct copied_side {
    struct piece *pieces, single; /* points to `single` if there is one piece */
    int npieces;                  /* 0: the buffer is not in GPU memory */
    char *host;
    size_t size;
    MPI_Aint gap;     /* reductions: bytes from the beginning of the buffer to its first byte of data */
    bool is_packed;   /* else the copy has the layout of the datatype */
    int64_t *numbers; /* counts and displacements of the copy */
};

struct copies {
    struct coll_args args; /* the call with host buffers */
    struct copied_side send, recv;
    bool reads_recv, writes_recv; /* the call reads its receive buffer, or writes it */
};

/* Returns the number of blocks of one side: 1, or one for each rank or neighbour. */
static int count_blocks(const struct coll_args *args, bool is_send)
{
    int in = 0, out = 0;
    switch (args->kind) {
    case COLL_NEIGHBOR_ALLGATHER:
    case COLL_NEIGHBOR_ALLTOALL:
        if (topology_degrees(args->comm, &in, &out) != 0)
            return 0;
        if (is_send)
            return args->kind == COLL_NEIGHBOR_ALLTOALL ? out : 1;
        return in;
    case COLL_GATHER:
    case COLL_ALLGATHER:
        return is_send ? 1 : comm_peers(args->comm);
    case COLL_SCATTER:
        return is_send ? comm_peers(args->comm) : 1;
    case COLL_ALLTOALL:
        return comm_peers(args->comm);
    default:
        return 1;
    }
}

/* Returns the number of elements of one side of a reduction. */
static MPI_Count count_reduced(const struct coll_args *args, bool is_send)
{
    MPI_Count total = 0;
    if (args->kind != COLL_REDUCE_SCATTER || (!is_send && !args->in_place))
        return args->send.count;
    if (!args->vector)
        return args->recv.count * args->comm->size;
    for (int r = 0; r < args->comm->size; r++)
        total += ivec_get(args->recv.counts, (size_t)r);
    return total;
}

/* Returns the memory of block i in the user's buffer. */
static struct piece find_block(const struct coll_side *side, int i)
{
    const size_t at = (size_t)i;
    if (!side->counts.p)
        return (struct piece){ptr_add(side->buf, i * side->count * side->type->extent), side->count,
                              side->type, 0};
    struct dtype *type = side->types ? dtype_from_handle(side->types[at]) : side->type;
    const MPI_Aint displ = side->displs.p ? ivec_get(side->displs, at) : 0;
    return (struct piece){ptr_add(side->buf, side->types ? displ : displ * type->extent),
                          ivec_get(side->counts, at), type, 0};
}

static bool is_empty(const struct coll_side *side)
{
    return !side->type && !side->types;
}

/* True if a buffer is in GPU memory. The first non-empty block decides, unless the buffer is MPI_BOTTOM,
 * whose blocks may be in different kinds of memory. */
static bool is_side_on_device(const struct coll_args *args, const struct coll_side *side, bool is_send)
{
    if (is_empty(side))
        return false;
    if (kind_reduces(args->kind))
        return dt_is_device(side->buf, count_reduced(args, is_send), side->type);
    const int blocks = count_blocks(args, is_send);
    for (int i = 0; i < blocks; i++) {
        const struct piece b = find_block(side, i);
        if (b.count == 0 || b.type->size == 0)
            continue;
        if (dt_is_device(b.at, b.count, b.type))
            return true;
        if (side->buf != MPI_BOTTOM)
            break;
    }
    return false;
}

bool coll_args_on_device(const struct coll_args *args)
{
    return is_side_on_device(args, &args->send, true) || is_side_on_device(args, &args->recv, false);
}

/* Smallest call, in bytes, that runs directly on GPU memory. It grows with the number of ranks, because
 * processes that share a GPU wait for each other (docs/gpu.md). */
uint64_t coll_device_min_bytes(int ranks)
{
    return (uint64_t)least.value * (uint64_t)MAX(ranks - 1, 1);
}

/* True if the data has no holes, as direct messages and kernels require. */
static bool is_dense(const struct coll_side *side)
{
    MPI_Aint offset;
    return is_empty(side) || (!side->types && dt_is_contiguous_block(side->type, 2, &offset) && offset == 0);
}

static uint64_t count_bytes(const struct coll_args *args, const struct coll_side *side, bool is_send)
{
    uint64_t total = 0;
    if (is_empty(side))
        return 0;
    if (kind_reduces(args->kind))
        return (uint64_t)(count_reduced(args, is_send) * side->type->size);
    const int blocks = count_blocks(args, is_send);
    if (!side->counts.p)
        return (uint64_t)blocks * (uint64_t)(side->count * side->type->size);
    for (int i = 0; i < blocks; i++)
        total += (uint64_t)(ivec_get(side->counts, (size_t)i) * side->type->size);
    return total;
}

bool coll_device_is_direct(const struct coll_args *args)
{
    const struct coll_side *send = &args->send, *recv = &args->recv;
    if (!is_dense(send) || !is_dense(recv))
        return false;
    if (MAX(count_bytes(args, send, true), count_bytes(args, recv, false)) <
        coll_device_min_bytes(args->comm->size))
        return false;
    if (!kind_reduces(args->kind))
        return true;
    /* If one operand is in host memory, a reduction on the host is faster than copies in each step. */
    const bool has_result = args->kind != COLL_REDUCE || args->root == args->comm->rank;
    return !args->comm->remote && op_has_kernel(args->op, send->type) &&
           (args->in_place || is_side_on_device(args, send, true)) &&
           (!has_result || is_side_on_device(args, recv, false));
}

static int out_of_memory(const struct coll_args *args)
{
    return err_set(MPI_ERR_NO_MEM, "%s: out of memory for a copy of a buffer in GPU memory", args->name);
}

/* Describes the copy of a reduction's buffer, which keeps the layout of the datatype. */
static void open_reduction(struct copied_side *s, struct coll_side *side, MPI_Count count)
{
    s->single = (struct piece){side->buf, count, side->type, 0};
    s->pieces = &s->single;
    s->npieces = 1;
    s->size = (size_t)dt_span(side->type, count, &s->gap);
}

/* Adds a block; a block that continues the last piece extends it. */
static void add_block(struct copied_side *s, struct piece b)
{
    struct piece *last = s->npieces > 0 ? &s->pieces[s->npieces - 1] : NULL;
    b.offset = s->size;
    s->size += (size_t)(b.count * b.type->size);
    if (b.count == 0)
        return;
    if (last && last->type == b.type && ptr_add(last->at, last->count * b.type->extent) == b.at)
        last->count += b.count;
    else
        s->pieces[s->npieces++] = b;
}

/* Describes the packed copy of a buffer of a call without reduction, block after block. */
static int open_blocks(struct copied_side *s, const struct coll_args *args, struct coll_side *side,
                       int blocks)
{
    const bool varies = side->counts.p != NULL;
    s->is_packed = true;
    s->pieces = varies ? calloc((size_t)blocks, sizeof(*s->pieces)) : &s->single;
    s->numbers = varies ? calloc((size_t)blocks * 2, sizeof(*s->numbers)) : NULL;
    if (!s->pieces || (varies && !s->numbers))
        return out_of_memory(args);
    if (!varies) {
        add_block(s, (struct piece){side->buf, side->count * blocks, side->type, 0});
        side->count *= side->type->size;
    } else {
        for (int i = 0; i < blocks; i++) {
            const struct piece b = find_block(side, i);
            s->numbers[i] = b.count * b.type->size;
            s->numbers[blocks + i] = (int64_t)s->size;
            add_block(s, b);
        }
        side->counts = ivec_from_int64(s->numbers);
        side->displs = ivec_from_int64(s->numbers + blocks);
    }
    side->types = NULL;
    side->type = byte_type();
    return 0;
}

static int open_side(struct copied_side *s, const struct coll_args *args, struct coll_side *side,
                     bool is_send)
{
    int rc = 0;
    if (!is_side_on_device(args, side, is_send))
        return 0;
    if (kind_reduces(args->kind))
        open_reduction(s, side, count_reduced(args, is_send));
    else
        rc = open_blocks(s, args, side, count_blocks(args, is_send));
    for (int i = 0; i < s->npieces; i++)
        dtype_retain(s->pieces[i].type);
    if (!rc && !(s->host = gpu_get_buffer(s->size)))
        rc = out_of_memory(args);
    side->buf = rc ? NULL : ptr_add(s->host, -s->gap);
    return rc;
}

static void close_side(struct copied_side *s)
{
    for (int i = 0; i < s->npieces; i++)
        dtype_release(s->pieces[i].type);
    if (s->pieces != &s->single)
        free(s->pieces);
    free(s->numbers);
    if (s->host)
        gpu_put_buffer(s->host, s->size);
}

/* True if the call reads the receive buffer or leaves parts of it unchanged: MPI_IN_PLACE, blocks of
 * MPI_PROC_NULL, rank 0 of an exclusive scan. */
static bool reads_receive_buffer(const struct coll_args *args, bool is_root)
{
    return args->in_place || args->kind >= COLL_NEIGHBOR_ALLGATHER || args->kind == COLL_EXSCAN ||
           (args->kind == COLL_BCAST && is_root);
}

static void copies_close(struct copies *c)
{
    close_side(&c->send);
    close_side(&c->recv);
}

static int copies_open(struct copies *c, const struct coll_args *args)
{
    const bool is_root = args->comm->remote ? args->root == MPI_ROOT : args->root == args->comm->rank;
    *c = (struct copies){.args = *args};
    c->reads_recv = reads_receive_buffer(args, is_root);
    c->writes_recv = args->kind != COLL_BCAST || !is_root;
    int rc = open_side(&c->send, args, &c->args.send, true);
    if (!rc)
        rc = open_side(&c->recv, args, &c->args.recv, false);
    if (rc)
        copies_close(c);
    return rc;
}

static int fill_side(const struct copied_side *s)
{
    int rc = 0;
    for (int i = 0; i < s->npieces && rc == 0; i++) {
        const struct piece *p = &s->pieces[i];
        rc = s->is_packed ? dt_pack_all(p->type, p->count, p->at, s->host + p->offset)
                          : dt_copy(p->at, p->count, p->type, ptr_add(s->host, -s->gap), p->count, p->type);
        counter_add(&staged, (uint64_t)(p->count * p->type->size));
    }
    return rc;
}

static int copies_fill(const struct copies *c)
{
    const int rc = fill_side(&c->send);
    return rc || !c->reads_recv ? rc : fill_side(&c->recv);
}

static int copies_write_back(const struct copies *c)
{
    const struct copied_side *s = &c->recv;
    int rc = 0;
    for (int i = 0; c->writes_recv && i < s->npieces && rc == 0; i++) {
        const struct piece *p = &s->pieces[i];
        const size_t size = (size_t)(p->count * p->type->size);
        rc = s->is_packed ? dt_unpack_all(p->type, p->count, p->at, s->host + p->offset, size)
                          : dt_copy(ptr_add(s->host, -s->gap), p->count, p->type, p->at, p->count, p->type);
        counter_add(&staged, size);
    }
    return rc;
}

/* ---- requests ---- */

struct copies_request {
    struct request base; /* first */
    struct request *inner;
    struct copies copies;
};

static void copies_request_end(struct copies_request *r)
{
    const int error = r->inner->error;
    request_complete(&r->base, error ? error : copies_write_back(&r->copies));
}

static void on_inner_complete(struct request *inner)
{
    copies_request_end(inner->user);
}

/* Called after the inner request was started, which may be complete already. */
static void watch_inner(struct copies_request *r)
{
    if (atomic_load_explicit(&r->inner->complete, memory_order_acquire)) {
        copies_request_end(r);
        return;
    }
    r->inner->on_complete = on_inner_complete;
    r->inner->user = r;
}

static int copies_request_start(struct request *base)
{
    struct copies_request *r = container_of(base, struct copies_request, base);
    r->inner->on_complete = NULL;
    int rc = copies_fill(&r->copies);
    rc = rc ? rc : r->inner->ops->start(r->inner);
    if (rc)
        return rc; /* the request stays inactive: a wait for it would not end */
    base->active = true;
    atomic_store_explicit(&base->complete, 0, memory_order_relaxed);
    watch_inner(r);
    return MPI_SUCCESS;
}

static struct request *const *copies_request_parts(const struct request *base, int *count)
{
    *count = 1;
    return &container_of(base, struct copies_request, base)->inner;
}

static void copies_request_release(struct request *base)
{
    struct copies_request *r = container_of(base, struct copies_request, base);
    request_free(r->inner);
    copies_close(&r->copies);
    base->obj.magic = MAGIC_FREED;
    objmem_free(r);
}

static const struct request_ops copies_ops = {
    .name = "collective in GPU memory", .parts = copies_request_parts, .release = copies_request_release};
static const struct request_ops copies_persistent_ops = {.name = "persistent collective in GPU memory",
                                                         .start = copies_request_start,
                                                         .parts = copies_request_parts,
                                                         .release = copies_request_release};

int coll_device_run(const struct coll_args *args, coll_device_call *run, void *arg)
{
    struct copies copies;
    int rc = copies_open(&copies, args);
    if (rc)
        return rc;
    rc = copies_fill(&copies);
    if (!rc)
        rc = run(arg, &copies.args, NULL);
    if (!rc)
        rc = copies_write_back(&copies);
    copies_close(&copies);
    return rc;
}

int coll_device_make(const struct coll_args *args, enum coll_form form, coll_device_call *make, void *arg,
                     struct request **out)
{
    const bool persistent = form == FORM_PERSISTENT;
    struct copies_request *r = objmem_new(sizeof(*r));
    if (!r)
        return out_of_memory(args);
    int rc = copies_open(&r->copies, args);
    if (rc) {
        objmem_free(r);
        return rc;
    }
    rc = persistent ? 0 : copies_fill(&r->copies);
    if (!rc)
        rc = make(arg, &r->copies.args, &r->inner);
    if (rc) {
        copies_close(&r->copies);
        objmem_free(r);
        return rc;
    }
    request_setup(&r->base, args->comm->proc->p2p, persistent ? &copies_persistent_ops : &copies_ops);
    r->base.comm = comm_retain(args->comm);
    *out = &r->base;
    if (!persistent) {
        watch_inner(r);
        return 0;
    }
    r->base.persistent = true;
    r->base.active = false;
    atomic_store_explicit(&r->base.complete, 1, memory_order_relaxed);
    return 0;
}
