/* envelope.h: the part of a message by which it is matched with a receive.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_ENVELOPE_H
#define FP_P2P_ENVELOPE_H

#include <stdint.h>

/* 16 bytes, so that an envelope is passed in two registers; no member straddles them. */
struct envelope {
    uint64_t context;
    int32_t source; /* sender's rank in the communicator; MPI_ANY_SOURCE in a receive */
    int32_t tag;    /* MPI_ANY_TAG in a receive */
};

#endif
