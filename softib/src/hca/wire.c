/* wire.c: see wire.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "hca/wire.h"

const struct wire *wire_near, *wire_far;
