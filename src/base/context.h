/* context.h: where a thread was when a signal came, from the context that its handler is given: context_pc() and
 * context_sp(), 0 on a processor that is not known.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_CONTEXT_H
#define FP_BASE_CONTEXT_H

#include "context_arch.h"

#endif
