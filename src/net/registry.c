/* registry.c: the list of transports. A peer uses the first one that reaches it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/registry.h"

const struct transport_ops *const net_transports[] = {&shm_transport,
#ifdef FISHPLATE_IB
                                                      &ib_transport,
#endif
                                                      &self_transport, NULL};
