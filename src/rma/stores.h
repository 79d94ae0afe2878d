/* stores.h: FISHPLATE_DEBUG=rma: what the program itself stores into its windows, and where.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_RMA_STORES_H
#define FP_RMA_STORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORES_KEPT 4096

/* Stores of one place to bytes that follow each other, without a call of MPI between them. */
struct store {
    uint64_t first, end;   /* bytes of the window */
    uint64_t began, ended; /* nanoseconds of the node's clock */
    uint64_t calls;        /* stores_calls() when it happened */
    uintptr_t place;       /* the instruction */
};

struct stores;

/* Watches the whole pages of this memory, and the pages at its ends too when nothing else is in them. NULL: it cannot be done here. */
struct stores *stores_open(void *base, size_t size, bool whole);
void stores_close(struct stores *s);

/* A call of MPI begins and ends: in between nothing is watched. */
void stores_pause(void);
void stores_resume(void);
uint64_t stores_calls(void);          /* calls so far that may have notified other processes */
void stores_call_notifies_none(void); /* the present one does not */

/* The window is synchronised: more stores are worth looking at. */
void stores_renew(struct stores *s);

/* Stores are numbered; the last STORES_KEPT are kept. stores_at gives NULL for others. */
uint64_t stores_next(const struct stores *s);
const struct store *stores_at(const struct stores *s, uint64_t number);

#endif
