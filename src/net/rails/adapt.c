/* adapt.c: computes the weights of adaptive striping.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/rails/adapt.h"

#define LEAST_WEIGHT (1.0 / 256)

void adapt_open(struct adapt *a, unsigned rails, double alpha)
{
    *a = (struct adapt){.rails = (uint8_t)rails, .alpha = alpha};
    for (unsigned r = 0; r < rails; r++)
        a->weight[r] = 1.0 / rails;
}

/* Raises every weight to the minimum and scales the sum to 1. */
static void adapt_normalise(struct adapt *a)
{
    double sum = 0;
    for (unsigned r = 0; r < a->rails; r++)
        sum += a->weight[r] = MAX(a->weight[r], LEAST_WEIGHT);
    for (unsigned r = 0; r < a->rails; r++)
        a->weight[r] /= sum;
}

static void adapt_clear_samples(struct adapt *a)
{
    for (unsigned r = 0; r < a->rails; r++)
        a->bytes[r] = a->busy[r] = 0;
    a->first_found = a->last_found = 0;
}

void adapt_stripe(struct adapt *a, unsigned rail, uint64_t bytes, uint64_t started, uint64_t found)
{
    uint64_t since = MAX(started, a->done_at[rail]);
    a->busy[rail] += found > since ? found - since : 0;
    a->bytes[rail] += bytes;
    a->done_at[rail] = found;
    if (a->first_found == 0)
        a->first_found = found;
    a->last_found = found;
}

/* Returns the rails that moved data; 0 if the speed of one of them is unknown. */
static uint32_t adapt_measured_rails(const struct adapt *a, uint32_t rails)
{
    uint32_t set = 0;
    for (unsigned r = 0; r < a->rails; r++) {
        if (a->bytes[r] && a->busy[r])
            set |= rail_bit(r);
        else if (a->bytes[r] || rail_set_contains(rails, r))
            return 0;
    }
    return set;
}

static double adapt_rail_speed(const struct adapt *a, unsigned rail)
{
    return (double)a->bytes[rail] / (double)a->busy[rail];
}

/* True if the measured speeds require other weights. */
static bool adapt_needs_new_weights(const struct adapt *a, uint32_t set)
{
    double least = 0, most = 0;
    for (unsigned r = 0; r < a->rails; r++) {
        if (!rail_set_contains(set, r))
            continue;
        double relative = adapt_rail_speed(a, r) / a->weight[r];
        least = least > 0 ? MIN(least, relative) : relative;
        most = MAX(most, relative);
    }
    return most - least > most / 64;
}

static void adapt_redistribute(struct adapt *a, uint32_t set)
{
    double shared = 0, sum = 0;
    for (unsigned r = 0; r < a->rails; r++)
        if (rail_set_contains(set, r)) {
            shared += a->weight[r];
            sum += adapt_rail_speed(a, r);
        }
    for (unsigned r = 0; r < a->rails; r++)
        if (rail_set_contains(set, r))
            a->weight[r] = (1 - a->alpha) * a->weight[r] + a->alpha * shared * adapt_rail_speed(a, r) / sum;
    adapt_normalise(a);
}

void adapt_count_message(struct adapt *a, uint32_t rails)
{
    a->messages++;
    for (unsigned r = 0; r < a->rails; r++) {
        if (rail_set_contains(rails, r))
            a->left_out[r] = 0;
        else if (a->left_out[r] < UINT8_MAX)
            a->left_out[r]++;
    }
    bool at_once = a->first_found == a->last_found;
    uint32_t set = at_once ? 0 : adapt_measured_rails(a, rails);
    if (rail_set_count(set) > 1 && adapt_needs_new_weights(a, set))
        adapt_redistribute(a, set);
    else
        a->kept++;
    if (at_once || set)
        adapt_clear_samples(a);
}

uint32_t adapt_rails_to_probe(const struct adapt *a)
{
    uint32_t set = 0;
    for (unsigned r = 0; r < a->rails; r++)
        if (a->left_out[r] >= ADAPT_PROBE)
            set |= rail_bit(r);
    return set;
}

void adapt_restore_rail(struct adapt *a, unsigned rail)
{
    a->weight[rail] = 1.0 / a->rails;
    a->left_out[rail] = 0;
    adapt_normalise(a);
}
