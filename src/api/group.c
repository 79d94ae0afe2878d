/* group.c: the group functions: they forward to src/obj. An empty result is MPI_GROUP_EMPTY.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/check.h"
#include "api/forward.h"
#include "impl.h"
#include "obj/handle.h"
#include "obj/session.h"

int group_return_handle(int rc, struct group *made, const struct group *from, MPI_Group *newgroup)
{
    if (rc)
        return rc;
    if (made->size == 0) {
        group_release(made);
        made = the_proc->group_empty;
    } else if (!made->session) {
        made->session = from->session;
    }
    *newgroup = group_handle(made);
    return MPI_SUCCESS;
}

int impl_Group_from_session_pset(struct session *session, const char *pset_name, MPI_Group *newgroup)
{
    struct group *made;
    *newgroup = MPI_GROUP_NULL; /* the result for an unknown name */
    int rc = pset_group(session->proc, pset_name, &made);
    if (rc)
        return rc;
    made->session = session;
    *newgroup = group_handle(made);
    return MPI_SUCCESS;
}

int impl_Group_free(MPI_Group *group)
{
    struct group *g = group_from(the_proc, *group);
    if (!g)
        return bad_handle(HANDLE_GROUP, "group", *group);
    if (!g->obj.predefined) /* group functions return MPI_GROUP_EMPTY, and programs free it */
        group_release(g);
    *group = MPI_GROUP_NULL;
    return MPI_SUCCESS;
}
