/* reserve_frame.h: the control frames of a reservation [Coll01 3] as bytes. They travel between the two
 * adapters of a rail, in order for each pair of adapters, which a reliable connection guarantees.
 *
 *     RTS    requests the rail                                requester to destination
 *     CTS    the rail is reserved for the requester           destination to requester
 *     NACK   the rail is busy                                 destination to requester
 *     ABORT  the requester does not need the rail (any more)  requester to destination
 *     ACK    the message is in memory: the rail is free       destination to requester
 *     DONE   the requester's transfer has completed           requester to destination
 *
 * DONE is not in the paper, whose adapters detect the arrival of a message. An RDMA write does not notify the
 * destination, so its sender does, and DONE has the effect of a local ACK.
 *
 * Every frame carries the number of its request, which the requester selects and the destination repeats, so
 * that an answer to an abandoned request is not mistaken for an answer to the next one. The paper's table has
 * no such number.
 *
 *     byte  0     1     2     3     4..7   8..11  12..15   16..17    18..19
 *           'R'   kind  rail  0     from   to     request  priority  0           little endian
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_MECHANISMS_RAILS_RESERVE_FRAME_H
#define FP_LAB_MECHANISMS_RAILS_RESERVE_FRAME_H

#include "net/rails/rail.h"

enum { FRAME_BYTES = 20, FRAME_PRIORITY_MAX = 1023 };

enum frame_kind { FRAME_RTS = 1, FRAME_CTS, FRAME_NACK, FRAME_ABORT, FRAME_ACK, FRAME_DONE };

struct frame {
    uint8_t kind, rail;
    /* priority of the requester's adapter at the time of the request; 0 in frames other than RTS */
    int16_t priority;
    uint32_t from, to, request;
};

void frame_encode(const struct frame *f, uint8_t out[FRAME_BYTES]);

/* Returns NULL, or the reason why the bytes are no valid frame; *out is set only for a valid frame.
 * `rails` is the number of rails, `here` the receiving node. */
const char *frame_decode(const uint8_t *bytes, size_t size, unsigned rails, uint32_t here, struct frame *out);

#endif
