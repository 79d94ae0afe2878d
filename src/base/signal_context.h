/* signal_context.h: context_pc() and context_sp(): program counter and stack pointer of a thread that
 * received a signal, from the context of the handler; 0 on an unknown processor.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_SIGNAL_CONTEXT_H
#define FP_BASE_SIGNAL_CONTEXT_H

#include "signal_context_arch.h"

#endif
