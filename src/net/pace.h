/* pace.h: how fast large messages move on each link, so that `fishplate ps` and `fishplate prof` can name a
 * link that is slower than the others. A link is a peer, a rail and a direction. A record is created at the
 * first large message to a peer; small messages are not measured.
 *
 * Large messages of a link that overlap, or follow each other without a pause, form a run. A run is measured
 * as a whole, because messages that overlap share the wire. Bytes that other links of this process moved in
 * the same direction meanwhile count for the run as well: a link is not slow because it shares a port.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_PACE_H
#define FP_NET_PACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACE_LEAST     (32u << 10) /* bytes; latency dominates shorter messages */
#define PACE_UNIT      65536u      /* bytes; costs are ns for PACE_UNIT bytes */
#define PACE_RUN_BYTES (8u << 20)  /* a longer run is measured in parts */

/* Messages of like size are compared with each other: from 32 KiB, from 256 KiB, from 2 MiB. */
enum { PACE_CLASSES = 3 };

enum pace_direction { PACE_IN, PACE_OUT, PACE_DIRECTIONS };

struct pace_class {
    uint64_t bytes, ns; /* ns: time during which at least one message was in flight */
    uint32_t messages, runs;
    uint32_t best; /* ns for PACE_UNIT bytes in the fastest run; valid if `runs` is not 0 */
};

struct pace {
    uint32_t rank; /* the peer */
    uint32_t next; /* index + 1 of the next record of the same peer; 0: none */
    uint8_t rail, direction;
    bool local; /* the peer is on the same node */
    struct pace_class classes[PACE_CLASSES];
    uint64_t ended; /* when the last message ended, in ns */
    /* The current run: its start time, and paces.moved at its start and at the end of its last message. */
    uint64_t run_began, run_from, run_to;
    uint32_t run_messages;
    uint8_t run_class;
};

/* A zero-filled struct paces is empty. Records never move, so that a tool may read them from another thread
 * (MPI_T has its own lock): they are allocated in blocks of 8, 16, 32, ... records. */
enum { PACE_BLOCKS = 24, PACE_FIRST_BLOCK = 8 };
struct paces {
    struct pace *blocks[PACE_BLOCKS];
    _Atomic uint32_t count;
    uint32_t unused;                    /* records of departed peers, linked by `next`: index + 1; 0: none */
    uint64_t moved[2][PACE_DIRECTIONS]; /* bytes on all links, [local][direction] */
};

/* Returns record `index`, which must be less than `count`. */
struct pace *paces_get(const struct paces *p, uint32_t index);

/* The start of a measured message, stored with its request. */
struct pace_mark {
    uint64_t began; /* in ns; 0: not measured */
    uint64_t moved; /* value of paces.moved at that time */
};
static inline struct pace_mark pace_mark(const struct paces *p, bool local, enum pace_direction direction,
                                         uint64_t now)
{
    return (struct pace_mark){.began = now, .moved = p->moved[local][direction]};
}

/* Records a message of `bytes` that began at the mark and has ended now. *first is peer.paces, 0 until the
 * peer's first message. `who` names the link: rank, rail, direction, local. */
void pace_record_transfer(struct paces *p, uint32_t *first, const struct pace *who, uint64_t bytes,
                          struct pace_mark mark, uint64_t now);

/* Clears the records of a departed peer for reuse. */
void paces_forget(struct paces *p, uint32_t *first);

/* Ends the current run, so that it counts in `best`. */
void pace_finish_run(struct pace *pace);

/* The size class in which a link has moved most bytes; NULL if it has completed no run. */
const struct pace_class *pace_busiest_class(const struct pace *pace, unsigned *class);

/* The record as numbers, for tools: rank; rail | direction << 8 | local << 9 | class << 16; messages; bytes; ns; best. All zero
 * when no run of this class is complete. */
enum { PACE_WORDS = 6 };
uint64_t pace_export_word(const struct pace *pace, unsigned class, unsigned word);

void paces_free(struct paces *p);

#endif
