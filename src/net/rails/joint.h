/* joint.h: how two processes join a pair of rails by a queue pair on each side, take it apart when it fails, and join it
 * again. A pure state machine, one for each pair at each end; both ends are equal and may begin, fail and
 * begin again at any moment. Their reports arrive in order and are never lost (they travel through the
 * connection).
 *
 * Each end sends {generation, made, joined}: the generation of its queue pair, whether there is one, and
 * whether it is connected to the other end's of the same generation. A queue pair that fails is dropped and
 * the generation grows; an end that receives a newer generation drops its own queue pair too, and reports
 * this. Afterwards no data of the older generation can arrive any more: only now may a failed write be
 * repeated over another pair (filter.h).
 *
 *     A: starts        {0, -, -}  -->
 *                      <--  {0, made, -}            B: has made a queue pair
 *     A: has joined    {0, made, joined}  -->       B: joins, and may use it
 *                      <--  {0, made, joined}       A: may use it
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_RAILS_JOINT_H
#define FP_NET_RAILS_JOINT_H

#include "base/util.h"

enum joint_state {
    JOINT_APART, /* no queue pair */
    JOINT_MADE,  /* the queue pair of this end exists and is not connected */
    JOINT_READY, /* the queue pair of this end is connected; that of the peer may not be */
    JOINT_USED   /* both queue pairs are connected: transfers may use them */
};

/* Actions for the caller, in the order of the bits. */
enum joint_action {
    JOINT_DO_DROP = 1 << 0,    /* destroy the queue pair; its transfers have failed */
    JOINT_DO_SETTLE = 1 << 1,  /* data of failed transfers cannot arrive any more: repeat them */
    JOINT_DO_CREATE = 1 << 2,  /* create a queue pair */
    JOINT_DO_CONNECT = 1 << 3, /* connect the queue pair to the one in the message */
    JOINT_DO_USE = 1 << 4,     /* transfers may use the queue pair */
    JOINT_DO_SAY = 1 << 5      /* send the report of this end to the peer */
};

struct joint {
    enum joint_state state;
    uint32_t generation;
    bool wanted;    /* both ports are up, as far as this end knows */
    bool unsettled; /* the peer may still have its queue pair of the previous generation */
};

struct joint_said {
    uint32_t generation;
    bool made, joined;
};

/* Events; each returns actions. */
unsigned joint_receive(struct joint *j, const struct joint_said *said);
unsigned joint_separate(struct joint *j);
unsigned joint_set_wanted(struct joint *j, bool wanted); /* false: the rail must not be used any more */

static inline struct joint_said joint_report(const struct joint *j)
{
    return (struct joint_said){.generation = j->generation,
                               .made = j->state != JOINT_APART,
                               .joined = j->state == JOINT_READY || j->state == JOINT_USED};
}

#endif
