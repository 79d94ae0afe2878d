/* barrier_logic.h: pure functions of the barrier logic that upper and lower switches have in common.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_BARRIER_LOGIC_H
#define SOFTIB_BARRIER_LOGIC_H

#include "softib/barrier.h"

#define I     SOFTIB_SWITCH_BARRIERS
#define WORDS (SOFTIB_SWITCH_PORTS / 64)

static inline bool line_test_bit(const uint64_t *line, unsigned n)
{
    return line[n / 64] >> (n % 64) & 1;
}

static inline void line_set_bit(uint64_t *line, unsigned n, bool v)
{
    line[n / 64] = (line[n / 64] & ~(1ull << (n % 64))) | (uint64_t)v << (n % 64);
}

/* Initialises barrier `id` without participating ports. */
void switch_begin(struct softib_switch *s, unsigned id);
bool switch_is_barrier_complete(const struct softib_switch *s, unsigned id);
/* Called when the barrier is complete: begins the next round and notifies every participating port. */
void switch_finish_round(struct softib_switch *s, unsigned id, uint64_t now, softib_emit emit, void *arg);
void switch_answer(const struct softib_packet *p, uint8_t type, unsigned id, softib_emit emit, void *arg);

#endif
