/* hcas.h: the adapters of virtual nodes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_HCAS_H
#define FP_LAUNCHER_HCAS_H

#include "options/options.h"

/* Combines -hcas and the user's own description into a value of SOFTIB_FABRIC; to be freed. Ends mpiexec with
 * a message on invalid input. */
char *hcas_build_fabric(const struct options *o);

#endif
