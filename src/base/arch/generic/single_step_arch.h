/* single_step_arch.h: for any other processor, see base/single_step.h: single-stepping is not supported.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_SINGLE_STEP_ARCH_H
#define FP_BASE_SINGLE_STEP_ARCH_H

#define STEP_POSSIBLE 0

#endif
