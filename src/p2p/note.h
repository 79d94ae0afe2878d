/* note.h: FISHPLATE_DEBUG=match and leaks: records the types with which the program sends and receives, and
 * the places of the calls. The sender sends a note about each message before the message; the receiver
 * compares the note with the receive that matches the message. Existing checks lead to the notes:
 * peer->eager_below for sends, p2p->offer_above for receives, net->deliver for arrivals. Without
 * FISHPLATE_DEBUG there is no overhead.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_NOTE_H
#define FP_P2P_NOTE_H

#include "base/place.h"
#include "p2p/p2p.h"

enum { NOTE_RUNS = 6, NOTE_NAME = 24 };

/* A run of consecutive elements of one basic type. */
struct note_run {
    uint64_t count;
    uint32_t kind; /* enum dt_kind */
    char name[NOTE_NAME];
};

struct note {
    struct code_place place;
    uint64_t count; /* count that the program passed */
    char type[NOTE_NAME];
    uint32_t nruns;
    uint32_t more; /* 1: there are more runs than `runs` holds; these are not compared */
    struct note_run runs[NOTE_RUNS];
};

/* Callbacks of FISHPLATE_DEBUG; called under the lock. */
struct p2p_debug {
    bool match;
    void (*where)(struct code_place *out); /* finds the place in the program that called MPI */
    /* Called for each request that does not complete at once; NULL: requests are not recorded. */
    void (*made)(const struct request *r);
    void (*differs)(struct p2p *p, uint32_t from, struct envelope env, const struct note *sent,
                    const struct note *received);
};

/* Starts recording; must be called before the first message. */
void p2p_set_debug(struct p2p *p, const struct p2p_debug *debug);

#endif
