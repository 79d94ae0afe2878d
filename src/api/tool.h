/* tool.h: what the files of the tool information interface (MPI_T) share. Control variables are the tunables;
 * performance variables are the counters and a few more. Both exist without MPI_Init, so MPI_T has its own
 * lock and its own start and end. MPI_T has no overhead until a tool uses it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_API_TOOL_H
#define FP_API_TOOL_H

#include <mpi.h>

#include "base/list.h"
#include "base/tunable.h"
#include "obj/info.h"
#include "p2p/p2p.h"

/* Every object behind a handle of the tool interface begins with one of these magic numbers. */
enum tool_magic {
    TOOL_ENUM = 0x6d756e65,
    TOOL_CVAR = 0x72617663,
    TOOL_PVAR = 0x72617670,
    TOOL_SESSION = 0x73657370,
    TOOL_REGISTRATION = 0x67657265,
    TOOL_INSTANCE = 0x736e6965,
};

/* Names for the values 0, 1, 2 ... */
struct tool_enum {
    uint32_t magic;
    const char *name;
    const char *items; /* "off|on" */
};

bool tool_has_magic(const void *handle, enum tool_magic magic);

/* Returns a string as the standard defines it: at most *len bytes with the final zero; *len becomes the length that
 * the whole string needs. Each pointer may be NULL. */
void tool_string(const char *text, char *out, int *len);
#define TOOL_OUT(pointer, value)  \
    do {                          \
        if ((pointer) != NULL)    \
            *(pointer) = (value); \
    } while (0)

/* Called when a process instance was opened: its messages can be watched from now on. */
void tool_attach(struct proc *p);
/* True if the layers below were ever opened: the settings that they read can no longer be changed. */
bool tool_layers_opened(void);
/* Starts or stops watching messages, as pvar handles and event registrations need it. */
void tool_watch_update(void);

/* Defined in tool_cvar.c: */
const char *tool_cvar_layer(int index);
int tool_cvar_count(void);

/* tool_pvar.c: a variable, and the handle of a session to it. */
struct tool_pvar {
    const char *name, *doc;
    int class, bind;
    bool readonly, continuous;
    const uint64_t *counter;                /* address of a counter's value; NULL: not a counter */
    uint64_t (*read)(const struct proc *p); /* reads the current value of a level, size or watermark */
    /* Reads number `i` of a variable of several numbers. */
    uint64_t (*each)(const struct proc *p, uint32_t i);
    /* Returns how many numbers `each` reads; NULL: one for each rank of the world. */
    uint32_t (*count)(const struct proc *p);
    /* Writes the value of a text variable: TOOL_TEXT_MAX bytes. */
    void (*text)(const struct proc *p, char *out);
};
enum { TOOL_TEXT_MAX = 8000 };
struct tool_pvar_handle {
    uint32_t magic;
    struct list link; /* link in session->handles */
    struct tool_session *session;
    struct tool_pvar var;
    bool started;
    uint64_t value;   /* value without the counter's increase since the start */
    uint64_t base;    /* value of the counter at the start */
    uint32_t context; /* context of the communicator that the handle is bound to */
    uint32_t count;   /* number of elements */
};
struct tool_session {
    uint32_t magic;
    struct list link;
    struct list handles;
};
int tool_pvar_count(void);
bool tool_pvar_get(int index, struct tool_pvar *out);
/* The layer in a variable's name: "p2p" of "p2p_eager_sent". */
void tool_pvar_layer(int index, char *out, size_t size);

/* Defined in tool_pvar_session.c: */
bool tool_pvars_watch(void); /* true if a handle needs callbacks for messages */
void tool_pvars_arrived(const struct p2p_arrival *a);
void tool_pvars_delivered(struct p2p *p);
void tool_pvars_close(void);

/* Defined in tool_event.c: */
struct tool_event_type {
    const char *name, *doc, *layer;
    int nelements;
    MPI_Datatype types[8];
    MPI_Aint displacements[8];
    size_t sizes[8];
    size_t size;               /* bytes of the event's data */
    struct tool_enum elements; /* names of the elements */
};
enum { EVENT_ARRIVED, EVENT_CHOSEN, EVENT_TYPES };
extern const struct tool_event_type tool_events[EVENT_TYPES];
struct tool_event_instance {
    uint32_t magic;
    const struct tool_event_type *type;
    uint64_t timestamp;
    const void *data;
};
void tool_event_raise(int type, const void *data);
void tool_event_arrived(const struct p2p_arrival *a);
void tool_event_chosen(struct envelope env, uint64_t length, enum p2p_protocol protocol);
bool tool_events_watch(void);
void tool_events_close(void);
int tool_info_new(MPI_Info *out); /* creates an empty info object; `out` may be NULL */

/* stats.c: FISHPLATE_STATS: called by all ranks in MPI_Finalize. */
void stats_report(struct proc *p);

#endif
