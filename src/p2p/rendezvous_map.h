/* rendezvous_map.h: large messages of GPU memory that one process maps and a GPU copies: MAPGET, MAPPUT
 * (rendezvous_map.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_RENDEZVOUS_MAP_H
#define FP_P2P_RENDEZVOUS_MAP_H

#include "p2p/rendezvous.h"

/* The payload of FRAME_CTS_WRITE with the flag CTS_MAP. */
struct mapput {
    struct cts_write to;
    struct gpu_export map;
};

/* At the sender: returns the RTS_MAP* bits that are possible. With RTS_MAPGET, *out follows struct rts in the
 * announcement. */
uint64_t map_announce(struct p2p_request *r, struct gpu_export *out);

/* At the receiver: whether the protocol is possible, and its start. */
bool mapget_is_possible(const struct p2p_request *r, const struct announcement *a);
bool mapput_is_possible(const struct p2p_request *r, const struct announcement *a);
void mapget_start(struct p2p *p, struct p2p_request *r, const struct announcement *a, uint64_t bytes);
void mapput_start(struct p2p *p, struct p2p_request *r, uint64_t bytes);

/* At the sender: handles the answer with the receiver's exported memory. */
frame_handler mapput_requested;

/* Waits for copies of requests that the program has freed. */
void maps_close(struct p2p *p);

#endif
