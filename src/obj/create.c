/* create.c: the state machine of create.h, and the constructors whose group is known beforehand: dup, create,
 * create_group, create_from_group.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/create.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "net/guest.h"
#include "obj/attr.h"
#include "obj/epoch.h"
#include "obj/errhandler.h"
#include "obj/handle.h"
#include "obj/hints.h"
#include "obj/info.h"
#include "obj/topo.h"

static void creation_release(struct request *r)
{
    struct creation *c = container_of(r, struct creation, request);
    if (r->error && c->made) { /* failed MPI_Comm_dup: the attributes have already been copied */
        attr_delete_all(c->made->proc, comm_handle(c->made), &c->made->attrs);
        comm_release(c->made);
    }
    r->obj.magic = MAGIC_FREED;
    objmem_free(c);
}

static const struct request_ops creation_ops = {.name = "communicator creation", .release = creation_release};

const struct creation *creation_from_request(const struct request *r)
{
    return r->ops == &creation_ops ? container_of((const char *)r, struct creation, request) : NULL;
}

static int creation_alloc(struct proc *p, const char *how, int (*build)(struct creation *),
                          struct creation **out)
{
    struct creation *c = objmem_new(sizeof(*c));
    if (!c)
        return err_set(MPI_ERR_NO_MEM, "out of memory: cannot make a communicator");
    request_setup(&c->request, p->p2p, &creation_ops);
    c->how = how;
    c->build = build;
    c->agree.wanted = 1;
    c->agree.round.gang.proc = p;
    c->agree.round.record = c->record;
    *out = c;
    return MPI_SUCCESS;
}

int creation_open(struct comm *parent, const char *how, int (*build)(struct creation *),
                  struct creation **out)
{
    struct creation *c;
    int rc = creation_alloc(parent->proc, how, build, &c);
    if (rc)
        return rc;
    struct gang *gang = &c->agree.round.gang;
    c->parent = comm_retain(parent);
    gang->members = group_retain(parent->group);
    gang->context = (parent->remote ? parent->local_comm : parent)->context + 1;
    gang->tag = ASSEMBLY_TAG_FIRST + (int)(parent->create_sequence++ & 0x0fffffff);
    if (parent->remote) {
        gang->bridged = true;
        gang->other_leader = group_job_rank(parent->remote, 0);
        gang->bridge_context = parent->context + 1;
        gang->bridge_tag = gang->tag; /* both leaders are rank 0 of their side */
    }
    *out = c;
    return MPI_SUCCESS;
}

/* Opens a creation among `members`, over a context and tag that only this creation uses. */
static int creation_open_among(struct proc *p, struct group *members, uint32_t context, int tag,
                               const char *how, int (*build)(struct creation *), struct creation **out)
{
    struct creation *c;
    int rc = creation_alloc(p, how, build, &c);
    if (rc)
        return rc;
    struct gang *gang = &c->agree.round.gang;
    gang->members = group_retain(members);
    gang->context = context;
    gang->tag = tag;
    *out = c;
    return MPI_SUCCESS;
}

static void on_creation_agreed(struct agreement *g)
{
    struct creation *c = container_of(g, struct creation, agree);
    struct proc *p = g->round.gang.proc;
    int error = g->error;
    if (!error) {
        error = c->build(c);
        bool used = !error && c->made;
        for (int i = 0; i < g->wanted && !used; i++)
            /* after an error the ids are retired, since other processes may already send on them */
            (error ? context_retire : context_id_release)(p, g->ids[i]);
    }
    free(g->round.records);
    free(g->round.gang.numbers);
    group_release(g->round.gang.members);
    group_release(c->group);
    errhandler_release(c->errhandler);
    comm_release(c->parent);
    request_complete(&c->request, error);
}

void creation_start(struct creation *c)
{
    c->agree.done = on_creation_agreed;
    agreement_start(&c->agree);
}

int creation_wait(struct creation *c, struct comm **out, bool *mixed)
{
    int rc = p2p_wait(c->request.p2p, &c->request);
    if (!rc)
        *out = c->made;
    if (mixed)
        *mixed = c->mixed;
    creation_release(&c->request);
    return rc;
}

int creation_run(struct creation *c, struct comm **out)
{
    creation_start(c);
    return creation_wait(c, out, NULL);
}

int creation_build_comm(struct creation *c, struct group *group, struct group *remote)
{
    struct comm *made;
    int rc = comm_alloc(c->agree.round.gang.proc, group, remote, &made);
    if (rc)
        return rc;
    comm_set_label(made, c->how, c->parent);
    if (c->parent)
        made->session = group->session = c->parent->session;
    made->errhandler = errhandler_retain(c->parent ? c->parent->errhandler : c->errhandler);
    rc = comm_activate(made, c->agree.ids);
    if (rc) {
        comm_release(made);
        return rc;
    }
    c->made = made;
    return MPI_SUCCESS;
}

/* Builds the communicator of a group known before the agreement; MPI_COMM_NULL for other processes. */
static int build_for_group(struct creation *c)
{
    if (c->group->rank == MPI_UNDEFINED)
        return MPI_SUCCESS;
    return creation_build_comm(c, group_retain(c->group), NULL);
}

static int build_dup(struct creation *c)
{
    return comm_activate(c->made, c->agree.ids);
}

/* Creates a duplicate except for its context, so that its handle can be returned at once. */
static int dup_prepare(struct comm *parent, struct info *info, struct comm **out)
{
    struct comm *made;
    struct group *remote = parent->remote ? group_retain(parent->remote) : NULL;
    int rc = comm_alloc(parent->proc, group_retain(parent->group), remote, &made);
    if (rc)
        return rc;
    comm_set_label(made, "dup of", parent);
    made->errhandler = errhandler_retain(parent->errhandler);
    made->topology = topology_retain(parent->topology);
    rc = hints_apply(&made->info, info);
    if (!rc)
        rc = attr_copy_all(parent->proc, comm_handle(parent), parent->attrs, &made->attrs);
    if (rc) {
        comm_release(made);
        return rc;
    }
    *out = made;
    return MPI_SUCCESS;
}

/* A local failure is passed to the agreement and fails the call at all processes, so that none waits. */
int comm_dup_start(struct comm *parent, struct info *info, struct creation **out)
{
    struct creation *c;
    int rc = creation_open(parent, "dup of", build_dup, &c);
    if (rc)
        return rc;
    c->agree.local_error = dup_prepare(parent, info, &c->made);
    c->agree.wanted = parent->remote ? 2 : 1;
    creation_start(c);
    *out = c;
    return MPI_SUCCESS;
}

int comm_dup(struct comm *parent, struct info *info, struct comm **out)
{
    struct creation *c;
    int rc = comm_dup_start(parent, info, &c);
    return rc ? rc : creation_wait(c, out, NULL);
}

/* Checks that all members are in the parent; writes their ranks there to `places` (may be NULL). */
static int check_subgroup(const struct comm *parent, const struct group *group, int32_t *places)
{
    struct group_index index;
    int rc = group_index_open(&index, parent->group);
    for (int i = 0; i < group->size && !rc; i++) {
        int place = group_index_find(&index, group_job_rank(group, i));
        if (place == MPI_UNDEFINED)
            rc = err_set(MPI_ERR_GROUP, "the group's rank %d is not in %s", i, comm_label(parent));
        else if (places)
            places[i] = place;
    }
    group_index_close(&index);
    return rc;
}

int comm_create_group(struct comm *parent, struct group *group, int tag, struct comm **out)
{
    *out = NULL;
    int rc = comm_check_intra(parent);
    if (rc || group->rank == MPI_UNDEFINED)
        return rc;
    int32_t *places = malloc((size_t)group->size * sizeof(*places));
    rc = places ? check_subgroup(parent, group, places)
                : err_set(MPI_ERR_NO_MEM, "out of memory for a group of %d processes", group->size);
    if (rc) {
        free(places);
        return rc;
    }
    /* Set the sign bit: nothing else on this context uses negative tags. INT_MAX replaces MPI_ANY_TAG. */
    int own_tag = (int)((uint32_t)tag | 0x80000000u);
    if (own_tag == MPI_ANY_TAG)
        own_tag = INT_MAX;
    struct creation *c;
    rc = creation_open_among(parent->proc, group, parent->context + 1, own_tag, "group of", build_for_group,
                             &c);
    if (rc) {
        free(places);
        return rc;
    }
    c->agree.round.gang.numbers = places; /* groups of one parent may use one tag at once */
    c->parent = comm_retain(parent);
    c->group = group_retain(group);
    return creation_run(c, out);
}

/* Builds the remote group: places[i] is the new rank of process i of `from`, or -1. */
static int group_from_places(const struct group *from, const int32_t *places, uint32_t me, struct group **out)
{
    uint32_t *table = malloc(((size_t)from->size + 1) * sizeof(*table));
    if (!table)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a group of %d processes", from->size);
    int size = 0;
    for (int i = 0; i < from->size; i++) {
        if (places[i] < 0 || places[i] >= from->size)
            continue;
        table[places[i]] = group_job_rank(from, i);
        size++;
    }
    int rc = group_from_table(me, table, size, out);
    free(table);
    return rc;
}

static int build_inter_create(struct creation *c)
{
    struct comm *parent = c->parent;
    const int32_t *places = (const int32_t *)(void *)c->agree.round.records;
    struct group *remote;
    int rc = group_from_places(parent->remote, places + parent->size, parent->proc->rank, &remote);
    if (rc)
        return rc;
    if (c->group->rank == MPI_UNDEFINED || remote->size == 0) {
        group_release(remote);
        return MPI_SUCCESS;
    }
    return creation_build_comm(c, group_retain(c->group), remote);
}

int comm_create(struct comm *parent, struct group *group, struct comm **out)
{
    struct creation *c;
    int rc = creation_open(parent, "part of", parent->remote ? build_inter_create : build_for_group, &c);
    if (rc)
        return rc;
    c->agree.local_error = check_subgroup(parent, group, NULL);
    c->group = group_retain(group);
    if (parent->remote) {
        c->agree.wanted = 2;
        c->record[0] = group->rank == MPI_UNDEFINED ? -1 : group->rank;
        c->agree.round.record_size = sizeof(int32_t);
    }
    *out = NULL;
    return creation_run(c, out);
}

static int build_nothing(struct creation *c)
{
    return MPI_SUCCESS; /* on_creation_agreed() frees the agreed ids */
}

int comm_quiesce(struct comm *comm)
{
    struct comm *nothing;
    struct creation *c;
    int rc = creation_open(comm, "", build_nothing, &c);
    return rc ? rc : creation_run(c, &nothing);
}

/* Communicators without a parent (sessions): the processes of a group find each other on a context reserved
 * for this, under a tag made from the user's string and the group. */

int stringtag_hash(const struct net *net, const char *stringtag, const struct group *members)
{
    uint64_t hash = hash_text(HASH_START, stringtag);
    for (int i = 0; members && i < members->size; i++) {
        struct net_name name = net_process_name(net, group_job_rank(members, i));
        hash = hash_add(hash, &name, sizeof(name));
    }
    return hash_positive(hash);
}

int creation_open_from(struct proc *p, struct group *members, const char *stringtag,
                       struct errhandler *errhandler, int (*build)(struct creation *), struct creation **out)
{
    if (members->rank == MPI_UNDEFINED)
        return err_set(MPI_ERR_GROUP, "the calling process is not in the group");
    if (strlen(stringtag) >= MPI_MAX_STRINGTAG_LEN)
        return err_set(MPI_ERR_ARG, "stringtag is longer than MPI_MAX_STRINGTAG_LEN");
    int rc = creation_open_among(p, members, context_of_id(CONTEXT_ID_BOOTSTRAP),
                                 stringtag_hash(p->net, stringtag, members), "communicator from a group",
                                 build, out);
    if (!rc)
        (*out)->errhandler = errhandler_retain(errhandler);
    return rc;
}

static int build_from_group(struct creation *c)
{
    return creation_build_comm(c, group_retain(c->agree.round.gang.members), NULL);
}

int comm_create_from_group(struct proc *p, struct group *group, const char *stringtag, struct info *info,
                           struct errhandler *errhandler, struct comm **out)
{
    *out = NULL;
    if (group->size == 0) /* MPI_GROUP_EMPTY yields MPI_COMM_NULL */
        return MPI_SUCCESS;
    struct creation *c;
    int rc = creation_open_from(p, group, stringtag, errhandler, build_from_group, &c);
    if (rc)
        return rc;
    rc = creation_run(c, out);
    return rc ? rc : hints_apply(&(*out)->info, info);
}
