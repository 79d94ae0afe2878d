/* signal_context_arch.h: for aarch64, see base/signal_context.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_SIGNAL_CONTEXT_ARCH_H
#define FP_BASE_SIGNAL_CONTEXT_ARCH_H

#include <stdint.h>
#include <ucontext.h>

static inline uintptr_t context_pc(const ucontext_t *u)
{
    return (uintptr_t)u->uc_mcontext.pc;
}

static inline uintptr_t context_sp(const ucontext_t *u)
{
    return (uintptr_t)u->uc_mcontext.sp;
}

#endif
