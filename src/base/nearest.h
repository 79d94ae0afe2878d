/* nearest.h: "did you mean ...?" for names that users type.
 *
 *     struct nearest best = nearest_begin(typed);
 *     for each name: nearest_consider(&best, name);
 *     best.word is the closest one, or NULL when none is close.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_NEAREST_H
#define FP_BASE_NEAREST_H

struct nearest {
    const char *typed;
    const char *word;
    unsigned distance;
};

struct nearest nearest_begin(const char *typed);
void nearest_consider(struct nearest *best, const char *candidate);

#endif
