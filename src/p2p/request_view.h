/* request_view.h: describes requests and waiting messages for hang diagnosis. Reads only; under the lock.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_REQUEST_VIEW_H
#define FP_P2P_REQUEST_VIEW_H

#include "base/status_page.h"
#include "p2p/p2p.h"

#define VIEW_NO_PEER UINT32_MAX /* the peer is unknown, or any */

struct p2p_view {
    bool send;
    struct envelope env; /* receive: as it was posted, with wildcards */
    uint32_t peer;       /* job rank */
    uint64_t bytes;      /* bytes to send, or room to receive */
    enum page_step step;
};

/* Describes a request for tools; false when it is neither send nor receive. */
bool p2p_view_request(const struct request *r, struct p2p_view *out);

/* Messages that arrived before their receive, at most `most`; returns the number written. */
size_t p2p_view_unexpected(const struct p2p *p, struct p2p_view *out, size_t most);

#endif
