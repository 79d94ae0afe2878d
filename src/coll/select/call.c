/* call.c: converts a user's call to a coll_shape. All inputs of the selection must be the same at every rank,
 * even if ranks describe the same data with different datatypes; therefore they are bytes, not counts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/select/call.h"

#include <stdlib.h>

#include "obj/topo.h"

static int schedule_root(const struct coll_args *args)
{
    if (args->comm->remote && args->root == MPI_ROOT)
        return ROOT_SELF;
    if (args->comm->remote && args->root == MPI_PROC_NULL)
        return ROOT_NONE;
    return args->root;
}

static uint64_t side_bytes(const struct coll_side *side)
{
    return side->type ? (uint64_t)side->count * (uint64_t)side->type->size : 0;
}

/* Returns the bytes of one block, the same at every rank. Among the vector variants, only in allgatherv
 * all ranks know the block sizes; others yield 0. */
static uint64_t block_bytes(const struct coll_args *args, const struct coll_shape *shape)
{
    if (args->vector) {
        if (shape->kind != COLL_ALLGATHER || shape->remote_size)
            return 0;
        uint64_t total = 0;
        for (int r = 0; r < shape->size; r++)
            total += (uint64_t)ivec_get(args->recv.counts, (size_t)r);
        return total * (uint64_t)args->recv.type->size / (uint64_t)shape->size;
    }
    bool is_root = shape->remote_size ? shape->root == ROOT_SELF : shape->rank == shape->root;
    if (shape->kind == COLL_SCATTER)
        return side_bytes(is_root ? &args->send : &args->recv);
    if (shape->kind == COLL_GATHER)
        return side_bytes(is_root ? &args->recv : &args->send);
    return side_bytes(args->in_place ? &args->recv : &args->send);
}

/* Computes the first element of each rank's block in a reduce_scatter. In reduce_scatter_block all blocks
 * have recv.count elements. */
static int compute_block_starts(struct call *call, const struct coll_args *args)
{
    struct coll_shape *shape = &call->shape;
    int64_t *starts = call->few;
    if (shape->size >= (int)COUNT_OF(call->few))
        starts = call->starts = malloc(((size_t)shape->size + 1) * sizeof(*starts));
    if (!starts)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the blocks of %d ranks", shape->size);
    starts[0] = 0;
    for (int r = 0; r < shape->size; r++)
        starts[r + 1] =
            starts[r] + (args->vector ? ivec_get(args->recv.counts, (size_t)r) : args->recv.count);
    shape->starts = starts;
    call->where.bytes = (uint64_t)starts[shape->size] * (uint64_t)args->send.type->size;
    return 0;
}

/* Finds the neighbours and the order in which their messages match. Messages between two ranks match in
 * the order of their edges. But on a cartesian grid, data sent to the left arrives at the neighbour from
 * the right, so the two receives of a dimension are exchanged. */
static int find_neighbors(struct coll_state *state)
{
    if (state->neighbors)
        return 0;
    struct comm *c = state->comm;
    int in, out;
    int rc = topology_degrees(c, &in, &out);
    if (rc)
        return rc;
    int *lists = malloc((size_t)(2 * in + out + 1) * sizeof(int));
    if (!lists)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a list of %d neighbours", in + out);
    state->sources = lists;
    state->receive_order = lists + in;
    state->destinations = lists + 2 * in;
    state->nsources = in;
    state->ndestinations = out;
    rc = topology_neighbors(c, state->sources, state->destinations);
    for (int i = 0; i < in; i++) {
        state->receive_order[i] = c->topology->kind == MPI_CART ? i ^ 1 : i;
        if (state->sources[i] == MPI_PROC_NULL)
            state->sources[i] = -1;
    }
    for (int i = 0; i < out; i++)
        if (state->destinations[i] == MPI_PROC_NULL)
            state->destinations[i] = -1;
    state->neighbors = rc == 0;
    if (rc) {
        free(lists);
        state->sources = NULL;
    }
    return rc;
}

static int add_neighbors(struct coll_shape *shape, struct coll_state *state)
{
    int rc = find_neighbors(state);
    if (rc)
        return rc;
    shape->sources = state->sources;
    shape->destinations = state->destinations;
    shape->receive_order = state->receive_order;
    shape->nsources = state->nsources;
    shape->ndestinations = state->ndestinations;
    return 0;
}

/* Fills the shape member by member: compilers clear a structure of this size by an instruction that waits
 * for earlier stores, including the flags of the previous collective that other ranks poll. */
static void shape_fill(struct coll_shape *shape, const struct coll_args *args)
{
    const struct comm *c = args->comm;
    shape->kind = args->kind;
    shape->rank = c->rank;
    shape->size = c->size;
    shape->root = schedule_root(args);
    shape->remote_size = c->remote ? c->remote->size : 0;
    shape->count = 1;
    shape->starts = NULL;
    shape->in_place = args->in_place;
    shape->commutative = !args->op || args->op->commutative;
    shape->adjacent = !args->vector;
    shape->segment = 0;
    shape->window = 0;
    for (int i = 0; i < COLL_PARAMETERS; i++)
        shape->parameter[i] = 0;
    shape->sources = shape->destinations = shape->receive_order = NULL;
    shape->nsources = shape->ndestinations = 0;
}

int call_make(struct call *call, const struct coll_args *args, struct coll_state *state, enum coll_form form)
{
    call->args = call->messages_of = args;
    call->state = state;
    call->form = form;
    call->starts = NULL;
    call->on_device = call->device_direct = call->device_agreed = call->device_posted = false;
    call->where = (struct coll_where){
        .one_node = state->one_node, .nodes = state->nodes, .node_count = state->node_count};
    shape_fill(&call->shape, args);
    if (args->kind == COLL_BARRIER)
        return 0;
    if (args->kind == COLL_BCAST) {
        call->where.bytes = side_bytes(&args->recv);
        call->shape.count = (int64_t)call->where.bytes;
    } else if (args->kind == COLL_REDUCE_SCATTER) {
        call->shape.count = args->recv.count;
        return compute_block_starts(call, args);
    } else if (kind_reduces(args->kind)) {
        call->where.bytes = side_bytes(&args->send);
        call->shape.count = call->where.bytes > 0 ? args->send.count : 0;
    } else if (args->kind >= COLL_NEIGHBOR_ALLGATHER) {
        return add_neighbors(&call->shape, state);
    } else {
        call->where.bytes = block_bytes(args, &call->shape);
    }
    return 0;
}

void call_free(struct call *call)
{
    free(call->starts);
}

void call_choose(struct call *call, const struct coll_choice *choice)
{
    const struct coll_args *args = call->args;
    struct coll_shape *shape = &call->shape;
    shape->window = choice->algorithm->window ? choice->window : 0;
    for (int i = 0; i < COLL_PARAMETERS; i++)
        shape->parameter[i] =
            choice->parameter[i] ? choice->parameter[i] : choice->algorithm->parameter[i].preset;
    shape->segment = 0;
    if (!choice->algorithm->segment || !choice->segment)
        return;
    int64_t item = kind_reduces(shape->kind) && args->send.type->size > 0 ? args->send.type->size : 1;
    shape->segment = MAX((int64_t)choice->segment / item, 1);
    if (shape->segment >= shape->count)
        shape->segment = 0; /* calls with only one segment share one plan */
}

bool call_can_split(const struct call *call, const struct coll_algorithm *a)
{
    return a->splits || (a->segment && call->shape.segment > 0);
}
