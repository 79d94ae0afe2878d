/* findings.h: derives findings from the graph, the most severe first. Pure.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DOCTOR_FINDINGS_H
#define FP_DOCTOR_FINDINGS_H

#include "graph.h"

bool findings_make(struct why *w); /* false if out of memory */

#endif
