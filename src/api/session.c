/* session.c: the session functions. A session is one more user of the process instance, which the first user
 * opens and the last one closes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/session.h"

#include <stdio.h>
#include <string.h>

#include "api/check.h"
#include "api/init.h"
#include "api/call_error.h"
#include "impl.h"
#include "obj/errhandler.h"
#include "obj/handle.h"
#include "obj/info.h"
#include "p2p/bsend.h"

/* Stores the level of the info key thread_level; MPI_THREAD_MULTIPLE if the program names none. */
static int parse_thread_level(const struct info *info, int *level)
{
    static const struct {
        const char *name;
        int level;
    } levels[] = {
        {"MPI_THREAD_SINGLE", MPI_THREAD_SINGLE},
        {"MPI_THREAD_FUNNELED", MPI_THREAD_FUNNELED},
        {"MPI_THREAD_SERIALIZED", MPI_THREAD_SERIALIZED},
        {"MPI_THREAD_MULTIPLE", MPI_THREAD_MULTIPLE},
    };
    const char *text = info ? info_get(info, "thread_level") : NULL;
    *level = MPI_THREAD_MULTIPLE;
    if (!text)
        return MPI_SUCCESS;
    for (size_t i = 0; i < COUNT_OF(levels); i++)
        if (strcmp(text, levels[i].name) == 0) {
            *level = levels[i].level;
            return MPI_SUCCESS;
        }
    return err_set(MPI_ERR_INFO_VALUE,
                   "the info key thread_level is '%.100s'; use MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, "
                   "MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE",
                   text);
}

int impl_Session_init(struct info *info, struct errhandler *errhandler, MPI_Session *session)
{
    struct proc *p;
    struct session *s;
    if (api_is_forked_child())
        return api_error_outside_mpi("MPI_Session_init");
    int level, rc = parse_thread_level(info, &level);
    if (!rc)
        rc = api_instance_open(level, &p);
    if (rc)
        return rc;
    proc_lock(p);
    rc = session_open(p, info, errhandler ? errhandler : errhandler_initial, &s);
    proc_unlock(p);
    if (rc) {
        api_instance_close();
        return rc;
    }
    *session = session_handle(s);
    return MPI_SUCCESS;
}

int impl_Session_finalize(MPI_Session *session)
{
    struct session *s = session_from(*session);
    if (!s)
        return bad_handle(HANDLE_SESSION, "session", *session);
    struct proc *p = s->proc;
    proc_lock(p);
    if (s->bsend) {
        void *buffer;
        MPI_Count size;
        bsend_detach(s->bsend, &buffer, &size);
    }
    session_close(s);
    proc_unlock(p);
    *session = MPI_SESSION_NULL;
    return api_instance_close();
}

int impl_Session_get_nth_pset(struct session *session, struct info *info, int n, int *pset_len,
                              char *pset_name_)
{
    const char *name = pset_name(n);
    if (!name)
        return err_set(MPI_ERR_ARG, "n is %d; there are %d process sets", n, PSET_COUNT);
    if (*pset_len > 0 && !pset_name_)
        return err_set(MPI_ERR_ARG, "pset_name is a null pointer, but pset_len is %d", *pset_len);
    if (*pset_len > 0)
        snprintf(pset_name_, (size_t)*pset_len, "%s", name);
    *pset_len = (int)strlen(name) + 1;
    return MPI_SUCCESS;
}

int impl_Session_get_pset_info(struct session *session, const char *pset_name_, MPI_Info *info)
{
    struct group *g;
    struct info *made;
    char size[16];
    int rc = pset_group(session->proc, pset_name_, &g);
    if (rc)
        return rc;
    snprintf(size, sizeof(size), "%d", g->size);
    group_release(g);
    rc = info_create(&made);
    if (rc)
        return rc;
    rc = info_set(made, "mpi_size", size);
    if (rc) {
        info_release(made);
        return rc;
    }
    *info = info_handle(made);
    return MPI_SUCCESS;
}
