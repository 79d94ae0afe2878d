/* adapt.c: see adapt.h.
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

/* Brings the sum back to 1 with every weight at the least or above. */
static void settle(struct adapt *a)
{
    double sum = 0;
    for (unsigned r = 0; r < a->rails; r++)
        sum += a->weight[r] = MAX(a->weight[r], LEAST_WEIGHT);
    for (unsigned r = 0; r < a->rails; r++)
        a->weight[r] /= sum;
}

static double time_of(const struct adapt_sample *s)
{
    return s->time ? (double)s->time : 1;
}

/* True when the times say that one rail is faster than another. */
static bool tells(const struct adapt_sample *samples, unsigned count)
{
    double least = 0, most = 0;
    for (unsigned i = 0; i < count; i++) {
        double t = time_of(&samples[i]);
        least = i == 0 ? t : MIN(least, t);
        most = MAX(most, t);
    }
    return count > 1 && most - least > most / 64;
}

static void count_left_out(struct adapt *a, const struct adapt_sample *samples, unsigned count)
{
    for (unsigned r = 0; r < a->rails; r++)
        if (a->left_out[r] < UINT8_MAX)
            a->left_out[r]++;
    for (unsigned i = 0; i < count; i++)
        a->left_out[samples[i].rail] = 0;
}

void adapt_message(struct adapt *a, const struct adapt_sample *samples, unsigned count)
{
    a->messages++;
    count_left_out(a, samples, count);
    if (!tells(samples, count)) {
        a->kept++;
        return;
    }
    double shared = 0, speed = 0;
    for (unsigned i = 0; i < count; i++) {
        shared += a->weight[samples[i].rail];
        speed += (double)samples[i].bytes / time_of(&samples[i]);
    }
    if (speed <= 0)
        return;
    for (unsigned i = 0; i < count; i++) {
        double part = (double)samples[i].bytes / time_of(&samples[i]) / speed;
        double *w = &a->weight[samples[i].rail];
        *w = (1 - a->alpha) * *w + a->alpha * shared * part;
    }
    settle(a);
}

uint32_t adapt_probe(const struct adapt *a)
{
    uint32_t set = 0;
    for (unsigned r = 0; r < a->rails; r++)
        if (a->left_out[r] >= ADAPT_PROBE)
            set |= rail_bit(r);
    return set;
}

void adapt_back(struct adapt *a, unsigned rail)
{
    a->weight[rail] = 1.0 / a->rails;
    a->left_out[rail] = 0;
    settle(a);
}
