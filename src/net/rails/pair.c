/* pair.c: see pair.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/rails/pair.h"

static bool meet(const struct pair_net *a, const struct pair_net *b)
{
    return a->subnet == b->subnet && a->kind == b->kind;
}

static unsigned on_network(const struct pair_net *rails, unsigned n, const struct pair_net *net,
                           uint8_t out[RAILS_MAX])
{
    unsigned count = 0;
    for (unsigned r = 0; r < n && r < RAILS_MAX; r++)
        if (meet(&rails[r], net))
            out[count++] = (uint8_t)r;
    return count;
}

static bool seen_before(const struct pair_net *rails, unsigned r)
{
    for (unsigned i = 0; i < r; i++)
        if (meet(&rails[i], &rails[r]))
            return true;
    return false;
}

unsigned pair_rails(const struct pair_net *a, unsigned na, const struct pair_net *b, unsigned nb,
                    struct pair out[RAILS_MAX])
{
    unsigned count = 1;
    out[0] = (struct pair){0, 0};
    for (unsigned r = 0; r < na && r < RAILS_MAX; r++) {
        uint8_t mine[RAILS_MAX], theirs[RAILS_MAX];
        if (seen_before(a, r))
            continue;
        unsigned m = on_network(a, na, &a[r], mine), t = on_network(b, nb, &a[r], theirs);
        for (unsigned k = 0; t > 0 && k < MAX(m, t) && count < RAILS_MAX; k++) {
            struct pair p = {mine[k % m], theirs[k % t]};
            if (p.a != 0 || p.b != 0)
                out[count++] = p;
        }
    }
    return count;
}
