/* verdict.h: what the root of a group reports to its own group and to the other root: an error, or the group's processes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DYN_VERDICT_H
#define FP_DYN_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/guest.h"

#define VERDICT_SENTENCE 400

struct verdict {
    int32_t error;
    uint32_t count; /* cards that follow */
    int32_t tag;    /* of the agreement's messages between the roots; the acceptor's counts */
    int32_t root;   /* among the cards */
    char sentence[VERDICT_SENTENCE];
};

/* error: 0, or an error class whose text is the last one that this thread has set. */
struct verdict verdict_from_error(int error);

/* Sets the text of a verdict's error and returns its class. */
int verdict_error(const struct verdict *v);

/* Decodes and checks the bytes that the other root sent, with a group (at least one card, the root's among them) or
 * without. *cards points into the bytes. Returns 0, the error that the other root reports, or MPI_ERR_PORT for
 * malformed bytes. */
int verdict_decode(const void *bytes, size_t len, bool with_group, struct verdict *out,
                   const struct net_card **cards);

#endif
