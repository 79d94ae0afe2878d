/* least.h: the smallest stripe, chosen by measurement: how finely messages of a size are worth dividing. A pure state machine,
 * one for each connection; stripe.h cuts by what it says.
 *
 * Sizes are classes by factors of two, from 8 KiB to 512 KiB; longer messages are always divided, by LEAST_DEFAULT. A class
 * has levels: 0 leaves its messages whole, level p allows stripes of about 1/2^p of them, down to 4 KiB. While a class is on
 * trial its messages go by each level in turn that makes a difference with the weights of then, LEAST_ROUNDS times over. The
 * time of LEAST_GROUP messages together is a sample: completions are found several at a time, so that the time of one says
 * little. An interruption can only make it longer, hence the shortest sample of a level counts, and the fastest level stays.
 * The trial is held again when rails come or go, after LEAST_LASTS messages, and when the weights have changed so much that
 * the level makes another number of stripes.
 *
 * The delivery time of a message is counted from when it was handed over, or from the end of the message before it when that
 * was later: in a stream it is the time that a message adds, alone it is its latency. It counts only for messages that had
 * none of another class or level beside them. Where too few do, the traffic is too mixed to tell, and the trial rests.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_RAILS_LEAST_H
#define FP_NET_RAILS_LEAST_H

#include "net/rails/stripe.h"

enum {
    LEAST_FROM = 13, /* log2 of the shortest message that may be divided */
    LEAST_CLASSES = 6,
    LEAST_LEVELS = 5,
    LEAST_GROUP = 16,
    LEAST_ROUNDS = 3,
    LEAST_PATIENCE = 160, /* messages of a level in a round */
    LEAST_LASTS = 8192,
    LEAST_RESTS = 65536, /* after a trial that told nothing */
    LEAST_WEIGHTS = 2048 /* messages at least between trials because of weights */
};
#define LEAST_DEFAULT (32 * 1024u) /* until it is measured, and of longer messages */

struct least_class {
    bool trial;
    bool over;                 /* the level has its sample of this round: on to the next */
    uint8_t level;             /* of the next message */
    uint8_t round;             /* of the trial */
    uint8_t chosen;            /* what the last trial found; LEAST_LEVELS: there was none */
    uint8_t parts;             /* stripes that the chosen level made then */
    uint8_t group;             /* messages of the sample so far */
    uint32_t asked, rest;      /* messages since the level, or the rest, began; how long it rests */
    uint64_t time, bytes;      /* of the sample */
    double best[LEAST_LEVELS]; /* shortest time of a byte; 0: none */
};

struct least {
    struct least_class classes[LEAST_CLASSES];
    uint32_t up;        /* the rails that all this was measured on */
    uint32_t run;       /* messages of one class and level that followed each other */
    uint16_t run_of;    /* which */
    uint32_t under_way; /* of this run */
    uint32_t others;    /* of runs before */
    uint32_t trials;    /* that have found something */
    uint64_t done_at;   /* the end of the last message, of any kind */
};

/* Travels with a message and is given back when that has arrived. */
struct least_ticket {
    uint64_t smallest; /* stripe */
    uint32_t run;
    bool counts; /* nothing else was under way when it began */
};

void least_open(struct least *l);

/* How finely to divide the next message of so many bytes over the rails `up` with these weights. `probe`: a rail that gets
 * nothing should get something, if only to be measured (adapt_probe). Each ticket is given back by least_done, or by
 * least_never when its time tells nothing. */
struct least_ticket least_next(struct least *l, uint64_t align, const double *weight, uint32_t up, bool probe,
                               uint64_t bytes);
void least_done(struct least *l, const struct least_ticket *t, uint64_t bytes, uint64_t started,
                uint64_t found);
void least_never(struct least *l, const struct least_ticket *t);

/* What was found for messages of this size: the smallest stripe; 0: nothing yet. UINT64_MAX: they stay whole. */
uint64_t least_found(const struct least *l, uint64_t bytes);

#endif
