/* forms.h: the asymptotic forms of LogP [Hoefler05 2.2.5] fitted to barriers: one representative of each of
 * the paper's four groups of algorithms, with the standard errors of the fitted parameters (figures 2.14 to
 * 2.20).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_LOGP_FORMS_H
#define FP_LAB_LOGP_FORMS_H

#include "cli/json.h"
#include "fit.h"

enum { LOGP_GROUPS = 4, LOGP_FORM_POINTS = 32 };

struct logp_form {
    double ranks[LOGP_FORM_POINTS], us[LOGP_FORM_POINTS];
    int n;
    struct fit_line fit;
};
struct logp_forms {
    struct logp_form measured[LOGP_GROUPS], simulated[LOGP_GROUPS];
};

/* Adds times of an algorithm, measured on a machine with a core for every rank; algorithms that represent no
 * group are ignored. */
void logp_forms_add_measured(struct logp_forms *f, const char *algorithm, const double *ranks,
                             const double *us, int n);
/* Simulates 4 to 66 nodes at one switch. */
void logp_forms_simulate(struct logp_forms *f);
void logp_forms_text(const struct logp_forms *f);
/* Writes the fits as member "tables" of the JSON object that is open. */
void logp_forms_json(const struct logp_forms *f, struct json *j);

#endif
