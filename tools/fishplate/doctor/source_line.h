/* source_line.h: resolves a return address to file and line (if addr2line is installed and the program has debug
 * information), else to the function, else to module and offset.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DOCTOR_PLACE_H
#define FP_DOCTOR_PLACE_H

#include <stddef.h>

#include "base/status_page.h"

struct places; /* cache of resolved addresses */

struct places *places_open(void);
void places_close(struct places *p);

/* Returns "solver.c:210", "step (in solver)", "solver+0x1234", or "" if nothing is known; valid until the
 * next call. */
const char *place_text(struct places *p, const struct page_place *at);

#endif
