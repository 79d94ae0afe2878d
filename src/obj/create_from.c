/* create_from.c: communicators without a parent (sessions): the processes of a group find each other on a
 * context reserved for this, under a tag made from the user's string and the group.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "net/guest.h"
#include "obj/create.h"
#include "obj/errhandler.h"
#include "obj/hints.h"

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
