/* stripe.c: divides a message into stripes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/rails/stripe.h"

static double sum_weights(const double *weight, uint32_t set)
{
    double sum = 0;
    for (unsigned r = 0; r < RAILS_MAX; r++)
        if (rail_set_contains(set, r))
            sum += weight[r];
    return sum;
}

static unsigned stripe_find_extreme(const double *weight, uint32_t set, bool largest)
{
    unsigned best = RAIL_NONE;
    for (unsigned r = 0; r < RAILS_MAX; r++)
        if (rail_set_contains(set, r) &&
            (best == RAIL_NONE || (largest ? weight[r] > weight[best] : weight[r] < weight[best])))
            best = r;
    return best;
}

/* Returns the rails that get a stripe by weight: drops the lightest until every share is large enough. */
static uint32_t select_rails_by_share(const struct stripe_rules *rules, const double *weight, uint32_t set,
                                      uint64_t bytes)
{
    while (rail_set_count(set) > 1) {
        unsigned least = stripe_find_extreme(weight, set, false);
        double sum = sum_weights(weight, set);
        if (sum > 0 && (double)bytes * weight[least] / sum >= (double)rules->smallest)
            break;
        set &= ~rail_bit(least);
    }
    return set;
}

static uint64_t probe_bytes(const struct stripe_rules *rules)
{
    return ALIGN_UP(rules->smallest, rules->align);
}

/* Returns the rails to probe, limited so that the other rails get at least the smallest stripe. */
static uint32_t stripe_choose_probes(const struct stripe_rules *rules, uint32_t others, uint32_t probe,
                                     uint64_t bytes)
{
    uint32_t set = 0;
    for (unsigned r = 0; r < RAILS_MAX; r++)
        if (rail_set_contains(probe & ~others, r) &&
            bytes / probe_bytes(rules) > 2 * (uint64_t)(rail_set_count(set) + 1))
            set |= rail_bit(r);
    return set;
}

unsigned stripe_cut(const struct stripe_rules *rules, const double *weight, uint32_t up, uint32_t probe,
                    uint64_t bytes, struct stripe out[RAILS_MAX])
{
    unsigned count = 0;
    uint64_t at = 0;
    if (up == 0)
        return 0;
    uint32_t by_weight = select_rails_by_share(rules, weight, up, bytes);
    uint32_t probing = stripe_choose_probes(rules, by_weight, probe & up, bytes);
    for (unsigned r = 0; r < RAILS_MAX; r++)
        if (rail_set_contains(probing, r)) {
            uint64_t part = probe_bytes(rules);
            out[count++] = (struct stripe){.offset = at, .bytes = part, .rail = (uint8_t)r};
            at += part;
        }
    by_weight = select_rails_by_share(rules, weight, by_weight, bytes - at);
    double sum = sum_weights(weight, by_weight), passed = 0;
    uint64_t rest = bytes - at, begin = at;
    unsigned last = 31u - (unsigned)__builtin_clz(by_weight);
    for (unsigned r = 0; r < RAILS_MAX; r++) {
        if (!rail_set_contains(by_weight, r))
            continue;
        passed += weight[r];
        /* Ends are rounded instead of lengths, so that rounding errors do not accumulate. */
        uint64_t end = begin + (uint64_t)((double)rest * (sum > 0 ? passed / sum : 0));
        end = r == last ? bytes : MIN((end + rules->align / 2) / rules->align * rules->align, bytes);
        if (end <= at && r != last)
            continue;
        if (end == at && count > 0)
            continue; /* no bytes are left for the last rail; a message of 0 bytes is one stripe */
        out[count++] = (struct stripe){.offset = at, .bytes = end - at, .rail = (uint8_t)r};
        at = end;
    }
    return count;
}
