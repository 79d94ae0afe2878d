/* receive.h: completions, the order of frames from the channels of a connection, incoming frames.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_RECEIVE_H
#define FP_NET_IB_RECEIVE_H

#include "net/ib/endpoint.h"

int ib_poll(struct transport *t);
int ib_poll_completions(struct ib *ib);
void ib_received(struct ib_endpoint *ep, const struct ib_head *h, size_t len);
void ib_drain(struct ib_endpoint *ep);
void ib_owe(struct ib_endpoint *ep); /* sends a credit message if one is due */

#endif
