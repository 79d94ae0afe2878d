/* advice.h: in which list a setting is shown, when to change it, and which counter shows the need.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_ADVICE_H
#define FP_TOOLS_ADVICE_H

struct tunable;

enum advice_group { ADVICE_START, ADVICE_NETWORK, ADVICE_COLLECTIVES, ADVICE_EXPERT, ADVICE_GROUPS };

struct advice {
    const char *name; /* without FISHPLATE_ */
    enum advice_group group;
    const char *when;    /* when to change it */
    const char *counter; /* counter (FISHPLATE_STATS=1) that shows the need; NULL: none */
};

extern const char *const advice_titles[ADVICE_GROUPS];
extern const char *const advice_words[ADVICE_GROUPS]; /* names of the groups in JSON */

/* Returns the advice for a setting, never NULL: a setting without an entry is for experts. */
const struct advice *advice_find(const struct tunable *t);

#endif
