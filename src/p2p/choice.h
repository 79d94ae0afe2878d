/* choice.h: chooses how a large message moves, when there are several ways: in pieces through frames, read by
 * the receiver, written by the sender, or split between the two. Which is fastest depends on the machine, on
 * the size, on the number of messages in flight and on whether the other rank has a processor, so the
 * receiver measures.
 *
 * A pure state machine: questions and times in, ways out. Every question returns a ticket, and the cost of
 * the message is reported with that ticket, so that a measurement always belongs to the right messages.
 *
 * A single message is measured by itself. Messages of a window share their time, so all messages of a burst
 * take the same way, and the burst is measured.
 *
 * Messages that cross those of the receiver find both processors busy, and what one rank wins may be the other's loss. So of
 * two ranks one leads: it measures such bursts, of a single message too, and the other one goes the same way.
 *
 * Messages that go to and fro one by one (echo.h) leave the caches of both ranks in a state that suits their way: what a way
 * costs one rank depends on how the other one's messages move. Here too one rank leads, and counts what both pay.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_CHOICE_H
#define FP_P2P_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

enum way { WAY_PIECES, WAY_READ, WAY_WRITE, WAY_SPLIT, WAYS };

#define WAY_BIT(way) (1u << (way))

/* Sizes by factors of two, from 4 KiB to 8 MiB and more. */
#define CHOICE_SIZES 12

#define CHOICE_DROPS 4 /* messages of a round of echoes, at most, that are taken to be disturbed */

enum choice_flow { CHOICE_LONE, CHOICE_WINDOW, CHOICE_CROSS, CHOICE_ECHO, CHOICE_FLOWS };

/* Whether messages of this kind are measured in rounds, and not in bursts. */
static inline bool choice_one_by_one(uint8_t flow)
{
    return flow == CHOICE_LONE || flow == CHOICE_ECHO;
}

struct choice_ticket {
    uint64_t began; /* ns */
    uint64_t bytes;
    uint32_t number; /* of all questions (lone, echo), or of the burst */
    uint32_t its;    /* echo: ns that the message to the other rank took it, if the caller knows; else 0 */
    uint8_t size, flow, way;
    bool open; /* the policy waits to be told */
};

/* One way for messages of one size in one kind of traffic. */
struct way_cost {
    uint32_t cost;    /* ns for 64 KiB, without stalls; meaningful once there are samples */
    uint32_t last;    /* choice_class.asked when this way was told about last */
    uint16_t samples; /* stays at its highest value, like the next */
    uint16_t tried;   /* ahead of `samples` while messages are under way */
    bool inherited;   /* the cost is that of a neighbouring class: enough to leave the way out for now */
};

/* Messages of a window, or crossing ones, that follow each other without a pause. */
struct choice_burst {
    uint64_t began, ended, bytes, work;
    uint32_t number, asked, done;
    uint8_t way;
    bool by_work;
};

/* Lone messages, or echoes, that go one way, decided together and measured together. */
struct choice_round {
    uint64_t ns, bytes;                    /* of those that count */
    uint8_t way, open, left, skip, wanted; /* to be sent, not to be counted, to be counted */
    uint8_t drop;                          /* ... of which so many are left out in the end, the dearest: */
    struct {
        uint64_t ns, bytes;
    } worst[CHOICE_DROPS];
};

struct choice_class {
    struct way_cost ways[WAYS];
    struct choice_round round;
    struct choice_burst burst;
    uint64_t saved; /* ns that may be spent on looking at other ways: a small part of all that was spent */
    uint32_t asked;
    uint32_t level; /* cost of the best way when the others were tried last; 0: some were not tried yet */
    uint32_t burst_cost; /* of the last burst; 0: it went another way than the next */
    uint8_t run;         /* bursts in a row that went one way, each clearly cheaper than the one before */
    uint8_t falls; /* how often the best was found much cheaper or dearer, and the others were tried again */
    uint8_t best;  /* a way */
    uint8_t first; /* a way + 1: windows went that way first, and it is to be tried again; 0: none */
    uint8_t share; /* of a split message that the receiver reads, in 1/CHOICE_SHARES; 0: not known yet */
    bool used;
    bool bursty; /* windows: a message that comes after a pause is expected to be the first of several */
};

/* Times when the other rank was not there. They are a matter of the way and not of the size: a way that needs
 * both ranks to run stalls whenever one does not. */
struct choice_stall {
    uint64_t ns;
    uint32_t messages;
};

#define CHOICE_SHARES 64

/* All zero is a new one. */
struct choice {
    struct choice_class classes[CHOICE_FLOWS][CHOICE_SIZES];
    struct choice_stall stalls[WAYS];
    uint64_t ended;     /* when the last message was complete */
    uint64_t last_cost; /* ... and what it cost */
    uint32_t asked;
    uint32_t under_way;
};

/* One of the ways in `open` (a set of WAY_BIT, not empty) for a message of `bytes` whose data can move now.
 * Ways that nothing is known of are tried, `first` before all others. `flow`: CHOICE_CROSS or CHOICE_ECHO when this rank
 * leads such messages; CHOICE_LONE: whether it is one of a window shows by itself. */
enum way choice_ask(struct choice *c, uint64_t bytes, unsigned open, enum way first, enum choice_flow flow,
                    uint64_t now, struct choice_ticket *ticket);

/* The way + 1 that messages of this size go at present, CHOICE_CROSS or CHOICE_ECHO, to be told to the rank that
 * follows; 0: none did. */
uint8_t choice_told(const struct choice *c, uint64_t bytes, enum choice_flow flow);

/* The ticket of such a message that goes the way that was told. Nothing is learned from it but its shares. */
struct choice_ticket choice_follow(uint64_t bytes, enum way way, enum choice_flow flow, uint64_t now);

/* Sizes of one class share what is learned. */
uint8_t choice_size(uint64_t bytes);

/* The message is complete. It has cost the time since it was asked for. */
void choice_learn(struct choice *c, struct choice_ticket *ticket, uint64_t now);

/* The same where ranks take turns on their processors: the time would mostly be the others' turns, so the
 * caller says how much work the message was. */
void choice_learn_work(struct choice *c, struct choice_ticket *ticket, uint64_t now, uint64_t work);

/* The message failed, or went another way. */
void choice_drop(struct choice *c, struct choice_ticket *ticket);

/* Whether all ways that were open to this message have been tried, and it goes the best one. */
bool choice_settled(const struct choice *c, const struct choice_ticket *ticket, unsigned open);

/* A split message (of at least two bytes): how many of them the receiver reads, whole pages if possible; and how
 * long the two took. */
uint64_t choice_share(const struct choice *c, const struct choice_ticket *ticket);
void choice_shared(struct choice *c, const struct choice_ticket *ticket, uint64_t mine, uint64_t read_ns,
                   uint64_t write_ns);

#endif
