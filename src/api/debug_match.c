/* debug_match.c: turns FISHPLATE_DEBUG=leaks and match on, and reports messages that are received as other types
 * than they were sent.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/debug.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/tunable.h"
#include "obj/comm.h"
#include "obj/context.h"

enum { REPORTED_MOST = 32 }; /* limit of reported pairs of a send and a receive */

static struct {
    struct p2p_debug hooks;
    bool leaks;
    uint64_t reported[REPORTED_MOST][2];
    int nreported;
} debug;

static bool debug_is_enabled(const char *check)
{
    const struct tunable *t = tunables_find("DEBUG");
    return t && tunable_has_word(t, check);
}

/* Prints "10 of MPI_INT", or the contents of a derived type. */
static void format_note_types(const struct note *n, char *out, size_t size)
{
    size_t at = 0;
    if (n->nruns == 1 && strcmp(n->runs[0].name, n->type) == 0) {
        snprintf(out, size, "%llu x %s", (unsigned long long)n->count, n->type);
        return;
    }
    at += (size_t)snprintf(out, size, "%llu of a derived type: ", (unsigned long long)n->count);
    for (uint32_t i = 0; i < n->nruns && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%llu x %s", i ? ", " : "",
                               (unsigned long long)n->runs[i].count, n->runs[i].name);
    if (n->more && at < size)
        snprintf(out + at, size - at, ", ...");
}

/* True if this mismatch is reported for the first time: a loop makes the same mistake many times. */
static bool is_first_report(const struct note *sent, const struct note *received)
{
    for (int i = 0; i < debug.nreported; i++)
        if (debug.reported[i][0] == sent->place.offset && debug.reported[i][1] == received->place.offset)
            return false;
    if (debug.nreported == REPORTED_MOST)
        return false;
    debug.reported[debug.nreported][0] = sent->place.offset;
    debug.reported[debug.nreported++][1] = received->place.offset;
    return true;
}

static void debug_report_match(struct p2p *p, uint32_t from, struct envelope env, const struct note *sent,
                               const struct note *received)
{
    char there[128], here[128], sent_types[320], received_types[320];
    const struct comm *c = the_proc ? comm_of_context(the_proc, env.context) : NULL;
    if (!is_first_report(sent, received))
        return;
    place_text(&sent->place, there, sizeof(there));
    place_text(&received->place, here, sizeof(here));
    format_note_types(sent, sent_types, sizeof(sent_types));
    format_note_types(received, received_types, sizeof(received_types));
    log_warn(
        "The types of a message do not match (FISHPLATE_DEBUG=match): rank %u sends %s at %s, and this rank "
        "receives it as %s at %s (tag %d on %s). Use the same basic types in the same order on both sides, "
        "or MPI_PACKED.",
        from, sent_types, there, received_types, here, env.tag, c ? comm_label(c) : "a communicator");
}

static void debug_caller_place(struct place *out)
{
    place_find_mpi_caller(out, NULL, 0);
}

void debug_watch_open(struct proc *p)
{
    const bool match = debug_is_enabled("match");
    debug.leaks = debug_is_enabled("leaks");
    debug.nreported = 0;
    if (!match && !debug.leaks)
        return;
    debug.hooks = (struct p2p_debug){.match = match,
                                     .where = debug_caller_place,
                                     .made = debug.leaks ? leaks_add_request : NULL,
                                     .differs = debug_report_match};
    p2p_set_debug(p->p2p, &debug.hooks);
    if (debug.leaks)
        leaks_open();
}

void debug_watch_close(struct proc *p)
{
    if (debug.leaks)
        leaks_report(p);
    debug.leaks = false;
}
