/* session.c: sessions, and the two process sets mpi://WORLD and mpi://SELF.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/session.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "obj/errhandler.h"
#include "obj/group.h"
#include "obj/hints.h"
#include "obj/info.h"

int session_open(struct proc *p, const struct info *info, struct errhandler *errhandler, struct session **out)
{
    (void)info; /* unused: the only key, thread_level, is read before proc_open() */
    struct session *s = objmem_new(sizeof(*s));
    if (!s)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a session");
    int rc = info_create(&s->info);
    if (!rc)
        rc = info_set(s->info, "thread_level", thread_level_name(p->thread_level));
    if (!rc)
        rc = info_set(s->info, HINT_MEMORY_KINDS, hints_memory_kinds());
    if (rc) {
        info_release(s->info);
        objmem_free(s);
        return rc;
    }
    s->obj = object_init(MAGIC_SESSION);
    s->proc = p;
    s->errhandler = errhandler_retain(errhandler);
    s->thread_level = p->thread_level;
    list_append(&p->sessions, &s->link);
    *out = s;
    return MPI_SUCCESS;
}

void session_close(struct session *s)
{
    list_remove(&s->link);
    errhandler_release(s->errhandler);
    info_release(s->info);
    s->obj.magic = MAGIC_FREED;
    objmem_free(s);
}

static const char *const psets[PSET_COUNT] = {[PSET_WORLD] = "mpi://WORLD", [PSET_SELF] = "mpi://SELF"};

const char *pset_name(int index)
{
    return index >= 0 && index < PSET_COUNT ? psets[index] : NULL;
}

int pset_find(const char *name)
{
    int i = 0;
    while (i < PSET_COUNT && strcasecmp(name, psets[i]) != 0)
        i++;
    return i;
}

int pset_group(struct proc *p, const char *name, struct group **out)
{
    switch (pset_find(name)) {
    case PSET_WORLD:
        return group_from_range(p->rank, 0, (int)p->size, out);
    case PSET_SELF:
        return group_from_range(p->rank, p->rank, 1, out);
    }
    return err_set(MPI_ERR_ARG, "there is no process set '%.200s'", name);
}
