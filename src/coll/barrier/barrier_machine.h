/* barrier_machine.h: one rank's part in a barrier of ranks on several nodes, as a pure state machine. The
 * ranks of a node report to its leader (the lowest rank), the leaders synchronise in rounds, and each leader
 * releases its node. A rank that is alone on its node is a leader.
 *
 * The machine returns the next action; the caller maps actions to stores in shared memory, RDMA writes or
 * messages, and detects their completion. tests/unit/coll/test_barrier_machine.c explores every order of
 * events.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_BARRIER_BARRIER_MACHINE_H
#define FP_COLL_BARRIER_BARRIER_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

enum barrier_machine_stage {
    BARRIER_IDLE,    /* not in a barrier */
    BARRIER_GATHER,  /* a leader waits for the ranks of its node */
    BARRIER_LEADERS, /* a leader waits for the leaders of this round */
    BARRIER_RELEASE, /* a rank that is not a leader waits for the release by its leader */
};

enum barrier_machine_action {
    BARRIER_WAIT,         /* wait for the event of the stage */
    BARRIER_EXPECT,       /* leader: ranks of the node may report from now on */
    BARRIER_REPORT,       /* report to the leader */
    BARRIER_ROUND,        /* leader: set the flags of the partners of round m->round */
    BARRIER_RELEASE_NODE, /* leader: release the node */
    BARRIER_DONE,         /* the barrier is over at this rank */
};

struct barrier_machine {
    enum barrier_machine_stage stage;
    int round;
    uint8_t turn; /* number of the barrier, modulo 256 */
};

/* Constants of a communicator. */
struct barrier_machine_shape {
    bool leads;
    bool alone; /* no other rank on this node */
    int rounds;
};

static inline enum barrier_machine_action barrier_machine_begin(struct barrier_machine *m,
                                                                const struct barrier_machine_shape *shape)
{
    m->turn++;
    m->round = -1;
    if (!shape->leads) {
        m->stage = BARRIER_RELEASE;
        return BARRIER_REPORT;
    }
    m->stage = BARRIER_GATHER;
    return BARRIER_EXPECT;
}

/* Called when all ranks of the node, or the partners of the round, have arrived. Returns the next action. */
static inline enum barrier_machine_action barrier_machine_advance(struct barrier_machine *m,
                                                                  const struct barrier_machine_shape *shape)
{
    if (++m->round < shape->rounds) {
        m->stage = BARRIER_LEADERS;
        return BARRIER_ROUND;
    }
    m->stage = BARRIER_RELEASE;
    return BARRIER_RELEASE_NODE;
}

/* Returns the next action. `ready`: the event of the current stage has happened. The caller performs the
 * action and calls again, except after BARRIER_WAIT. BARRIER_DONE ends a barrier; the next call begins
 * another one. */
static inline enum barrier_machine_action
barrier_machine_next(struct barrier_machine *m, const struct barrier_machine_shape *shape, bool ready)
{
    switch (m->stage) {
    case BARRIER_IDLE:
        return barrier_machine_begin(m, shape);
    case BARRIER_GATHER:
        return ready || shape->alone ? barrier_machine_advance(m, shape) : BARRIER_WAIT;
    case BARRIER_LEADERS:
        return ready ? barrier_machine_advance(m, shape) : BARRIER_WAIT;
    case BARRIER_RELEASE:
        if (!ready && !shape->leads)
            return BARRIER_WAIT;
        m->stage = BARRIER_IDLE;
    }
    return BARRIER_DONE;
}

/* One partner of a leader in one round: this leader sets a flag of leader `to` (-1: none) and waits for
 * its flag that leader `from` sets (-1: none). The functions below fill in an array of partners and return
 * their number, or -1 if there are more than `most`. */
struct barrier_partner {
    int to, from; /* leaders, by index */
    int round;
};
/* n-way dissemination [Hoefler05 2.2.6.1]: in round k every leader sets flags of the leaders at distances
 * i * (n + 1)^k, for i from 1 to n. */
int barrier_partners(int leader, int leaders, int n, struct barrier_partner *out, int most, int *rounds);
/* Pairwise exchange (recursive doubling) among the largest power of two of leaders. Each further leader
 * reports to one of them in the first round and is released by it in the last round. */
int barrier_partners_pairs(int leader, int leaders, struct barrier_partner *out, int most, int *rounds);
/* First half of a barrier, up a tree: in round `first` a leader waits for its children, in the next round
 * it sets the flag of its parent [Liu04 figure 3.2]. */
int barrier_tree(int leader, int leaders, int fan, int first, struct barrier_partner *out, int most);
/* Second half of a barrier: in round `first` leader 0 sets the flags of all other leaders. */
int barrier_partners_star(int leader, int leaders, int first, struct barrier_partner *out, int most);

/* True if the flag was set for barrier number `turn`. A flag holds the number (modulo 256) of the last
 * barrier for which it was set. Its writer is at most one barrier ahead, since it cannot leave a barrier
 * that the reader has not entered. So the flag is set unless its number is behind `turn`. */
static inline bool barrier_flag_is_set(uint8_t flag, uint8_t turn)
{
    return (int8_t)(uint8_t)(flag - turn) >= 0;
}

#endif
