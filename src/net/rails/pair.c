/* pair.c: pairs the rails of two processes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/rails/pair.h"

static bool pair_networks_match(const struct pair_net *a, const struct pair_net *b)
{
    return a->subnet == b->subnet && a->kind == b->kind;
}

static unsigned list_rails_on_network(const struct pair_net *rails, unsigned n, const struct pair_net *net,
                                      uint8_t out[RAILS_MAX])
{
    unsigned count = 0;
    for (unsigned r = 0; r < n && r < RAILS_MAX; r++)
        if (pair_networks_match(&rails[r], net))
            out[count++] = (uint8_t)r;
    return count;
}

static bool network_seen_before(const struct pair_net *rails, unsigned r)
{
    for (unsigned i = 0; i < r; i++)
        if (pair_networks_match(&rails[i], &rails[r]))
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
        if (network_seen_before(a, r))
            continue;
        unsigned m = list_rails_on_network(a, na, &a[r], mine),
                 t = list_rails_on_network(b, nb, &a[r], theirs);
        for (unsigned k = 0; t > 0 && k < MAX(m, t) && count < RAILS_MAX; k++) {
            struct pair p = {mine[k % m], theirs[k % t]};
            if (p.a != 0 || p.b != 0)
                out[count++] = p;
        }
    }
    return count;
}

unsigned pair_list_paths(const struct pair_net *a, unsigned na, const struct pair_net *b, unsigned nb,
                         struct pair out[PAIR_PATHS_MAX])
{
    unsigned count = 1;
    out[0] = (struct pair){0, 0};
    for (unsigned apart = 0; apart < MAX(na, nb); apart++)
        for (unsigned r = 0; r < na && count < PAIR_PATHS_MAX; r++) {
            unsigned t = r + apart < MAX(na, nb) ? r + apart : r + apart - MAX(na, nb);
            if (t < nb && (r != 0 || t != 0) && pair_networks_match(&a[r], &b[t]))
                out[count++] = (struct pair){(uint8_t)r, (uint8_t)t};
        }
    return count;
}

unsigned pair_next_path(const struct pair *paths, unsigned count, unsigned last, uint32_t mine_up,
                        uint32_t theirs_up)
{
    unsigned first = last == RAIL_NONE ? 0 : last + 1;
    for (int wish = 2; wish >= 0; wish--)
        for (unsigned k = 0; k < count; k++) {
            unsigned w = (first + k) % count;
            if ((wish < 1 || rail_set_contains(mine_up, paths[w].a)) &&
                (wish < 2 || rail_set_contains(theirs_up, paths[w].b)))
                return w;
        }
    return 0;
}
