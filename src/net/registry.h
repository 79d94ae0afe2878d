/* registry.h: the transports that exist, best first. Adding one is a folder with an ops table and a line in
 * registry.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_REGISTRY_H
#define FP_NET_REGISTRY_H

#include "net/transport.h"

extern const struct transport_ops *const net_transports[]; /* ends with NULL */

extern const struct transport_ops self_transport;
extern const struct transport_ops shm_transport;
extern const struct transport_ops ib_transport;

/* Not on the list: opened when another world is met. */
extern const struct transport_ops inbox_transport;

#endif
