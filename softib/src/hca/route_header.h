/* route_header.h: the 40 bytes before a datagram's data: a global route header (InfiniBand, RoCE v1), an IPv6
 * header, or 20 unused bytes and an IPv4 header (RoCE v2).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_ROUTE_HEADER_H
#define SOFTIB_ROUTE_HEADER_H

#include "fabric/gid.h"
#include "hca/hca.h"

/* Writes the route header (GRH) of a datagram of `length` bytes from port `from` along `p`. */
void route_header_write(struct ibv_grh *g, uint32_t from, const struct path *p, uint32_t length);

/* Reads source and destination of a received header, on RoCE also its type. False if it is not valid. */
bool route_header_read(const struct ibv_grh *g, bool ethernet, struct gid *source, struct gid *destination);

#endif
