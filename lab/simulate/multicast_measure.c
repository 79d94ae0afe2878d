/* multicast_measure.c: measures the library's multicast sender with a thousand members: it polls their
 * acknowledgements in memory, each in a cache line of its own as in the library.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "lab/ib/ib.h"
#include "lab/sim/multicast.h"
#include "net/mcast/sender.h"

#include "multicast.h"
#include "simulate.h"

enum { MEMBERS = 1023, PACKETS = 64, PASSES = 9 };

struct ack_line {
    struct mcast_ack ack;
    char rest[64];
};

static double measure_ack_ns(void)
{
    const struct mcast_rules rules = multicast_rules(PACKETS, 1, 1e6);
    struct mcast_child *child = calloc(MEMBERS, sizeof(*child));
    struct ack_line *notes = calloc(MEMBERS, sizeof(*notes));
    uint64_t sent[PACKETS] = {0};
    struct mcast_sender s;
    double best = 0;
    bool ask;
    if (!child || !notes)
        abort();
    mcast_sender_open(&s, &rules, child, MEMBERS, sent);
    for (int pass = 0; pass < PASSES; pass++) {
        const double start = ib_now_seconds();
        for (uint32_t p = 0; p < PACKETS; p++) {
            mcast_sender_add_packet(&s, 1, &ask);
            for (uint32_t i = 0; i < MEMBERS; i++) {
                notes[i].ack = (struct mcast_ack){.next = s.next, .limit = s.next + PACKETS};
                mcast_sender_apply_ack(&s, i, &notes[i].ack, 1);
            }
        }
        const double ns = (ib_now_seconds() - start) * 1e9 / PACKETS / MEMBERS;
        best = pass == 0 || ns < best ? ns : best;
    }
    free(child);
    free(notes);
    return best;
}

bool sim_multicast_measure(struct machine *m)
{
    if (!sim_fit_here(m))
        return false;
    m->cores = m->turn_ns = 0;                  /* each node has a core of its own */
    m->multicast_ns = m->multicast_byte_ns = 0; /* softib's switch copies a packet at no extra cost */
    m->ack_ns = measure_ack_ns();
    return true;
}
