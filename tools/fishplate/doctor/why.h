/* why.h: the answer to `fishplate why`: two samples of a job, the graph between its ranks, and how it is
 * presented.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DOCTOR_WHY_H
#define FP_DOCTOR_WHY_H

#include "sample.h"
#include "words.h"

enum { FINDINGS_MAX = 12 }; /* limit for the text report; JSON has all findings */

struct diagnosis {
    const struct snapshot *snapshot; /* the later one */
    struct why why;
    struct wording wording;
    uint64_t *waited_ns;
    double apart; /* seconds between the samples */
};

/* The caller keeps ownership of both samples. False if out of memory. */
bool diagnosis_make(const struct snapshot *before, const struct snapshot *now, double apart,
                    struct diagnosis *out);
void diagnosis_free(struct diagnosis *a);

/* Is there a problem that does not resolve by itself? */
bool diagnosis_hangs(const struct diagnosis *a);

void diagnosis_text(FILE *out, const struct diagnosis *a);
void diagnosis_json(FILE *out, const struct diagnosis *a);
void diagnosis_html(FILE *out, const void *diagnosis); /* for command_write_file */

/* "waits", "computes", ... */
const char *why_state_word(enum why_state state);

#endif
