/* site.h: the rules of a site, from a file that `fishplate tune` writes and people may edit. A line is
 *
 *   operation [ranks=A-B] [nodes=A-B] [bytes=A-B] algorithm[:option=number]...   # a remark
 *
 * Bounds are included; "A-" has no upper one, "A" is one value, and a condition that is missing always holds.
 * The first line that holds, and whose algorithm can do the call, wins.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SELECT_SITE_H
#define FP_COLL_SELECT_SITE_H

#include "coll/select/select.h"

struct site {
    size_t count;
    struct coll_site_rule *rule;
};

/* Reads a rules file and appends its rules to *out. An error text names the file and the line. */
int site_read(const char *path, struct site *out);
/* Parses rules from `text`, which is modified; `name` is used in error texts. */
int site_parse(char *text, const char *name, struct site *out);
void site_free(struct site *s);

bool site_rule_applies(const struct coll_site_rule *rule, int ranks, int nodes, uint64_t bytes);

#endif
