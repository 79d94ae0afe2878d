/* connection.h: opens and closes connections to peers. policy/conn.h has the state machine; endpoint.c
 * performs its actions, hello.c sends the datagrams, hello_arrival.c receives and repeats them, path.c chooses
 * the rails of a connection.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_CONNECTION_H
#define FP_NET_IB_CONNECTION_H

#include "net/ib/ib.h"

/* endpoint.c */
void ib_endpoint_perform_actions(struct ib_endpoint *ep, unsigned actions);
void ib_endpoint_handle_hello(struct ib_endpoint *ep, const struct ib_hello *h);
/* Destroys the queue pairs and requests new ones from the peer. */
void ib_endpoint_reopen(struct ib_endpoint *ep);
/* Destroys the queue pairs without informing the peer, and drops pending control messages. */
void ib_endpoint_drop(struct ib_endpoint *ep);
void ib_endpoint_open(struct ib_endpoint *ep);
bool ib_endpoint_is_busy(const struct ib_endpoint *ep);
void ib_endpoints_trim(struct ib *ib);          /* closes idle connections over the budget */
bool ib_endpoint_close(struct ib_endpoint *ep); /* true: the connection is closed */

/* hello.c */
int ib_hello_open(struct ib *ib);
void ib_hello_close(struct ib *ib);
void ib_hello_send(struct ib_endpoint *ep);
int ib_hello_post_receive(struct ib *ib, struct ib_buffer *b);
#define IB_HELLO_MAGIC        0x46504942u
#define IB_HELLO_VERSION      10
#define IB_HELLO_LONGEST_WAIT (250 * 1000 * 1000ull) /* ns between two HELLOs */

/* hello_arrival.c */
void ib_hello_receive(struct ib *ib, struct ib_buffer *b, uint32_t length);
void ib_hello_repeat(struct ib *ib); /* repeats HELLOs whose deadline has passed */

/* path.c */
#define IB_PATH_TRIES 8 /* unanswered HELLOs after which another path is tried */
void ib_rails_list_networks(const struct ib_rail_info *rails, uint32_t n, struct pair_net *out);
int ib_paths_find(struct ib_endpoint *ep, const struct ib_rail_info *peer, uint32_t count);
void ib_path_use(struct ib_endpoint *ep, unsigned path);
void ib_path_assume_up(struct ib_endpoint *ep); /* the peer's list of ports may be stale: all may be up */
void ib_path_use_next(struct ib_endpoint *ep);  /* the next path, or the current path if there is no other */
enum ib_path_verdict {
    IB_PATH_REFUSED, /* the HELLO is ignored; the peer repeats it */
    IB_PATH_ACCEPTED,
    IB_PATH_RESTART /* the queue pairs must be created again on the rail of the HELLO */
};
enum ib_path_verdict ib_path_match_hello(struct ib_endpoint *ep, uint8_t rail, const struct ib_hello *h);
bool ib_endpoint_is_first(
    const struct ib_endpoint *ep); /* true at exactly one end of each connection, always at the same end */

#endif
