/* tool_event.c: the types of events, their contents, and their only source: this process, whose events are
 * ordered by its clock. Registrations follow below.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "api/tool.h"
#include "base/clock.h"
#include "impl.h"

/* `context` identifies a communicator in message headers; odd numbers are those of its collectives. */
struct arrived {
    MPI_Count length;
    unsigned context;
    int source, tag, protocol, expected;
};
struct chosen {
    MPI_Count length;
    unsigned context;
    int source, tag, protocol;
};

#define PROTOCOLS                                                                                            \
    " Protocols: 0 eager, 1 synchronous, 2 r3, 3 getcqe, 4 rendezvous (announced), 5 rput, 6 get, 7 putnr, " \
    "8 put, 9 split, 10 pipe."

const struct tool_event_type tool_events[EVENT_TYPES] = {
    [EVENT_ARRIVED] = {.name = "p2p_message_arrived",
                       .doc = "A message, or the announcement of a large one, has arrived." PROTOCOLS,
                       .layer = "p2p",
                       .nelements = 6,
                       .types = {MPI_COUNT, MPI_UNSIGNED, MPI_INT, MPI_INT, MPI_INT, MPI_INT},
                       .displacements = {offsetof(struct arrived, length), offsetof(struct arrived, context),
                                         offsetof(struct arrived, source), offsetof(struct arrived, tag),
                                         offsetof(struct arrived, protocol),
                                         offsetof(struct arrived, expected)},
                       .sizes = {sizeof(MPI_Count), sizeof(unsigned), sizeof(int), sizeof(int), sizeof(int),
                                 sizeof(int)},
                       .size = sizeof(struct arrived),
                       .elements = {.magic = TOOL_ENUM,
                                    .name = "p2p_message_arrived",
                                    .items = "length|context|source|tag|protocol|expected"}},
    [EVENT_CHOSEN] = {.name = "p2p_protocol_chosen",
                      .doc = "The receiver has chosen how a large message moves." PROTOCOLS,
                      .layer = "p2p",
                      .nelements = 5,
                      .types = {MPI_COUNT, MPI_UNSIGNED, MPI_INT, MPI_INT, MPI_INT},
                      .displacements = {offsetof(struct chosen, length), offsetof(struct chosen, context),
                                        offsetof(struct chosen, source), offsetof(struct chosen, tag),
                                        offsetof(struct chosen, protocol)},
                      .sizes = {sizeof(MPI_Count), sizeof(unsigned), sizeof(int), sizeof(int), sizeof(int)},
                      .size = sizeof(struct chosen),
                      .elements = {.magic = TOOL_ENUM,
                                   .name = "p2p_protocol_chosen",
                                   .items = "length|context|source|tag|protocol"}},
};

void tool_event_arrived(const struct p2p_arrival *a)
{
    struct arrived data = {.length = (MPI_Count)a->length,
                           .context = (unsigned)a->env.context,
                           .source = a->env.source,
                           .tag = a->env.tag,
                           .protocol = (int)a->protocol,
                           .expected = a->expected};
    tool_event_raise(EVENT_ARRIVED, &data);
}

void tool_event_chosen(struct envelope env, uint64_t length, enum p2p_protocol protocol)
{
    struct chosen data = {.length = (MPI_Count)length,
                          .context = (unsigned)env.context,
                          .source = env.source,
                          .tag = env.tag,
                          .protocol = (int)protocol};
    tool_event_raise(EVENT_CHOSEN, &data);
}

/* Fills at most *num_elements entries of the arrays, then sets *num_elements to the number of elements. */
static void return_elements(const struct tool_event_type *t, MPI_Datatype types[], MPI_Aint displacements[],
                            int *num_elements)
{
    if (!num_elements)
        return;
    for (int i = 0; i < t->nelements && i < *num_elements; i++) {
        if (types)
            types[i] = t->types[i];
        if (displacements)
            displacements[i] = t->displacements[i];
    }
    *num_elements = t->nelements;
}

int impl_T_event_get_info(int event_index, char *name, int *name_len, int *verbosity,
                          MPI_Datatype array_of_datatypes[], MPI_Aint array_of_displacements[],
                          int *num_elements, MPI_T_enum *enumtype, MPI_Info *info, char *desc, int *desc_len,
                          int *bind)
{
    if (event_index < 0 || event_index >= EVENT_TYPES)
        return MPI_T_ERR_INVALID_INDEX;
    const struct tool_event_type *t = &tool_events[event_index];
    int rc = tool_info_new(info);
    if (rc)
        return rc;
    tool_string(t->name, name, name_len);
    tool_string(t->doc, desc, desc_len);
    TOOL_OUT(verbosity, MPI_T_VERBOSITY_USER_DETAIL);
    return_elements(t, array_of_datatypes, array_of_displacements, num_elements);
    TOOL_OUT(enumtype, (MPI_T_enum)(uintptr_t)&t->elements);
    TOOL_OUT(bind, MPI_T_BIND_NO_OBJECT);
    return 0;
}

int impl_T_event_get_index(const char *name, int *event_index)
{
    for (int i = 0; i < EVENT_TYPES; i++)
        if (strcmp(tool_events[i].name, name) == 0) {
            *event_index = i;
            return 0;
        }
    return MPI_T_ERR_INVALID_NAME;
}

/* Returns the event instance of a handle; NULL outside of the callback for which the handle is valid. */
static const struct tool_event_instance *instance_from(MPI_T_event_instance handle)
{
    return tool_has_magic(handle, TOOL_INSTANCE) ? (const struct tool_event_instance *)handle : NULL;
}

int impl_T_event_read(MPI_T_event_instance event_instance, int element_index, void *buffer)
{
    const struct tool_event_instance *e = instance_from(event_instance);
    if (!e)
        return MPI_T_ERR_INVALID_HANDLE;
    if (element_index < 0 || element_index >= e->type->nelements)
        return MPI_T_ERR_INVALID_INDEX;
    memcpy(buffer, (const char *)e->data + e->type->displacements[element_index],
           e->type->sizes[element_index]);
    return 0;
}

int impl_T_event_copy(MPI_T_event_instance event_instance, void *buffer)
{
    const struct tool_event_instance *e = instance_from(event_instance);
    if (!e)
        return MPI_T_ERR_INVALID_HANDLE;
    memcpy(buffer, e->data, e->type->size);
    return 0;
}

int impl_T_event_get_timestamp(MPI_T_event_instance event_instance, MPI_Count *event_timestamp)
{
    const struct tool_event_instance *e = instance_from(event_instance);
    if (!e)
        return MPI_T_ERR_INVALID_HANDLE;
    TOOL_OUT(event_timestamp, (MPI_Count)e->timestamp);
    return 0;
}

int impl_T_event_get_source(MPI_T_event_instance event_instance, int *source_index)
{
    const struct tool_event_instance *e = instance_from(event_instance);
    if (!e)
        return MPI_T_ERR_INVALID_HANDLE;
    TOOL_OUT(source_index, 0);
    return 0;
}

int impl_T_source_get_info(int source_index, char *name, int *name_len, char *desc, int *desc_len,
                           MPI_T_source_order *ordering, MPI_Count *ticks_per_second, MPI_Count *max_ticks,
                           MPI_Info *info)
{
    if (source_index != 0)
        return MPI_T_ERR_INVALID_INDEX;
    int rc = tool_info_new(info);
    if (rc)
        return rc;
    tool_string("process", name, name_len);
    tool_string("This process, in the order in which things happen, by its monotonic clock.", desc, desc_len);
    TOOL_OUT(ordering, MPI_T_SOURCE_ORDERED);
    TOOL_OUT(ticks_per_second, 1000000000);
    TOOL_OUT(max_ticks, INT64_MAX);
    return 0;
}

int impl_T_source_get_timestamp(int source_index, MPI_Count *timestamp)
{
    if (source_index != 0)
        return MPI_T_ERR_INVALID_INDEX;
    TOOL_OUT(timestamp, (MPI_Count)clock_ns());
    return 0;
}

/* Registrations for events. Events are raised inside progress, so a callback must have been registered as one
 * that keeps to the MPI calls allowed there (MPI_T_CB_REQUIRE_MPI_RESTRICTED or stricter). When the only
 * callback is of a laxer kind, the event is dropped and the dropped-event handler is called. */

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
