/* reserve_frame.h: the control frames of a reservation [Coll01 3] as bytes. They travel between the two adapters of one rail, each
 * pair in order (a reliable connection keeps it).
 *
 *     RTS    may I send to you on this rail?              requester to destination
 *     CTS    yes: it is kept for you                      destination to requester
 *     NACK   no                                           destination to requester
 *     ABORT  I do not need it, or no more                 requester to destination
 *     ACK    your message is in memory: the rail is free  destination to requester
 *     DONE   it is, as far as I can see                   requester to destination
 *
 * DONE is not in the paper, whose adapters see a message arrive. An RDMA write does not notify the destination: its sender
 * does, and DONE has the effect of a local ACK.
 *
 * All carry the number of the request that they are about, which the requester chose and the others repeat: an answer to a
 * request that was given up is never taken for an answer to the next one. The paper's table has no such number.
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

/* NULL, or the reason why the bytes are no valid frame; *out is set only for a valid frame. `rails` is the
 * number of rails, `here` the receiving node. */
const char *frame_decode(const uint8_t *bytes, size_t size, unsigned rails, uint32_t here, struct frame *out);

#endif
