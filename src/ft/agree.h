/* agree.h: agreement among processes of which some may die at any moment, as a pure state machine without I/O
 * or clock. struct agree is one agreement at one process. Every process contributes words; the decision is
 * the AND of all contributions (or the maximum: an operation for which order and repetition do not matter)
 * and a set of processes that died. The decision is the same at all living processes.
 *
 * Contributions go up a binomial tree over the living processes to the lowest of them, the root. The root
 * decides when it has a contribution from every process that it does not know to be dead, and the decision
 * goes down the tree. A process returns as soon as it has the decision (early returning) and keeps the object
 * for those that do not have it yet.
 *
 * When the root dies, the next living process becomes root and begins an epoch, named by its rank, and all
 * processes contribute again. A process that has a decision sends the decision instead, and a root that
 * receives one adopts it. A process in an epoch ignores messages of earlier epochs, so a decision that
 * reached a living process is known to every later root before that root can decide. Therefore there is only
 * one decision. When another process dies, its children send to their new parents. The algorithm needs a
 * failure detector that never reports a living process and eventually reports every death to every process:
 * the launcher.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_FT_AGREE_H
#define FP_FT_AGREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum agree_kind { AGREE_UP, AGREE_DOWN };

/* A message: words, then two bit sets of processes: contributors, and (in a decision) dead processes. */
struct agree_message {
    uint32_t kind;
    uint32_t epoch;   /* the root that the sender knows: all processes with lower numbers are dead */
    uint32_t decided; /* AGREE_UP: the words are a decision */
    uint32_t unused;
    uint64_t data[];
};

/* State of one agreement at one process. Without pointers, so that tests can copy and compare states. */
struct agree {
    uint32_t n, me, nwords, nbits; /* nbits: 64-bit words of a set */
    uint32_t nmost;                /* the last `nmost` words are combined by maximum instead of AND */
    uint32_t epoch;
    uint32_t decided_epoch; /* epoch in which the decision was made or confirmed; n: none */
    uint32_t sent_to;       /* parent that was sent this process's state in this epoch; n: none */
    bool begun;             /* this process has contributed */
    bool decided;
    bool has_received_decision; /* a child has sent a decision */
    bool dirty;                 /* the state has changed since it was sent to the parent */
    uint64_t data[];            /* own words, combined words, decided words, sets (agree.c) */
};

size_t agree_size(uint32_t n, uint32_t nwords);
void agree_init(struct agree *a, uint32_t n, uint32_t me, uint32_t nwords);
/* Sets how many words are combined by maximum. Called first, with the same value at all processes. */
void agree_set_max_words(struct agree *a, uint32_t nmost);
size_t agree_message_size(const struct agree *a);

/* Callback that sends one message. Messages must be sent in the order of the calls; if the process dies,
 * only the first of them may have been sent. */
typedef void agree_send(void *arg, uint32_t to, const struct agree_message *m);
struct agree_out {
    agree_send *send;
    void *arg;
    struct agree_message *scratch; /* agree_message_size() bytes */
};

void agree_begin(struct agree *a, const uint64_t *words, const struct agree_out *out);
void agree_receive(struct agree *a, uint32_t from, const struct agree_message *m,
                   const struct agree_out *out);
void agree_member_died(struct agree *a, uint32_t rank, const struct agree_out *out);
/* Ends the agreement here with the own words as the result. Used if the program needs no result. */
void agree_end_without_result(struct agree *a, const struct agree_out *out);

/* The agreed words; valid once decided. */
const uint64_t *agree_get_result(const struct agree *a);
bool agree_is_named_dead(const struct agree *a, uint32_t rank);

/* Retention of decided agreements for members that have not received the decision: in addition to its words,
 * each process contributes the number of the first agreement on the communicator that it has not decided; the
 * decision includes the minimum of these numbers. Every process that the decision does not name dead has
 * contributed. So all living processes have decided all agreements below that number, however many agreements
 * are in progress at once. A process retains no more agreements than the program has in progress.
 *
 * agree_encode_first_open() returns the last word of a contribution: the complement, since words are
 * combined by maximum and the minimum is needed. */
static inline uint64_t agree_encode_first_open(uint32_t first_open)
{
    return ~(uint64_t)first_open;
}

/* Returns the number of the first agreement that a process may still need; valid once decided. */
static inline uint32_t agree_decode_first_open(const struct agree *a)
{
    return (uint32_t)~agree_get_result(a)[a->nwords - 1];
}

#endif
