/* place.h: from a return address to file and line, with addr2line where that is installed and the program has debug
 * information; else the function, else the address.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DOCTOR_PLACE_H
#define FP_DOCTOR_PLACE_H

#include <stddef.h>

#include "base/status_page.h"

struct places; /* cache of resolved addresses */

struct places *places_open(void);
void places_close(struct places *p);

/* "solver.c:210", "step (in solver)", "solver+0x1234", or "" when nothing is known. Valid until the next call. */
const char *place_text(struct places *p, const struct page_place *at);

#endif
