/* shared_way.h: how data of a shared-memory collective goes from one rank to another: through slots (two
 * copies, both processors work at once), read by the receiver from the sender's memory (one copy, and the
 * sender waits), or the same with the help of the sender, which writes a part of it (one copy, both processors work).
 * Which is faster depends on the machine, on the operation, on the size, and on whether the
 * other rank has a processor, so receivers measure them and publish what each costs, and senders take the
 * best. Pure: costs in, choices out.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SHARED_WAY_H
#define FP_COLL_SHARED_WAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum shared_way { BY_SLOTS, BY_READING, BY_HELP, SHARED_WAYS };

#define SHARED_SHORT   8192 /* bytes of a block: up to so many always go through slots */
#define SHARED_CLASSES 12   /* of sizes, by factors of two from SHARED_SHORT */

static inline unsigned shared_class(size_t bytes)
{
    unsigned c = 0;
    for (bytes /= SHARED_SHORT; bytes > 1 && c < SHARED_CLASSES - 1; bytes /= 2)
        c++;
    return c;
}

/* How ways are tried: where each rank has a processor, and where ranks take turns on processors, in calls that are short or long. */
enum shared_pace { PACE_ALONE, PACE_TURNS, PACE_LONG };

#define SHARED_LONG \
    2097152 /* bytes that the ranks of a call move together: it takes longer than most turns */

static inline enum shared_pace shared_pace(bool turns, unsigned class, int blocks)
{
    return !turns                                                           ? PACE_ALONE
           : ((size_t)SHARED_SHORT << class) * (size_t)blocks < SHARED_LONG ? PACE_TURNS
                                                                            : PACE_LONG;
}

/* What is known of a cost (0: nothing) once a call has taken `ns`. Falls fast and rises slowly: most of what
 * makes a call slower (first touch of a page, an interrupt) does not come again. What comes again and again (the
 * other rank has no processor half of the time) counts. `early`: one of the first calls, of which the cheapest counts. */
uint32_t shared_cost_blend(uint32_t known, uint64_t ns, bool early);

/* Where ranks take turns on processors, a call takes as long as what others do meanwhile; and one that finds its data there
 * takes no time because the one before it has waited for it. So calls count in series of the same way. */
struct shared_series {
    uint8_t way;   /* + 1, or 0 */
    uint8_t calls; /* so far, without the first, which finds what another way left */
    uint64_t ns;   /* ... of these */
    uint32_t last; /* what a call of the series before took; 0: this is the first of its way */
};

/* One more call has taken `ns` from begin to end. Returns what is known of the cost of a call, by that way, after it; `known` (0:
 * nothing) while its series is not complete. Dear and cheap calls come in turn (who runs ahead waits once for several calls), so dear
 * ones count as much. But a call also takes as long as one rank does something else: a dear series counts when the next one is dear,
 * too. `early`: all ways are tried, and the cheapest series of each counts. */
uint32_t shared_series_learn(struct shared_series *s, enum shared_pace pace, enum shared_way way, uint64_t ns,
                             uint32_t known, bool early);

/* The way of call n of a class, out of the first `ways`. All ranks count the calls alike, whatever their part in them, so that they
 * try the same way at the same time. */
enum shared_way shared_way_pick(uint32_t n, const uint32_t ns[], unsigned ways, enum shared_pace pace);

/* The same of a size that is new, where each rank has a processor: `before` is what is known of the next smaller size. Ways that are far
 * behind there are not tried at first. */
enum shared_way shared_way_pick_new(uint32_t n, const uint32_t ns[], const uint32_t before[], unsigned ways);

/* Is call n one of the first, in which all ways are tried? */
bool shared_way_is_new(uint32_t n, unsigned ways, enum shared_pace pace);

/* A rank that reads another's block copies its own one after it, or in turns with it. Each rank decides for itself. */
enum shared_own_manner { OWN_AFTER, OWN_IN_TURNS, OWN_MANNERS };
struct shared_own {
    uint32_t calls, ns[OWN_MANNERS]; /* what the two blocks take; 0: not known */
};

enum shared_own_manner shared_own_pick(const struct shared_own *o);
/* ... took `ns`. */
void shared_own_learn(struct shared_own *o, enum shared_own_manner manner, uint64_t ns);

#endif
