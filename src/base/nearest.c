/* nearest.c: edit distance (insert, delete, replace, swap of neighbours), one row at a time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/nearest.h"

#include <stddef.h>
#include <string.h>

#include "base/util.h"

#define WORD_MAX 63

static unsigned edit_distance(const char *a, const char *b)
{
    size_t la = strlen(a), lb = strlen(b);
    if (la > WORD_MAX || lb > WORD_MAX)
        return WORD_MAX;
    unsigned rows[3][WORD_MAX + 1];
    unsigned *two_ago = rows[0], *before = rows[1], *now = rows[2];
    for (size_t j = 0; j <= lb; j++)
        before[j] = (unsigned)j;
    for (size_t i = 1; i <= la; i++) {
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= lb; j++) {
            unsigned best = before[j - 1] + (a[i - 1] != b[j - 1]);
            best = MIN(best, MIN(before[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = MIN(best, two_ago[j - 2] + 1);
            now[j] = best;
        }
        unsigned *spare = two_ago;
        two_ago = before;
        before = now;
        now = spare;
    }
    return before[lb];
}

struct nearest nearest_start_search(const char *typed)
{
    return (struct nearest){.typed = typed, .distance = (unsigned)strlen(typed) / 3 + 2};
}

void nearest_compare_candidate(struct nearest *best, const char *candidate)
{
    unsigned d = edit_distance(best->typed, candidate);
    if (d < best->distance) {
        best->distance = d;
        best->word = candidate;
    }
}
