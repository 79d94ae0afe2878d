/* nearest.h: "did you mean ...?" for names that users type.
 *
 *     struct nearest best = nearest_start_search(typed);
 *     for each name: nearest_compare_candidate(&best, name);
 *     best.word is the most similar name; NULL: no name is similar.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_NEAREST_H
#define FP_BASE_NEAREST_H

struct nearest {
    const char *typed;
    const char *word;
    unsigned distance;
};

struct nearest nearest_start_search(const char *typed);
void nearest_compare_candidate(struct nearest *best, const char *candidate);

#endif
