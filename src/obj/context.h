/* context.h: context ids, the numbers that separate communicators, and how processes agree on free ones.
 * Every process has a mask of free ids. Most ids are in the exclusive part of the mask, which only one
 * agreement at a time may use in a process: if every participant could offer it, the lowest id that is free
 * at all of them is taken after one round. The ids above are shared: agreements that run at the same time
 * choose one there, claim it in a second round, and try another when a participant could not. Nothing is
 * held while waiting for a participant to arrive, so creations by several threads, or nonblocking ones in
 * different orders, cannot block each other.
 *
 * The agreed number of a communicator is an id and an epoch. The epoch separates the communicator from
 * earlier ones with the same id (epoch.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_CONTEXT_H
#define FP_OBJ_CONTEXT_H

#include "obj/assembly.h"

#define CONTEXT_WORDS        64
#define CONTEXT_SINGLE_WORDS 48 /* words of the exclusive part: for one agreement at a time */
#define CONTEXT_IDS          (64 * CONTEXT_WORDS)

/* Reserved ids. BOOTSTRAP is for creations without a parent communicator. */
enum { CONTEXT_ID_WORLD, CONTEXT_ID_SELF, CONTEXT_ID_BOOTSTRAP, CONTEXT_ID_PARENT, CONTEXT_IDS_RESERVED };

/* A context number is epoch * CONTEXT_IDS + id. The context in a message is 2 * number for point-to-point,
 * 2 * number + 1 for collectives. Its highest bit marks contexts without a communicator
 * (p2p/partitioned.h). */
#define CONTEXT_EPOCHS (1u << 18)
_Static_assert(2ull * CONTEXT_EPOCHS * CONTEXT_IDS == 1ull << 31, "a context has 31 bits");
static inline uint32_t context_of_id(uint32_t number)
{
    return 2 * number;
}
static inline uint32_t context_id_of(uint32_t context)
{
    return context / 2 % CONTEXT_IDS;
}

void context_ids_init(struct proc *p);
/* Frees the id of a number on which no message is under way. */
void context_id_release(struct proc *p, uint32_t number);
void context_id_reserve(struct proc *p, uint32_t number);
/* Converts ids to context numbers of this epoch. */
void context_add_epoch(uint32_t *ids, int n, uint64_t epoch);
/* The communicator that this context belongs to, or NULL. */
struct comm *comm_of_context(const struct proc *p, uint64_t context);

/* Picks `wanted` ids whose bits are set in mask[first_word .. last_word), searching from bit `start` and
 * wrapping around. Returns false if there are fewer. */
bool context_pick_ids(const uint64_t *mask, int first_word, int last_word, uint32_t start, int wanted,
                      uint32_t *ids);

struct agreement {
    struct assembly round; /* in: gang, record, record_size; out: records */
    int wanted;            /* number of ids to agree on: 1 or 2 */
    int local_error;       /* in: an error of this process, which ends the agreement at all processes */
    uint32_t ids[2];       /* out: context numbers */
    int error;             /* out: an error class */
    void (*done)(struct agreement *g); /* runs once, possibly before agreement_start returns */

    /* Private. */
    uint64_t
        words[3 + CONTEXT_WORDS]; /* flags, first bit to search for shared ids, mask of free ids, epoch */
    bool single;                  /* this process offers the exclusive part of its mask */
    bool claimed;                 /* ids[] are marked as used in the mask of this process */
    bool offered_all;             /* in the last round every process offered all its free ids */
    char *records;                /* gathered in the first round */
    int others;
};

void agreement_start(struct agreement *g);

#endif
