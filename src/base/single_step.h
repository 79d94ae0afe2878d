/* single_step.h: for a signal handler of stores that page protection has stopped: address and size of the
 * store, and single-stepping of its instruction. A context is the ucontext_t that the handler receives.
 *     STEP_POSSIBLE                           0: not supported on this processor
 *     bool step_is_store(context)             the access that failed was a write
 *     uintptr_t step_instruction_address(context)           the address of the instruction
 *     void step_begin(context), step_end      switch SIGTRAP after the instruction on and off
 *     size_t step_store_size(code)            least number of bytes that the instruction writes
 *     bool step_get_block_store(context, &at, &size)    target and length of an instruction for blocks of memory
 *     size_t step_execute_block_store(context, most)    executes at most `most` bytes of it; returns their number
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_SINGLE_STEP_H
#define FP_BASE_SINGLE_STEP_H

#include "single_step_arch.h"

#endif
