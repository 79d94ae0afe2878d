/* pick.c: see pick.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/pick.h"

#include <string.h>

/* By insertion: equals stay in the order in which they were given. */
static void rank_others(struct pick *p, const double *predicted)
{
    for (int i = 1; i < p->count; i++) {
        int at = i;
        for (; at > 1 && predicted[p->order[at - 1]] > predicted[i]; at--)
            p->order[at] = p->order[at - 1];
        p->order[at] = i;
    }
}

void pick_begin(struct pick *p, const double *predicted, int count, int most, uint64_t budget_ns)
{
    memset(p, 0, sizeof(*p));
    p->count = count < PICK_CANDIDATES ? count : PICK_CANDIDATES;
    p->budget_ns = budget_ns;
    rank_others(p, predicted);
    double best = predicted[0];
    if (p->count > 1 && predicted[p->order[1]] < best)
        best = predicted[p->order[1]];
    p->tries = 1;
    while (p->tries < p->count && p->tries < most && predicted[p->order[p->tries]] <= PICK_HOPELESS * best)
        p->tries++;
}

/* A trial that has taken half of the time already may not end within the rest. */
int pick_next(const struct pick *p)
{
    if (p->next >= p->tries || (p->next > 0 && p->spent_ns + p->spent_ns / (unsigned)p->next > p->budget_ns))
        return -1;
    return p->order[p->next];
}

void pick_record(struct pick *p, uint64_t ns, uint64_t spent_ns)
{
    p->ns[p->order[p->next]] = ns > 0 ? ns : 1;
    p->spent_ns += spent_ns;
    p->next++;
}

int pick_best(const struct pick *p)
{
    int best = 0;
    for (int i = 1; i < p->next; i++) {
        const int c = p->order[i];
        if (p->ns[c] < (best ? p->ns[best] : p->ns[0] * PICK_MARGIN / 100))
            best = c;
    }
    return best;
}
