/* meeting.h: one rank's part in a barrier of ranks on several nodes, as a pure state machine. The ranks of a node report to
 * its leader (the lowest rank), the leaders meet in rounds, and each leader releases its node. A node with one rank has a
 * leader and nobody else.
 *
 * The machine says what to do next; whether that is a store to shared memory, an RDMA write or a message, and how its end is
 * noticed, is known only to the caller. tests/unit/coll/test_meeting.c explores every order of events.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_MEETING_H
#define FP_COLL_MEETING_H

#include <stdbool.h>
#include <stdint.h>

enum meeting_stage {
    MEET_AWAY,    /* not in a barrier */
    MEET_GATHER,  /* a leader waits for the ranks of its node */
    MEET_CROSS,   /* a leader waits for the leaders of this round */
    MEET_RELEASE, /* a rank that does not lead waits for its leader */
};

enum meeting_action {
    MEET_WAIT,   /* for what the stage says */
    MEET_EXPECT, /* leader: members may report from now on */
    MEET_REPORT, /* tell the leader */
    MEET_ROUND,  /* leader: tell the partners of round `round` */
    MEET_FREE,   /* leader: release the node */
    MEET_OVER,   /* the barrier is over at this rank */
};

struct meeting {
    enum meeting_stage stage;
    int round;
    uint8_t turn; /* number of the barrier, modulo 256 */
};

/* What is fixed for a communicator. */
struct meeting_shape {
    bool leads;
    bool alone; /* no other rank on this node */
    int rounds;
};

static inline enum meeting_action meeting_begin(struct meeting *m, const struct meeting_shape *shape)
{
    m->turn++;
    m->round = -1;
    if (!shape->leads) {
        m->stage = MEET_RELEASE;
        return MEET_REPORT;
    }
    m->stage = MEET_GATHER;
    return MEET_EXPECT;
}

/* The members, or the partners of a round, are here. */
static inline enum meeting_action meeting_go_on(struct meeting *m, const struct meeting_shape *shape)
{
    if (++m->round < shape->rounds) {
        m->stage = MEET_CROSS;
        return MEET_ROUND;
    }
    m->stage = MEET_RELEASE;
    return MEET_FREE;
}

/* ready: what the stage waits for has happened. Call it again after every action but MEET_WAIT; MEET_OVER ends a barrier, and
 * the call after that begins the next one. */
static inline enum meeting_action meeting_next(struct meeting *m, const struct meeting_shape *shape,
                                               bool ready)
{
    switch (m->stage) {
    case MEET_AWAY:
        return meeting_begin(m, shape);
    case MEET_GATHER:
        return ready || shape->alone ? meeting_go_on(m, shape) : MEET_WAIT;
    case MEET_CROSS:
        return ready ? meeting_go_on(m, shape) : MEET_WAIT;
    case MEET_RELEASE:
        if (!ready && !shape->leads)
            return MEET_WAIT;
        m->stage = MEET_AWAY;
    }
    return MEET_OVER;
}

/* Leaders meet by n-way dissemination [Hoefler05 2.2.6.1]: in round k everyone tells those i * (n + 1)^k further on, for i from 1
 * to n. Place p of this list is the flag that `from` sets at this leader and that this leader sets at `to`. Returns how many
 * places there are, or -1 when there are more than `most`; *rounds is how many rounds they make. */
struct meeting_partner {
    int to, from; /* leaders, by index */
    int round;
};
int meeting_partners(int leader, int leaders, int n, struct meeting_partner *out, int most, int *rounds);

/* A flag holds the number of the last barrier for which it was set. Its writer is at most one barrier ahead of a rank that
 * looks at it, since it cannot leave a barrier that this rank has not entered. So it is set when it is not behind. */
static inline bool meeting_flag_set(uint8_t flag, uint8_t turn)
{
    return (int8_t)(uint8_t)(flag - turn) >= 0;
}

#endif
