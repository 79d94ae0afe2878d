/* parse.h: reads the names of operations and algorithms that users give: "chain:segment=32k". Errors are
 * sentences that begin with FISHPLATE_COLL.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SELECT_PARSE_H
#define FP_COLL_SELECT_PARSE_H

#include "coll/select/select.h"

int coll_parse_kind(const char *word, enum coll_kind *out);

/* Parses "algorithm[:option=number]...", which is modified. */
int coll_parse(enum coll_kind kind, char *text, struct coll_choice *out);

/* Parses a size such as "64", "64k", "4m", "1g"; false for another form or too large a number. */
bool coll_parse_size(const char *text, uint64_t *out);

#endif
