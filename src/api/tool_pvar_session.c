/* tool_pvar_session.c: sessions and handles of performance variables. A handle of a counter records the
 * counter's value when the handle is started, so that the code that counts needs no handles. Message
 * callbacks update the variables of communicators and the watermark while their handles are started.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "api/tool.h"
#include "impl.h"
#include "obj/handle.h"

static struct list sessions = {&sessions, &sessions};

static struct tool_pvar_handle *handle_at(struct list *pos)
{
    return container_of(pos, struct tool_pvar_handle, link);
}

static struct tool_session *session_at(struct list *pos)
{
    return container_of(pos, struct tool_session, link);
}

static bool is_bound(const struct tool_pvar_handle *h)
{
    return h->var.bind == MPI_T_BIND_MPI_COMM;
}

static bool is_peak(const struct tool_pvar_handle *h)
{
    return h->var.class == MPI_T_PVAR_CLASS_HIGHWATERMARK;
}

/* The current value of the variable behind the handle. */
static uint64_t read_raw_value(const struct tool_pvar_handle *h)
{
    return h->var.read && the_proc ? h->var.read(the_proc) : 0;
}

static uint64_t read_session_value(const struct tool_pvar_handle *h)
{
    if (h->var.continuous)
        return read_raw_value(h);
    if (h->var.counter && h->started)
        return h->value + (*h->var.counter - h->base);
    return h->value;
}

static void value_set(struct tool_pvar_handle *h, uint64_t value)
{
    h->value = value;
    if (h->var.counter)
        h->base = *h->var.counter;
}

static int handle_reset(struct tool_pvar_handle *h)
{
    if (h->var.readonly)
        return MPI_T_ERR_PVAR_NO_WRITE;
    value_set(h, is_peak(h) ? read_raw_value(h) : 0);
    return 0;
}

static int handle_start(struct tool_pvar_handle *h)
{
    if (h->var.continuous)
        return MPI_T_ERR_PVAR_NO_STARTSTOP;
    if (!h->started && h->var.counter)
        h->base = *h->var.counter;
    else if (!h->started && is_peak(h))
        h->value = MAX(h->value, read_raw_value(h));
    h->started = true;
    return 0;
}

static int handle_stop(struct tool_pvar_handle *h)
{
    if (h->var.continuous)
        return MPI_T_ERR_PVAR_NO_STARTSTOP;
    h->value = read_session_value(h);
    h->started = false;
    return 0;
}

bool tool_pvars_watch(void)
{
    list_foreach(s, &sessions) list_foreach(
        pos, &session_at(s)->handles) if (handle_at(pos)->started &&
                                          (is_bound(handle_at(pos)) || is_peak(handle_at(pos)))) return true;
    return false;
}

void tool_pvars_arrived(const struct p2p_arrival *a)
{
    list_foreach(s, &sessions) list_foreach(pos, &session_at(s)->handles)
    {
        struct tool_pvar_handle *h = handle_at(pos);
        if (h->started && is_bound(h) && h->context == a->env.context)
            h->value += h->var.class == MPI_T_PVAR_CLASS_AGGREGATE ? a->length : 1;
    }
}

void tool_pvars_delivered(struct p2p *p)
{
    list_foreach(s, &sessions) list_foreach(pos, &session_at(s)->handles)
    {
        struct tool_pvar_handle *h = handle_at(pos);
        if (h->started && is_peak(h))
            h->value = MAX(h->value, p2p_unexpected_length(p));
    }
}

static void pvar_handle_free(struct tool_pvar_handle *h)
{
    list_remove(&h->link);
    h->magic = 0;
    free(h);
}

static void pvar_session_free(struct tool_session *s)
{
    list_foreach_safe(pos, after, &s->handles) pvar_handle_free(handle_at(pos));
    list_remove(&s->link);
    s->magic = 0;
    free(s);
}

void tool_pvars_close(void)
{
    list_foreach_safe(pos, after, &sessions) pvar_session_free(session_at(pos));
}

int impl_T_pvar_session_create(MPI_T_pvar_session *session)
{
    struct tool_session *s = malloc(sizeof(*s));
    if (!s)
        return MPI_T_ERR_OUT_OF_SESSIONS;
    s->magic = TOOL_SESSION;
    list_init(&s->handles);
    list_append(&sessions, &s->link);
    *session = (MPI_T_pvar_session)s;
    return 0;
}

int impl_T_pvar_session_free(MPI_T_pvar_session *session)
{
    if (!session || !tool_has_magic(*session, TOOL_SESSION))
        return MPI_T_ERR_INVALID_SESSION;
    pvar_session_free((struct tool_session *)*session);
    *session = MPI_T_PVAR_SESSION_NULL;
    tool_watch_update();
    return 0;
}

/* The communicator whose handle is at this address. */
static struct comm *comm_at(void *obj_handle)
{
    return obj_handle && the_proc ? comm_from(the_proc, *(MPI_Comm *)obj_handle) : NULL;
}

static uint32_t pvar_count_elements(const struct tool_pvar *v)
{
    return v->count ? v->count(the_proc) : the_proc->size;
}

static int handle_new(struct tool_session *s, const struct tool_pvar *v, void *obj_handle,
                      struct tool_pvar_handle **out)
{
    const struct comm *c = v->bind == MPI_T_BIND_MPI_COMM ? comm_at(obj_handle) : NULL;
    if (v->bind == MPI_T_BIND_MPI_COMM && !c)
        return MPI_T_ERR_INVALID_HANDLE;
    struct tool_pvar_handle *h = calloc(1, sizeof(*h));
    if (!h)
        return MPI_T_ERR_OUT_OF_HANDLES;
    h->magic = TOOL_PVAR;
    h->session = s;
    h->var = *v;
    h->context = c ? c->context : 0;
    h->started = v->continuous;
    h->count = v->text ? TOOL_TEXT_MAX : v->each && the_proc ? pvar_count_elements(v) : 1;
    list_append(&s->handles, &h->link);
    *out = h;
    return 0;
}

int impl_T_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void *obj_handle,
                             MPI_T_pvar_handle *handle, int *count)
{
    struct tool_pvar v;
    struct tool_pvar_handle *h;
    if (!tool_has_magic(session, TOOL_SESSION))
        return MPI_T_ERR_INVALID_SESSION;
    if (!tool_pvar_get(pvar_index, &v))
        return MPI_T_ERR_INVALID_INDEX;
    int rc = handle_new((struct tool_session *)session, &v, obj_handle, &h);
    if (rc == 0) {
        *handle = (MPI_T_pvar_handle)h;
        TOOL_OUT(count, (int)h->count);
    }
    return rc;
}

/* Finds one of a session's handles; NULL for MPI_T_PVAR_ALL_HANDLES. */
static int find_handle(MPI_T_pvar_session session, MPI_T_pvar_handle handle, struct tool_pvar_handle **out)
{
    *out = NULL;
    if (!tool_has_magic(session, TOOL_SESSION))
        return MPI_T_ERR_INVALID_SESSION;
    if (handle == MPI_T_PVAR_ALL_HANDLES)
        return 0;
    *out = (struct tool_pvar_handle *)handle;
    if (!tool_has_magic(handle, TOOL_PVAR) || (*out)->session != (struct tool_session *)session)
        return MPI_T_ERR_INVALID_HANDLE;
    return 0;
}

/* As find_handle, for calls that take one handle only. */
static int find_single_handle(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                              struct tool_pvar_handle **out)
{
    int rc = find_handle(session, handle, out);
    return rc == 0 && !*out ? MPI_T_ERR_INVALID_HANDLE : rc;
}

/* Changes one handle, or all handles of the session except those that do not allow it. */
static int change_handles(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                          int (*change)(struct tool_pvar_handle *h))
{
    struct tool_pvar_handle *h;
    int rc = find_handle(session, handle, &h);
    if (rc)
        return rc;
    if (h)
        rc = change(h);
    else
        list_foreach(pos, &((struct tool_session *)session)->handles) change(handle_at(pos));
    tool_watch_update();
    return rc;
}

int impl_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle *handle)
{
    struct tool_pvar_handle *h;
    int rc = find_single_handle(session, handle ? *handle : MPI_T_PVAR_HANDLE_NULL, &h);
    if (rc)
        return rc;
    pvar_handle_free(h);
    *handle = MPI_T_PVAR_HANDLE_NULL;
    tool_watch_update();
    return 0;
}

int impl_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return change_handles(session, handle, handle_start);
}

int impl_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return change_handles(session, handle, handle_stop);
}

int impl_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return change_handles(session, handle, handle_reset);
}

static void pvar_copy_value(const struct tool_pvar_handle *h, void *buf)
{
    unsigned long long value = read_session_value(h);
    if (h->var.each) {
        for (uint32_t i = 0; i < h->count; i++) {
            value = the_proc && i < pvar_count_elements(&h->var) ? h->var.each(the_proc, i) : 0;
            memcpy((char *)buf + i * sizeof(value), &value, sizeof(value));
        }
        return;
    }
    if (h->var.text) {
        memset(buf, 0, TOOL_TEXT_MAX);
        if (the_proc)
            h->var.text(the_proc, buf);
        return;
    }
    memcpy(buf, &value, sizeof(value));
}

int impl_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf)
{
    struct tool_pvar_handle *h;
    int rc = find_single_handle(session, handle, &h);
    if (rc)
        return rc;
    pvar_copy_value(h, buf);
    return 0;
}

int impl_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void *buf)
{
    struct tool_pvar_handle *h;
    int rc = find_single_handle(session, handle, &h);
    if (rc)
        return rc;
    if (h->var.readonly)
        return MPI_T_ERR_PVAR_NO_WRITE;
    unsigned long long value;
    memcpy(&value, buf, sizeof(value));
    value_set(h, value);
    return 0;
}

int impl_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf)
{
    struct tool_pvar_handle *h;
    int rc = find_single_handle(session, handle, &h);
    if (rc)
        return rc;
    if (h->var.readonly)
        return MPI_T_ERR_PVAR_NO_ATOMIC;
    pvar_copy_value(h, buf);
    return handle_reset(h);
}
