/* why.h: the diagnosis of `fishplate why`: two samples of a job, the graph of waits, and the output formats.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DOCTOR_WHY_H
#define FP_DOCTOR_WHY_H

#include "sample.h"
#include "words.h"

enum { FINDINGS_MAX = 12 }; /* limit for the text report; JSON has all findings */

struct diagnosis {
    const struct snapshot *snapshot; /* the later of the two samples */
    struct why why;
    struct wording wording;
    uint64_t *waited_ns;
    double apart; /* seconds between the samples */
};

/* Makes a diagnosis from two samples, which the caller still owns. False if out of memory. */
bool diagnosis_make(const struct snapshot *before, const struct snapshot *now, double apart,
                    struct diagnosis *out);
void diagnosis_free(struct diagnosis *a);

/* True if the diagnosis has a deadlock, a wait for a rank that has left, or mismatched collective calls. */
bool diagnosis_hangs(const struct diagnosis *a);

void diagnosis_text(FILE *out, const struct diagnosis *a);
void diagnosis_json(FILE *out, const struct diagnosis *a);
void diagnosis_html(FILE *out, const void *diagnosis); /* callback of command_write_file */

/* Returns the name of a state: "waits", "runs" ... */
const char *why_state_word(enum why_state state);

#endif
