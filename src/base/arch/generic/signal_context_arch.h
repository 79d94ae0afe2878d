/* signal_context_arch.h: for any other processor, see base/signal_context.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_SIGNAL_CONTEXT_ARCH_H
#define FP_BASE_SIGNAL_CONTEXT_ARCH_H

#include <stdint.h>
#include <ucontext.h>

static inline uintptr_t context_pc(const ucontext_t *u)
{
    (void)u;
    return 0;
}

static inline uintptr_t context_sp(const ucontext_t *u)
{
    (void)u;
    return 0;
}

#endif
