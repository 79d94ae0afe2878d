/* split.h: the part of splitting that both splits share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_SPLIT_H
#define FP_OBJ_SPLIT_H

#include "obj/create.h"

struct split_record {
    int32_t color, key;
};

/* Those of `from` whose record has this colour, by key, then by rank. */
int split_group(const struct split_record *records, const struct group *from, int color, uint32_t me,
                struct group **out);

#endif
