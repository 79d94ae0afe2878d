/* step.h: a store that page protection has stopped, as a signal handler sees it: where it is, how many bytes it writes, and how to let
 * the processor carry out just this one instruction.
 *     STEP_POSSIBLE                                   0: not on this processor
 *     bool step_is_store(const ucontext_t *)          the access that failed would have written
 *     uintptr_t step_place(const ucontext_t *)        the address of the instruction
 *     void step_begin(ucontext_t *), step_end(ucontext_t *)  SIGTRAP after the instruction: on and off
 *     size_t step_store_size(const unsigned char *)   bytes that the instruction surely writes, beginning with the one that failed
 *     bool step_block(const ucontext_t *, uintptr_t *, size_t *)  one instruction that fills or copies a block: where to, and how long
 *     size_t step_run_block(ucontext_t *, size_t)     does that for at most the given number of bytes; returns how many
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_STEP_H
#define FP_BASE_STEP_H

#include "step_arch.h"

#endif
