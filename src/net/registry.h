/* registry.h: the list of transports, best first. To add a transport, add a folder with a table of operations
 * and a line in registry.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_REGISTRY_H
#define FP_NET_REGISTRY_H

#include "net/transport.h"

extern const struct transport_ops *const net_transports[]; /* ends with NULL */

extern const struct transport_ops self_transport;
extern const struct transport_ops shm_transport;
extern const struct transport_ops ib_transport;

/* Not in net_transports: opened at the first connection to another job. */
extern const struct transport_ops inbox_transport;

#endif
