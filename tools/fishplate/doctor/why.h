/* why.h: the answer to `fishplate why`: two samples of a job, the graph between its ranks, and how it is
 * presented.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DOCTOR_WHY_H
#define FP_DOCTOR_WHY_H

#include "sample.h"
#include "words.h"

enum { FINDINGS_MAX = 12 }; /* limit for the text report; JSON has all findings */

struct answer {
    const struct look *look; /* the later one */
    struct why why;
    struct telling telling;
    uint64_t *waited_ns;
    double apart; /* seconds between the samples */
};

/* The caller keeps ownership of both samples. False if out of memory. */
bool answer_make(const struct look *before, const struct look *now, double apart, struct answer *out);
void answer_free(struct answer *a);

/* Is there a problem that does not resolve by itself? */
bool answer_hangs(const struct answer *a);

void answer_text(FILE *out, const struct answer *a);
void answer_json(FILE *out, const struct answer *a);
void answer_html(FILE *out, const struct answer *a);

/* "waits", "computes", ... */
const char *why_state_word(enum why_state state);

#endif
