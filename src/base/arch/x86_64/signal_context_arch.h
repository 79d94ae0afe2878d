/* signal_context_arch.h: for x86_64, see base/signal_context.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_SIGNAL_CONTEXT_ARCH_H
#define FP_BASE_SIGNAL_CONTEXT_ARCH_H

#include <stdint.h>
#include <ucontext.h>

static inline uintptr_t context_pc(const ucontext_t *u)
{
    return (uintptr_t)u->uc_mcontext.gregs[16]; /* REG_RIP, a name that needs _GNU_SOURCE */
}

static inline uintptr_t context_sp(const ucontext_t *u)
{
    return (uintptr_t)u->uc_mcontext.gregs[15]; /* REG_RSP */
}

#endif
