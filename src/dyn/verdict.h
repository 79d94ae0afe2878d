/* verdict.h: the message that the root of a group sends to its own group and to the other root: an error, or
 * the group's processes.
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
    uint32_t count; /* number of process descriptors that follow */
    int32_t tag;    /* tag of the agreement's messages between the roots, chosen by the accepting side */
    int32_t root;   /* index of the root in the descriptors */
    char sentence[VERDICT_SENTENCE];
};

/* Creates a verdict. error: 0, or an error class whose text this thread has set last. */
struct verdict verdict_from_error(int error);

/* Sets the text of a verdict's error and returns its class. */
int verdict_error(const struct verdict *v);

/* Decodes and checks the bytes that the other root sent, with a group (at least one process descriptor,
 * including the root's) or without. *cards points into the bytes. Returns 0, the error that the other root
 * reports, or MPI_ERR_PORT for malformed bytes. */
int verdict_decode(const void *bytes, size_t len, bool with_group, struct verdict *out,
                   const struct net_card **cards);

#endif
