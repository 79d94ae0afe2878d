/* parse.h: parses operations and algorithms in settings: "chain:segment=32k". Error texts begin with
 * FISHPLATE_COLL.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SELECT_PARSE_H
#define FP_COLL_SELECT_PARSE_H

#include "coll/select/select.h"

int coll_parse_kind(const char *word, enum coll_kind *out);

/* Parses "algorithm[:option=number]...". Modifies `text`. */
int coll_parse(enum coll_kind kind, char *text, struct coll_choice *out);

/* Parses a size such as "64", "64k", "4m", "1g". Returns false for other text or an overflow. */
bool coll_parse_size(const char *text, uint64_t *out);

#endif
