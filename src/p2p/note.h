/* note.h: FISHPLATE_DEBUG=match and leaks: what the program sent and receives, in its own types, and where it called. A note
 * about each message goes ahead of it to the receiver, which compares it with the receive that takes the message.
 *
 * All of it hangs from hooks that exist anyway: sends are led past the fast path by peer->eager_below, receives by
 * p2p->offer_above, arrivals by net->deliver. Nothing is paid when it is off.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_NOTE_H
#define FP_P2P_NOTE_H

#include "base/place.h"
#include "p2p/p2p.h"

enum { NOTE_RUNS = 6, NOTE_NAME = 24 };

/* Equal basic types that follow each other. */
struct note_run {
    uint64_t count;
    uint32_t kind; /* enum dt_kind */
    char name[NOTE_NAME];
};

struct note {
    struct place place;
    uint64_t count; /* count that the program passed */
    char type[NOTE_NAME];
    uint32_t nruns;
    uint32_t more; /* there are runs beyond those below, which are not compared */
    struct note_run runs[NOTE_RUNS];
};

/* The subscribers of notes; used under the lock. */
struct p2p_debug {
    bool match;
    void (*where)(struct place *out); /* finds the call of the program that is running */
    /* A request that is not complete yet; NULL: no tool attached. */
    void (*made)(const struct request *r);
    void (*differs)(struct p2p *p, uint32_t from, struct envelope env, const struct note *sent,
                    const struct note *received);
};

/* Starts recording; must be called before the first message. */
void p2p_set_debug(struct p2p *p, const struct p2p_debug *debug);

void note_describe(struct note *out, struct dtype *type, MPI_Count count);

/* Whether the type signatures of send and receive can match, as far as the notes contain them. */
bool note_matches(const struct note *sent, const struct note *received);

#endif
