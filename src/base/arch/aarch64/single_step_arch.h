/* single_step_arch.h: for aarch64, see base/single_step.h: a process cannot single-step itself on aarch64.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_SINGLE_STEP_ARCH_H
#define FP_BASE_SINGLE_STEP_ARCH_H

#define STEP_POSSIBLE 0

#endif
