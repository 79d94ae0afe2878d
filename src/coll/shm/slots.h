/* slots.h: rules for when a slot of shared memory may be overwritten, and when a rank must report the last
 * step that it has read. Steps have the same numbers at all ranks; step s uses slot s % depth. Pure
 * functions: step_flags.c reads and writes the numbers in shared memory, and tests/unit/coll/test_shm_slots.c
 * explores every order of events.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SHM_SLOTS_H
#define FP_COLL_SHM_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#define SLOTS_EVERYONE (-1) /* in place of a rank: all ranks */

/* The last step in which a slot was written, and its reader. */
struct slot_use {
    uint64_t step;
    int reader;
};

/* True if all readers of the slot are done with it. `safe`: all ranks are done with this step and earlier
 * ones; `seen`: last known `done` word of each rank. */
static inline bool slot_is_free(const struct slot_use *use, uint64_t safe, const uint64_t seen[])
{
    return use->step <= safe || (use->reader != SLOTS_EVERYONE && use->step <= seen[use->reader]);
}

/* Returns the last step that all other ranks have reported as done. */
static inline uint64_t slots_min_reported(const uint64_t seen[], int size, int me)
{
    uint64_t least = UINT64_MAX;
    for (int r = 0; r < size; r++)
        if (r != me && seen[r] < least)
            least = seen[r];
    return least;
}

/* True if the slot of `step` has been posted. `flag` is the step of the last post of this slot. */
static inline bool slot_is_posted(uint64_t flag, uint64_t step)
{
    return flag >= step;
}

/* A slot with a single reader is announced in parts, so that the reader copies the first part while the
 * writer writes the next one. The announcement contains the word that the flag will have when posted, and
 * the number of parts written. */
#define SLOT_PART_BITS 3
static inline uint64_t slot_pack_parts(uint64_t word, uint64_t parts)
{
    return word << SLOT_PART_BITS | parts;
}

/* Returns the number of parts if the announcement `said` belongs to this word; else 0. */
static inline uint64_t slot_parts(uint64_t said, uint64_t word)
{
    const uint64_t parts = said ^ word << SLOT_PART_BITS;
    return parts < 1u << SLOT_PART_BITS ? parts : 0;
}

/* True if a rank that is done with this step must report it now; `reported` was its last report. A rank
 * does not report every step, so that the cache line of the word moves less often. `lag` is at most the
 * number of slots, so a writer never waits for an omitted report. */
static inline bool slots_must_report(uint64_t reported, uint64_t step, uint64_t lag)
{
    return step - reported >= lag;
}

/* Returns the step that a rank must report before it waits for readers, which may wait for this report. */
static inline uint64_t slots_step_to_report(uint64_t reported, uint64_t step)
{
    return reported + 1 < step ? step - 1 : reported;
}

#endif
