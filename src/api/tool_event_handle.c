/* tool_event_handle.c: registrations for events. Events are raised inside progress, so a callback must have
 * been registered as one that keeps to the MPI calls allowed there (MPI_T_CB_REQUIRE_MPI_RESTRICTED or
 * stricter). When the only callback is of a laxer kind, the event is dropped and the dropped-event handler is
 * called.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "api/tool.h"
#include "base/clock.h"
#include "impl.h"

static const MPI_T_cb_safety levels[] = {MPI_T_CB_REQUIRE_NONE, MPI_T_CB_REQUIRE_MPI_RESTRICTED,
                                         MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE};
enum { LEVELS = COUNT_OF(levels), LEVEL_HERE = 1 };

struct callback {
    MPI_T_event_cb_function *call;
    void *user;
};

struct registration {
    uint32_t magic;
    struct list link;
    int type;
    struct callback callbacks[LEVELS];
    MPI_T_event_dropped_cb_function *dropped;
    bool gone; /* freed while events were being raised */
};

static struct list registrations = {&registrations, &registrations};
static int raising; /* nesting depth: a callback may raise other events */

static struct registration *registration_at(struct list *pos)
{
    return container_of(pos, struct registration, link);
}

static int safety_level(MPI_T_cb_safety safety)
{
    for (int i = 0; i < LEVELS; i++)
        if (levels[i] == safety)
            return i;
    return -1;
}

static bool has_callback(const struct registration *r)
{
    for (int i = 0; i < LEVELS; i++)
        if (r->callbacks[i].call && !r->gone)
            return true;
    return false;
}

bool tool_events_watch(void)
{
    list_foreach(pos, &registrations) if (has_callback(registration_at(pos))) return true;
    return false;
}

static void registration_free(struct registration *r)
{
    list_remove(&r->link);
    r->magic = 0;
    free(r);
}

void tool_events_close(void)
{
    list_foreach_safe(pos, after, &registrations) registration_free(registration_at(pos));
}

static void deliver_to(struct registration *r, struct tool_event_instance *e)
{
    MPI_T_event_registration handle = (MPI_T_event_registration)r;
    for (int i = LEVEL_HERE; i < LEVELS; i++)
        if (r->callbacks[i].call) {
            r->callbacks[i].call((MPI_T_event_instance)e, handle, levels[LEVEL_HERE], r->callbacks[i].user);
            return;
        }
    if (r->callbacks[0].call && r->dropped)
        r->dropped(1, handle, 0, levels[LEVEL_HERE], r->callbacks[0].user);
}

void tool_event_raise(int type, const void *data)
{
    struct tool_event_instance e = {
        .magic = TOOL_INSTANCE, .type = &tool_events[type], .timestamp = clock_ns(), .data = data};
    raising++;
    list_foreach(pos, &registrations) if (registration_at(pos)->type == type && !registration_at(pos)->gone)
        deliver_to(registration_at(pos), &e);
    e.magic = 0;
    if (--raising > 0)
        return;
    list_foreach_safe(pos, after, &registrations) if (registration_at(pos)->gone)
        registration_free(registration_at(pos));
}

int impl_T_event_handle_alloc(int event_index, void *obj_handle, struct info *info,
                              MPI_T_event_registration *event_registration)
{
    if (event_index < 0 || event_index >= EVENT_TYPES)
        return MPI_T_ERR_INVALID_INDEX;
    struct registration *r = calloc(1, sizeof(*r));
    if (!r)
        return MPI_T_ERR_OUT_OF_HANDLES;
    r->magic = TOOL_REGISTRATION;
    r->type = event_index;
    list_append(&registrations, &r->link);
    *event_registration = (MPI_T_event_registration)r;
    return 0;
}

/* The registration behind a handle; NULL if the handle is invalid. */
static struct registration *registration_from(MPI_T_event_registration handle)
{
    struct registration *r = (struct registration *)handle;
    return tool_has_magic(r, TOOL_REGISTRATION) && !r->gone ? r : NULL;
}

int impl_T_event_handle_free(MPI_T_event_registration event_registration, void *user_data,
                             MPI_T_event_free_cb_function free_cb_function)
{
    struct registration *r = registration_from(event_registration);
    if (!r)
        return MPI_T_ERR_INVALID_HANDLE;
    /* Events are not queued, so no further event reaches this registration. */
    r->gone = true;
    if (free_cb_function)
        free_cb_function(event_registration, levels[LEVEL_HERE], user_data);
    if (raising == 0)
        registration_free(r);
    tool_watch_update();
    return 0;
}

int impl_T_event_handle_set_info(MPI_T_event_registration event_registration, struct info *info)
{
    return registration_from(event_registration) ? 0 : MPI_T_ERR_INVALID_HANDLE;
}

int impl_T_event_handle_get_info(MPI_T_event_registration event_registration, MPI_Info *info_used)
{
    return registration_from(event_registration) ? tool_info_new(info_used) : MPI_T_ERR_INVALID_HANDLE;
}

int impl_T_event_register_callback(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety,
                                   struct info *info, void *user_data,
                                   MPI_T_event_cb_function event_cb_function)
{
    struct registration *r = registration_from(event_registration);
    if (!r)
        return MPI_T_ERR_INVALID_HANDLE;
    int level = safety_level(cb_safety);
    if (level < 0)
        return MPI_T_ERR_INVALID;
    r->callbacks[level] = (struct callback){.call = event_cb_function, .user = user_data};
    tool_watch_update();
    return 0;
}

int impl_T_event_callback_set_info(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety,
                                   struct info *info)
{
    if (!registration_from(event_registration))
        return MPI_T_ERR_INVALID_HANDLE;
    return safety_level(cb_safety) < 0 ? MPI_T_ERR_INVALID : 0;
}

int impl_T_event_callback_get_info(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety,
                                   MPI_Info *info_used)
{
    if (!registration_from(event_registration))
        return MPI_T_ERR_INVALID_HANDLE;
    return safety_level(cb_safety) < 0 ? MPI_T_ERR_INVALID : tool_info_new(info_used);
}

int impl_T_event_set_dropped_handler(MPI_T_event_registration event_registration,
                                     MPI_T_event_dropped_cb_function dropped_cb_function)
{
    struct registration *r = registration_from(event_registration);
    if (!r)
        return MPI_T_ERR_INVALID_HANDLE;
    r->dropped = dropped_cb_function;
    return 0;
}
