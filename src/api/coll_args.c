/* coll_args.c: describes calls that move data, and checks the rules of collectives: where MPI_IN_PLACE is
 * permitted, and that buffers differ. Arguments that are not significant at this rank are left empty.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/check.h"
#include "api/coll.h"

/* Initialises the arguments member by member: compilers clear a structure of this size by an instruction that waits
 * for earlier stores. */
static void args_begin(struct coll_args *a, enum coll_kind kind, int root, struct comm *comm)
{
    a->kind = kind;
    a->name = NULL;
    a->comm = comm;
    a->send = a->recv = (struct coll_side){0};
    a->op = NULL;
    a->root = root;
    a->in_place = a->vector = false;
}

/* Sets an empty side member by member. A copy of a whole structure would be read with other widths than it
 * was written with: the processor would wait for all earlier stores, among them those of the last collective
 * to cache lines that other ranks are reading. */
static void set_side(struct coll_side *side, const void *buf, MPI_Count count, struct dtype *type)
{
    side->buf = (void *)(uintptr_t)buf;
    side->count = count;
    side->type = type;
}

static struct coll_side make_vector_side(const void *buf, struct ivec counts, struct ivec displs,
                                         struct dtype *type)
{
    return (struct coll_side){
        .buf = (void *)(uintptr_t)buf, .type = type, .counts = counts, .displs = displs};
}

static int args_error_in_place(const char *buffer)
{
    return err_set(MPI_ERR_BUFFER, "%s is MPI_IN_PLACE, which this call does not allow there", buffer);
}

/* True if the arguments alone show whether both buffers share memory. Derived types may select different
 * parts of the memory, so only contiguous types count. */
static bool args_are_comparable(const struct coll_args *a)
{
    const struct coll_side *s = &a->send, *r = &a->recv;
    return a->comm->proc->check_args && !a->in_place && s->buf && r->buf && s->type && r->type &&
           s->type->contiguous && r->type->contiguous;
}

static int report_same_memory(void)
{
    return err_set(MPI_ERR_BUFFER, "sendbuf and recvbuf are the same memory; use MPI_IN_PLACE");
}

static int check_alias(const struct coll_args *a)
{
    const struct coll_side *s = &a->send, *r = &a->recv;
    if (a->vector || s->buf != r->buf || !args_are_comparable(a))
        return 0;
    return s->count * s->type->size == 0 || r->count * r->type->size == 0 ? 0 : report_same_memory();
}

/* The memory of one block; empty when it cannot be determined. */
struct span {
    uintptr_t start, end;
};

static inline struct span make_span(const void *buf, int64_t at, int64_t count, const struct dtype *type)
{
    if (!buf || !type || !type->contiguous || count == 0)
        return (struct span){0};
    const uintptr_t start = (uintptr_t)ptr_add(buf, at);
    return (struct span){start, start + (uintptr_t)(count * type->size)};
}

/* Returns the memory of this rank's own block among the blocks of all ranks. */
static inline struct span own_block_span(const struct coll_side *many, int rank)
{
    const size_t i = (size_t)rank;
    if (likely(!many->counts.p && !many->types))
        return make_span(many->buf, many->type ? rank * many->count * many->type->extent : 0, many->count,
                         many->type);
    const int64_t count = many->counts.p ? ivec_get(many->counts, i) : many->count;
    if (many->types)
        return count == 0 ? (struct span){0}
                          : make_span(many->buf, ivec_get(many->displs, i), count,
                                      dtype_from_handle(many->types[i]));
    if (!many->type)
        return (struct span){0};
    const int64_t at = many->displs.p ? ivec_get(many->displs, i) : rank * count;
    return make_span(many->buf, at * many->type->extent, count, many->type);
}

static int check_overlap(struct span a, struct span b)
{
    if (a.start == a.end || b.start == b.end)
        return 0;
    return a.start < b.end && b.start < a.end ? report_same_memory() : 0;
}

/* Checks that this rank's own block among `many` does not overlap the buffer of `one`. Called at the root of
 * a gather or scatter and at all ranks of an allgather. */
static int check_own_block(const struct coll_args *a, const struct coll_side *one,
                           const struct coll_side *many)
{
    if (a->comm->remote || a->in_place || !a->comm->proc->check_args)
        return 0;
    return check_overlap(make_span(one->buf, 0, one->count, one->type), own_block_span(many, a->comm->rank));
}

/* Checks that the block that this rank sends to itself in an alltoallv or alltoallw does not overlap the
 * block that it receives from itself. If these two blocks are disjoint, both buffers may be one array. */
static int check_own_blocks(const struct coll_args *a)
{
    if (a->comm->remote || a->in_place || !a->comm->proc->check_args)
        return 0;
    const int rank = a->comm->rank;
    return check_overlap(own_block_span(&a->send, rank), own_block_span(&a->recv, rank));
}

/* Sets the in-place flag of calls whose send buffer may be MPI_IN_PLACE at every rank of one group. */
static int set_in_place_flag(struct coll_args *a, const void *sendbuf, const void *recvbuf)
{
    a->in_place = sendbuf == MPI_IN_PLACE;
    if (a->in_place && a->comm->remote)
        return args_error_in_place("sendbuf");
    if (recvbuf == MPI_IN_PLACE)
        return args_error_in_place("recvbuf");
    if (a->in_place)
        a->send = (struct coll_side){0};
    return check_alias(a);
}

/* Checks this rank's own blocks for overlap, except in neighbourhood calls, whose blocks are not numbered by
 * rank. */
static int check_by_topology(const struct coll_args *a, int rc)
{
    if (rc)
        return rc;
    if (a->kind == COLL_ALLGATHER)
        return check_own_block(a, &a->send, &a->recv);
    return a->kind == COLL_ALLTOALL && a->vector ? check_own_blocks(a) : 0;
}

int args_barrier(struct coll_args *a, struct comm *comm)
{
    args_begin(a, COLL_BARRIER, 0, comm);
    return 0;
}

int args_bcast(struct coll_args *a, void *buffer, MPI_Count count, struct dtype *type, int root,
               struct comm *comm)
{
    args_begin(a, COLL_BCAST, root, comm);
    if (comm->remote && root == MPI_PROC_NULL)
        return 0;
    set_side(&a->recv, buffer, count, type);
    return buffer == MPI_IN_PLACE ? args_error_in_place("buffer") : 0;
}

/* Applies the rules of gather and scatter. `many` is the root's side with a block for each rank, `one` is
 * each rank's own block. Clears a side that is not significant at this rank, and `one` if it is MPI_IN_PLACE
 * at the root. */
static int set_rooted_sides(struct coll_args *a, struct coll_side *one, struct coll_side *many,
                            const char *one_name, const char *many_name)
{
    const bool root = api_is_root(a->comm, a->root);
    const bool leaf = a->comm->remote ? a->root >= 0 : true;
    if (!root)
        *many = (struct coll_side){0};
    else if (many->buf == MPI_IN_PLACE)
        return args_error_in_place(many_name);
    if (leaf && one->buf == MPI_IN_PLACE) {
        if (!root)
            return args_error_in_place(one_name);
        a->in_place = true;
    }
    if (!leaf || a->in_place)
        *one = (struct coll_side){0};
    int rc = check_alias(a);
    return rc ? rc : check_own_block(a, one, many);
}

int args_gather(struct coll_args *a, const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype,
                void *recvbuf, MPI_Count recvcount, struct dtype *recvtype, int root, struct comm *comm)
{
    args_begin(a, COLL_GATHER, root, comm);
    set_side(&a->send, sendbuf, sendcount, sendtype);
    set_side(&a->recv, recvbuf, recvcount, recvtype);
    return set_rooted_sides(a, &a->send, &a->recv, "sendbuf", "recvbuf");
}

int args_gatherv(struct coll_args *a, const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype,
                 void *recvbuf, struct ivec recvcounts, struct ivec displs, struct dtype *recvtype, int root,
                 struct comm *comm)
{
    args_begin(a, COLL_GATHER, root, comm);
    a->vector = true;
    set_side(&a->send, sendbuf, sendcount, sendtype);
    a->recv = make_vector_side(recvbuf, recvcounts, displs, recvtype);
    return set_rooted_sides(a, &a->send, &a->recv, "sendbuf", "recvbuf");
}

int args_scatter(struct coll_args *a, const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype,
                 void *recvbuf, MPI_Count recvcount, struct dtype *recvtype, int root, struct comm *comm)
{
    args_begin(a, COLL_SCATTER, root, comm);
    set_side(&a->send, sendbuf, sendcount, sendtype);
    set_side(&a->recv, recvbuf, recvcount, recvtype);
    return set_rooted_sides(a, &a->recv, &a->send, "recvbuf", "sendbuf");
}

int args_scatterv(struct coll_args *a, const void *sendbuf, struct ivec sendcounts, struct ivec displs,
                  struct dtype *sendtype, void *recvbuf, MPI_Count recvcount, struct dtype *recvtype,
                  int root, struct comm *comm)
{
    args_begin(a, COLL_SCATTER, root, comm);
    a->vector = true;
    a->send = make_vector_side(sendbuf, sendcounts, displs, sendtype);
    set_side(&a->recv, recvbuf, recvcount, recvtype);
    return set_rooted_sides(a, &a->recv, &a->send, "recvbuf", "sendbuf");
}

int args_allgather(struct coll_args *a, const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype,
                   void *recvbuf, MPI_Count recvcount, struct dtype *recvtype, struct comm *comm)
{
    args_begin(a, COLL_ALLGATHER, 0, comm);
    set_side(&a->send, sendbuf, sendcount, sendtype);
    set_side(&a->recv, recvbuf, recvcount, recvtype);
    return set_in_place_flag(a, sendbuf, recvbuf);
}

int args_allgatherv(struct coll_args *a, const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype,
                    void *recvbuf, struct ivec recvcounts, struct ivec displs, struct dtype *recvtype,
                    struct comm *comm)
{
    args_begin(a, COLL_ALLGATHER, 0, comm);
    a->vector = true;
    set_side(&a->send, sendbuf, sendcount, sendtype);
    a->recv = make_vector_side(recvbuf, recvcounts, displs, recvtype);
    return set_in_place_flag(a, sendbuf, recvbuf);
}

int args_alltoall(struct coll_args *a, const void *sendbuf, MPI_Count sendcount, struct dtype *sendtype,
                  void *recvbuf, MPI_Count recvcount, struct dtype *recvtype, struct comm *comm)
{
    args_begin(a, COLL_ALLTOALL, 0, comm);
    set_side(&a->send, sendbuf, sendcount, sendtype);
    set_side(&a->recv, recvbuf, recvcount, recvtype);
    return set_in_place_flag(a, sendbuf, recvbuf);
}

int args_alltoallv(struct coll_args *a, const void *sendbuf, struct ivec sendcounts, struct ivec sdispls,
                   struct dtype *sendtype, void *recvbuf, struct ivec recvcounts, struct ivec rdispls,
                   struct dtype *recvtype, struct comm *comm)
{
    args_begin(a, COLL_ALLTOALL, 0, comm);
    a->vector = true;
    a->send = make_vector_side(sendbuf, sendcounts, sdispls, sendtype);
    a->recv = make_vector_side(recvbuf, recvcounts, rdispls, recvtype);
    return set_in_place_flag(a, sendbuf, recvbuf);
}

int args_alltoallw(struct coll_args *a, const void *sendbuf, struct ivec sendcounts, struct ivec sdispls,
                   const MPI_Datatype *sendtypes, void *recvbuf, struct ivec recvcounts, struct ivec rdispls,
                   const MPI_Datatype *recvtypes, struct comm *comm)
{
    args_begin(a, COLL_ALLTOALL, 0, comm);
    a->vector = true;
    a->send = make_vector_side(sendbuf, sendcounts, sdispls, NULL);
    a->send.types = sendtypes;
    a->recv = make_vector_side(recvbuf, recvcounts, rdispls, NULL);
    a->recv.types = recvtypes;
    return set_in_place_flag(a, sendbuf, recvbuf);
}

int args_neighbor(struct coll_args *a, int rc)
{
    if (rc)
        return rc;
    if (a->in_place)
        return args_error_in_place("sendbuf");
    if (a->comm->remote || !a->comm->topology)
        return err_set(MPI_ERR_TOPOLOGY, "the communicator has no topology, so it has no neighbours");
    a->kind = a->kind == COLL_ALLGATHER ? COLL_NEIGHBOR_ALLGATHER : COLL_NEIGHBOR_ALLTOALL;
    return 0;
}

int args_run(struct coll_args *a, int rc, const char *name)
{
    a->name = name;
    rc = check_by_topology(a, rc);
    return rc ? rc : coll_run(a);
}

int args_start(struct coll_args *a, int rc, const char *name, MPI_Request *request)
{
    struct request *r;
    a->name = name;
    rc = check_by_topology(a, rc);
    if (!rc)
        rc = coll_start(a, &r);
    if (!rc)
        *request = request_handle(r);
    return rc;
}

int args_init(struct coll_args *a, int rc, const char *name, MPI_Request *request)
{
    struct request *r;
    a->name = name;
    rc = check_by_topology(a, rc);
    if (!rc)
        rc = coll_init(a, &r);
    if (!rc)
        *request = request_handle(r);
    return rc;
}

/* Describes reductions: the operator must be defined for the type, and the buffers must differ. */

static int args_check_reduce(struct coll_args *a, const void *recvbuf)
{
    if (recvbuf == MPI_IN_PLACE)
        return err_set(MPI_ERR_BUFFER, "recvbuf is MPI_IN_PLACE; only sendbuf may be");
    if (!a->comm->proc->check_args)
        return 0;
    MPI_Count count = a->send.count;
    if (!a->in_place && recvbuf && a->send.buf == recvbuf && count > 0 && a->send.type->size > 0)
        return err_set(MPI_ERR_BUFFER, "sendbuf and recvbuf are the same memory; use MPI_IN_PLACE");
    return op_check(a->op, a->send.type);
}

static int args_set_reduce_buffers(struct coll_args *a, const void *sendbuf, void *recvbuf, MPI_Count count,
                                   struct dtype *type)
{
    a->in_place = sendbuf == MPI_IN_PLACE;
    if (a->in_place && a->comm->remote)
        return err_set(MPI_ERR_BUFFER, "sendbuf is MPI_IN_PLACE, which an intercommunicator does not allow");
    a->send = (struct coll_side){
        .buf = a->in_place ? NULL : (void *)(uintptr_t)sendbuf, .count = count, .type = type};
    a->recv = (struct coll_side){.buf = recvbuf, .count = count, .type = type};
    return args_check_reduce(a, recvbuf);
}

int args_reduce(struct coll_args *a, enum coll_kind kind, const void *sendbuf, void *recvbuf, MPI_Count count,
                struct dtype *type, struct op *op, int root, struct comm *comm)
{
    *a = (struct coll_args){.kind = kind, .comm = comm, .op = op, .root = root};
    if (kind == COLL_REDUCE) {
        if (comm->remote && root == MPI_PROC_NULL)
            return 0;
        const bool is_root = api_is_root(comm, root);
        if (!is_root && sendbuf == MPI_IN_PLACE)
            return err_set(MPI_ERR_BUFFER, "sendbuf is MPI_IN_PLACE, which only the root may use");
        if (!is_root)
            recvbuf = NULL;
        else if (comm->remote)
            sendbuf = NULL;
    }
    if ((kind == COLL_SCAN || kind == COLL_EXSCAN) && comm->remote)
        return err_set(MPI_ERR_COMM, "there are no scans on intercommunicators");
    return args_set_reduce_buffers(a, sendbuf, recvbuf, count, type);
}

int args_reduce_scatter(struct coll_args *a, const void *sendbuf, void *recvbuf, struct ivec recvcounts,
                        struct dtype *type, struct op *op, struct comm *comm)
{
    *a = (struct coll_args){.kind = COLL_REDUCE_SCATTER, .comm = comm, .op = op, .vector = true};
    int rc = args_set_reduce_buffers(a, sendbuf, recvbuf, ivec_get(recvcounts, (size_t)comm->rank), type);
    a->recv.counts = recvcounts;
    return rc;
}

int args_reduce_scatter_block(struct coll_args *a, const void *sendbuf, void *recvbuf, MPI_Count recvcount,
                              struct dtype *type, struct op *op, struct comm *comm)
{
    *a = (struct coll_args){.kind = COLL_REDUCE_SCATTER, .comm = comm, .op = op};
    return args_set_reduce_buffers(a, sendbuf, recvbuf, recvcount, type);
}
