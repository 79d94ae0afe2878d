/* counter.h: a counter is declared by one line in the file that counts. MPI_T performance variables, the
 * job summary (FISHPLATE_STATS=1) and `fishplate info --pvars` are generated from these lines. Counters
 * change under the big lock.
 *
 *     static COUNTER(eager_sent, "p2p_eager_sent", "Messages sent eagerly.");
 *     counter_add(&eager_sent, 1);
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_COUNTER_H
#define FP_BASE_COUNTER_H

#include <stddef.h>
#include <stdint.h>

struct counter {
    const char *name;
    const char *doc;
    uint64_t value;
};

#define COUNTER(var, NAME, DOC)                      \
    struct counter var = {.name = NAME, .doc = DOC}; \
    static struct counter *const var##_entry __attribute__((section("fp_counters"), used)) = &var

static inline void counter_add(struct counter *c, uint64_t n)
{
    c->value += n;
}

/* Number of counters, and the counter of an index, in link order. */
size_t counters_count(void);
struct counter *counters_get(size_t index);

/* The current name of a counter with this current or former name. The first use of a former name logs a
 * warning. */
const char *counter_present_name(const char *name);

#endif
