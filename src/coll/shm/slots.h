/* slots.h: when a slot of shared memory may be written again, and when a rank reports how far it has read.
 * Steps are numbered alike at all ranks; step s uses slot s % depth. Pure: numbers in, answers out;
 * step_flags.c reads and writes the numbers in shared memory, and tests/unit/coll/test_shm_slots.c goes
 * through every order of what ranks may do.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SHM_SLOTS_H
#define FP_COLL_SHM_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#define SLOTS_EVERYONE (-1) /* instead of a rank */

/* When a slot was written last, and who reads it. */
struct slot_use {
    uint64_t step;
    int reader;
};

/* True if all readers of the slot are done with it. `safe`: all ranks are done with this step and those
 * before; `seen`: the progress of each rank when it was read last. */
static inline bool slot_is_free(const struct slot_use *use, uint64_t safe, const uint64_t seen[])
{
    return use->step <= safe || (use->reader != SLOTS_EVERYONE && use->step <= seen[use->reader]);
}

/* The last step that all other ranks have reported as done. */
static inline uint64_t slots_min_reported(const uint64_t seen[], int size, int me)
{
    uint64_t least = UINT64_MAX;
    for (int r = 0; r < size; r++)
        if (r != me && seen[r] < least)
            least = seen[r];
    return least;
}

/* True if the flag is that of this step: it carries the number of the step in which the slot was written. */
static inline bool slot_is_posted(uint64_t flag, uint64_t step)
{
    return flag >= step;
}

/* A slot with a single reader is announced in parts, so that the reader copies the first while the writer
 * writes the next. What is said of it: the word that its flag is going to have, and how many parts are
 * there. */
#define SLOT_PART_BITS 3
static inline uint64_t slot_pack_parts(uint64_t word, uint64_t parts)
{
    return word << SLOT_PART_BITS | parts;
}

/* The number of parts if `said` belongs to this word; else 0. */
static inline uint64_t slot_parts(uint64_t said, uint64_t word)
{
    const uint64_t parts = said ^ word << SLOT_PART_BITS;
    return parts < 1u << SLOT_PART_BITS ? parts : 0;
}

/* True if a rank that is done with this step must report it now; `reported` was its last report. It does not
 * report in every step, so that the word's cache line moves less often. `lag` is at most the number of slots:
 * a writer whose readers have caught up never waits for an omitted report. */
static inline bool slots_must_report(uint64_t reported, uint64_t step, uint64_t lag)
{
    return step - reported >= lag;
}

/* The step that a rank must have reported before it waits for readers, which may wait for that report. */
static inline uint64_t slots_before_waiting(uint64_t reported, uint64_t step)
{
    return reported + 1 < step ? step - 1 : reported;
}

#endif
