/* near.h: finds the adapters that are nearest to a GPU.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_NEAR_H
#define FP_NET_IB_NEAR_H

#include <stdint.h>

#include "net/adapter_port.h"

/* Sets `near` of the ports whose adapters have the shortest PCI path to the device `gpu` ("0000:18:00.0"),
 * and clears it for other ports. Changes nothing if the location of the GPU or of an adapter is unknown.
 * `sysfs` is "/sys", or a directory of a test. */
void ib_mark_ports_near_gpu(struct net_port *ports, uint32_t count, const char *sysfs, const char *gpu);

#endif
