/* generate.h: texts made from the table of options, for the build: `mpiexec --fishplate-print bash`, zsh or
 * man.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_GENERATE_H
#define FP_LAUNCHER_GENERATE_H

#include <stdbool.h>

#define GENERATE_OPTION "--fishplate-print"

/* Prints to standard output; false if `what` is unknown. */
bool generate_document(const char *what);

#endif
