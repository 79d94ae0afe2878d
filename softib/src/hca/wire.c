/* wire.c: the two wires of this process: shared memory, and TCP and UDP.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "hca/wire.h"

const struct wire *wire_near, *wire_far;
