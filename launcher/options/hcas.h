/* hcas.h: the adapters of virtual nodes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_HCAS_H
#define FP_LAUNCHER_HCAS_H

#include "options/options.h"

/* -hcas and what the user says of the fabric besides, as words of SOFTIB_FABRIC; to be freed. Ends mpiexec with a
 * sentence on any mistake. */
char *hcas_fabric(const struct options *o);

#endif
