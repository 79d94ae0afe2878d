/* context.h: where a thread was when a signal arrived, from the context that the handler receives:
 * context_pc() and context_sp(), 0 on an unknown processor.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_CONTEXT_H
#define FP_BASE_CONTEXT_H

#include "context_arch.h"

#endif
