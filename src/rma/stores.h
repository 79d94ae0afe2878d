/* stores.h: FISHPLATE_DEBUG=rma: records the program's stores into its windows, each with the address of the
 * store instruction.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_RMA_STORES_H
#define FP_RMA_STORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORES_KEPT 4096

/* Stores of one instruction to contiguous bytes, without a call of MPI between them. */
struct store {
    uint64_t first, end;   /* offsets in the window */
    uint64_t began, ended; /* ns of the node's clock */
    uint64_t calls;        /* stores_count_calls() at the first store */
    uintptr_t place;       /* address of the instruction */
};

struct stores;

/* Watches the pages that lie entirely inside this memory; with `whole` also the pages at its ends. Returns
 * NULL if the system does not permit it. */
struct stores *stores_open(void *base, size_t size, bool whole);
void stores_close(struct stores *s);

/* Enclose every MPI call: stores inside MPI are not recorded. */
void stores_pause(void);
void stores_resume(void);
uint64_t stores_count_calls(void);    /* calls so far that may have notified other processes */
void stores_call_notifies_none(void); /* the present call notifies no other process */

/* Called when the window is synchronised: resets the number of stores that are recorded. */
void stores_reset_budget(struct stores *s);

/* Stores are numbered, and the last STORES_KEPT are recorded. stores_get() returns NULL for older ones. */
uint64_t stores_next(const struct stores *s);
const struct store *stores_get(const struct stores *s, uint64_t number);

#endif
