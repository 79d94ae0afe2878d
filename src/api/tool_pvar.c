/* tool_pvar.c: the list of performance variables: every counter, then values of queues, a watermark and
 * communicators. Sessions and handles are in tool_pvar_session.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "api/tool.h"
#include "base/counter.h"
#include "coll/select/results.h"
#include "impl.h"
#include "obj/proc.h"

static uint64_t unexpected_length(const struct proc *p)
{
    return p2p_unexpected_length(p->p2p);
}

static uint64_t posted_length(const struct proc *p)
{
    return p2p_posted_length(p->p2p);
}

static uint64_t area_size(const struct proc *p)
{
    return p->net->area_size;
}

/* Writes the name of the adapter, on which measured values depend. */
static void pvar_format_adapter(const struct proc *p, char *out)
{
    net_adapter(p->net, out, TOOL_TEXT_MAX);
    if (!*out)
        snprintf(out, TOOL_TEXT_MAX, "none (all ranks are on one node)");
}

static void coll_choices(const struct proc *p, char *out)
{
    results_describe(p, out, TOOL_TEXT_MAX);
}

static void pvar_format_protocols(const struct proc *p, char *out)
{
    p2p_describe_choices(p->p2p, out, TOOL_TEXT_MAX);
}

static uint64_t sent_messages(const struct proc *p, uint32_t rank)
{
    return p->net->peers[rank] ? p->net->peers[rank]->sent_messages : 0;
}

static uint64_t sent_bytes(const struct proc *p, uint32_t rank)
{
    return p->net->peers[rank] ? p->net->peers[rank]->sent_bytes : 0;
}

/* Returns the number of values of net_links: PACE_WORDS for each link and size class (net/pace.h). */
static uint32_t count_link_words(const struct proc *p)
{
    return atomic_load_explicit(&p->net->paces.count, memory_order_acquire) * PACE_CLASSES * PACE_WORDS;
}

static uint64_t read_link_word(const struct proc *p, uint32_t i)
{
    /* The process's lock is not held, so the data is copied. */
    struct pace copy = *paces_get(&p->net->paces, i / (PACE_CLASSES * PACE_WORDS));
    pace_finish_run(&copy);
    return pace_export_word(&copy, i / PACE_WORDS % PACE_CLASSES, i % PACE_WORDS);
}

static const struct tool_pvar level_variables[] = {
    {.name = "net_links",
     .doc = "How fast large messages moved on each link, and for three ranges of sizes (from 32 KiB, from "
            "256 KiB, "
            "from 2 MiB). Six numbers each: rank of the peer; rail + 256 when this rank measured as the "
            "sender + 512 "
            "when both are on one node + 65536 x range; messages; bytes; nanoseconds in which at least one "
            "was under "
            "way; nanoseconds for 64 KiB at the fastest. All zero: none.",
     .class = MPI_T_PVAR_CLASS_AGGREGATE,
     .each = read_link_word,
     .count = count_link_words},
    {.name = "net_sent_messages",
     .doc = "Messages sent to each rank, those of collectives among them. One number for each rank of the "
            "world.",
     .class = MPI_T_PVAR_CLASS_AGGREGATE,
     .each = sent_messages},
    {.name = "net_sent_bytes",
     .doc =
         "Bytes sent to each rank, those of collectives among them. One number for each rank of the world.",
     .class = MPI_T_PVAR_CLASS_AGGREGATE,
     .each = sent_bytes},
    {.name = "net_adapter",
     .doc = "The adapter between nodes, and whether it is hardware or software.",
     .class = MPI_T_PVAR_CLASS_GENERIC,
     .text = pvar_format_adapter},
    {.name = "coll_choices",
     .doc = "Which algorithms, segments and multicasts of broadcast, gather, scatter, allgather, alltoall, "
            "reduce "
            "and allreduce were measured to be the fastest between nodes, a line for each class of sizes and "
            "shape of "
            "communicator, the newest first, and the times of all that were measured.",
     .class = MPI_T_PVAR_CLASS_GENERIC,
     .text = coll_choices},
    {.name = "p2p_choices",
     .doc = "By which path the bytes of large messages move to this rank, a line for each class of sizes and "
            "kind of "
            "traffic: the path in use first, and what each path has cost when it was measured last.",
     .class = MPI_T_PVAR_CLASS_GENERIC,
     .text = pvar_format_protocols},
    {.name = "p2p_unexpected_length",
     .doc = "Messages that arrived and wait for a matching receive.",
     .class = MPI_T_PVAR_CLASS_LEVEL,
     .read = unexpected_length},
    {.name = "p2p_posted_length",
     .doc = "Posted receives that wait for a matching message.",
     .class = MPI_T_PVAR_CLASS_LEVEL,
     .read = posted_length},
    {.name = "p2p_unexpected_peak",
     .doc = "Largest number of messages that waited for a matching receive at one time.",
     .class = MPI_T_PVAR_CLASS_HIGHWATERMARK,
     .read = unexpected_length},
    {.name = "p2p_comm_received",
     .doc = "Point-to-point messages that arrived on the communicator.",
     .class = MPI_T_PVAR_CLASS_COUNTER,
     .bind = MPI_T_BIND_MPI_COMM},
    {.name = "p2p_comm_received_bytes",
     .doc = "Bytes of point-to-point messages that arrived on the communicator.",
     .class = MPI_T_PVAR_CLASS_AGGREGATE,
     .bind = MPI_T_BIND_MPI_COMM},
    {.name = "shm_area_size",
     .doc = "Bytes of the memory that the ranks of a node share for collectives.",
     .class = MPI_T_PVAR_CLASS_SIZE,
     .read = area_size},
};

int tool_pvar_count(void)
{
    return (int)(counters_count() + COUNT_OF(level_variables));
}

bool tool_pvar_get(int index, struct tool_pvar *out)
{
    if (index < 0 || index >= tool_pvar_count())
        return false;
    size_t i = (size_t)index;
    if (i >= counters_count()) {
        *out = level_variables[i - counters_count()];
        /* A current value cannot be changed or stopped; a watermark and the counts of a communicator can. */
        out->readonly = out->continuous =
            out->class != MPI_T_PVAR_CLASS_HIGHWATERMARK && out->bind != MPI_T_BIND_MPI_COMM;
        out->bind = out->bind ? out->bind : MPI_T_BIND_NO_OBJECT;
        return true;
    }
    const struct counter *c = counters_get(i);
    *out = (struct tool_pvar){.name = c->name,
                              .doc = c->doc,
                              .class = MPI_T_PVAR_CLASS_COUNTER,
                              .bind = MPI_T_BIND_NO_OBJECT,
                              .counter = &c->value};
    return true;
}

void tool_pvar_layer(int index, char *out, size_t size)
{
    struct tool_pvar v;
    tool_pvar_get(index, &v);
    snprintf(out, size, "%.*s", (int)strcspn(v.name, "_"), v.name);
}

int impl_T_pvar_get_info(int pvar_index, char *name, int *name_len, int *verbosity, int *var_class,
                         MPI_Datatype *datatype, MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind,
                         int *readonly, int *continuous, int *atomic)
{
    struct tool_pvar v;
    if (!tool_pvar_get(pvar_index, &v))
        return MPI_T_ERR_INVALID_INDEX;
    tool_string(v.name, name, name_len);
    tool_string(v.doc, desc, desc_len);
    TOOL_OUT(verbosity, v.counter ? MPI_T_VERBOSITY_TUNER_BASIC : MPI_T_VERBOSITY_USER_DETAIL);
    TOOL_OUT(var_class, v.class);
    TOOL_OUT(datatype, v.text ? MPI_CHAR : MPI_UNSIGNED_LONG_LONG);
    TOOL_OUT(enumtype, MPI_T_ENUM_NULL);
    TOOL_OUT(bind, v.bind);
    TOOL_OUT(readonly, v.readonly);
    TOOL_OUT(continuous, v.continuous);
    TOOL_OUT(atomic, !v.readonly);
    return 0;
}

int impl_T_pvar_get_index(const char *name, int var_class, int *pvar_index)
{
    struct tool_pvar v;
    name = counter_present_name(name);
    for (int i = 0; tool_pvar_get(i, &v); i++)
        if (v.class == var_class && strcmp(v.name, name) == 0) {
            *pvar_index = i;
            return 0;
        }
    return MPI_T_ERR_INVALID_NAME;
}
