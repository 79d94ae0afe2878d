/* gate.h: the lock of a window's target: fair, for readers and writers, in memory that two kinds of users
 * change.
 *
 * Near users are processors of the target's node; far users are adapters, for processes of other nodes. Each
 * kind has atomic instructions, but most adapters are atomic only towards other adapter requests
 * (IBV_ATOMIC_HCA): an addition of one kind can get lost if it coincides with an addition of the other. So
 * each side has counters of its own, which only it adds to, and between the sides there are only plain reads
 * and writes of whole words:
 *
 * - Within a side, tickets: `users` have arrived, `read` of them may read or have left, `write` of them have
 *   left. Users are served in the order of their arrival; consecutive readers share the gate.
 * - Between the sides, Peterson's algorithm for two: the next user of a side announces itself (a writer in
 *   `want`, the first reader in `inside`), gives the turn to the other side (`turn`), and waits while a user
 *   of the other side that excludes it is announced and has the turn. Only one user of a side is at this
 *   point, since readers enter one after the other.
 * - Later readers join those of their side that are inside, unless a writer of the other side wants to enter.
 *
 * No I/O: each step lists the words to change and to read, and the caller passes the values read to the next
 * step. window_lock.c executes steps by the processor, far.c by RDMA, tests/unit/rma/test_gate.c in every
 * order.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_RMA_GATE_H
#define FP_RMA_GATE_H

#include <stdbool.h>
#include <stdint.h>

enum gate_side { GATE_NEAR, GATE_FAR };

/* Indexes of the near side's words. Words of the far side follow GATE_SIDE later, in another cache line. */
enum gate_word {
    GATE_USERS,
    GATE_READ,
    GATE_WRITE,
    GATE_INSIDE,
    GATE_WANT,
    GATE_SIDE = 8,
    GATE_TURN = 13,
    GATE_WORDS
};

/* A process that is entering the gate. */
struct gate_entry {
    enum gate_side side;
    bool shared;   /* a reader */
    bool one_side; /* the gate has no users of the other side */
    uint8_t stage;
    uint64_t ticket;
};

struct gate_op {
    bool add; /* add `value` atomically; else store it */
    uint8_t word;
    uint64_t value;
};

/* The operations that the user executes next, in this order; then the user reads all words if `look` is
 * set. */
struct gate_step {
    struct gate_op op[3];
    uint8_t count;
    bool look;
};

/* Begins an entry and stores its first step in *step. */
void gate_enter(struct gate_entry *e, enum gate_side side, bool shared, bool one_side,
                struct gate_step *step);

/* Called after each step. `old` is the word's value before the step's addition; `seen` are the words that the
 * step read. Returns true when the user is inside once *step is done. Further calls of a user that is inside
 * return true with an empty *step. */
bool gate_next_step(struct gate_entry *e, uint64_t old, const uint64_t *seen, struct gate_step *step);

void gate_leave(const struct gate_entry *e, struct gate_step *step);

#endif
