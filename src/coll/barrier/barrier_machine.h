/* barrier_machine.h: one rank's part in a barrier of ranks on several nodes, as a pure state machine. The
 * ranks of a node report to its leader (the lowest rank), the leaders synchronise in rounds, and each leader
 * releases its node. On a node with one rank this rank leads.
 *
 * The machine returns the next action; whether that is a store to shared memory, an RDMA write or a message,
 * and how its end is noticed, is known only to the caller. tests/unit/coll/test_barrier_machine.c explores
 * every order of events.
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
    BARRIER_RELEASE, /* a rank that does not lead waits for its leader */
};

enum barrier_machine_action {
    BARRIER_WAIT,         /* for the event of the stage */
    BARRIER_EXPECT,       /* leader: members may report from now on */
    BARRIER_REPORT,       /* report to the leader */
    BARRIER_ROUND,        /* leader: set the flags of the partners of round `round` */
    BARRIER_RELEASE_NODE, /* leader: release the node */
    BARRIER_DONE,         /* the barrier is over at this rank */
};

struct barrier_machine {
    enum barrier_machine_stage stage;
    int round;
    uint8_t turn; /* number of the barrier, modulo 256 */
};

/* The constants of a communicator. */
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

/* Called when all members, or the partners of the round, have arrived. Returns the next action. */
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

/* ready: what the stage waits for has happened. Call it again after every action but BARRIER_WAIT;
 * BARRIER_DONE ends a barrier, and the call after that begins the next one. */
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

/* Whose flags a leader sets in a round, and which flags of its own it waits for. Place p of the list is a
 * flag of this leader that `from` sets (-1: nobody), and the flag of `to` that this leader sets (-1: none).
 * All functions return the number of places, or -1 if there are more than `most`. */
struct barrier_partner {
    int to, from; /* leaders, by index */
    int round;
};
/* n-way dissemination [Hoefler05 2.2.6.1]: in round k everyone sets flags of those i * (n + 1)^k further on,
 * for i from 1 to n. */
int barrier_partners(int leader, int leaders, int n, struct barrier_partner *out, int most, int *rounds);
/* Pairwise exchange with recursive doubling among the largest power of two; each leader above that reports to
 * one below it in the first round and is released by it in the last. */
int barrier_partners_pairs(int leader, int leaders, struct barrier_partner *out, int most, int *rounds);
/* The first half of a barrier: in round `first` a leader waits for its children in a tree, in the next one it
 * sets the flag of its parent [Liu04 figure 3.2]. */
int barrier_tree(int leader, int leaders, int fan, int first, struct barrier_partner *out, int most);
/* The second half: in round `first` leader 0 sets the flags of all others. */
int barrier_partners_star(int leader, int leaders, int first, struct barrier_partner *out, int most);

/* True if the flag was set for this barrier. A flag holds the number of the last barrier for which it was
 * set. Its writer is at most one barrier ahead of the reader, since it cannot leave a barrier that the reader
 * has not entered. So the flag is set if it is not behind. */
static inline bool barrier_flag_is_set(uint8_t flag, uint8_t turn)
{
    return (int8_t)(uint8_t)(flag - turn) >= 0;
}

#endif
