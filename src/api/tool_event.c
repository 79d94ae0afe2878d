/* tool_event.c: the types of events, their contents, and their only source: this process, whose events are
 * ordered by its clock. Registrations are in tool_event_handle.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
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
