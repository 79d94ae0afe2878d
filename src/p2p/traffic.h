/* traffic.h: measures the cost of large messages by the path on which their bytes move, and chooses the path
 * of the next message. The receiver decides, with one tuner (tune/tune.h) for each class of sizes and kind of
 * traffic. Pure functions: the caller passes the times.
 *
 * Three kinds, because the best path differs by up to half between them on the recorded machines
 * (docs/tuning.md):
 * - isolated messages: one at a time, as in a ping-pong. A message is one sample.
 * - bursts: a message comes before the one ahead of it is complete, or right after. They share their time, so
 *   a batch of them takes the same path and is one sample: the time that each adds, and its bytes.
 * - exchanges: this rank has announced messages to the sender meanwhile; both processors are busy. Sampled as
 *   bursts are.
 *
 * Each receiver measures its own messages and decides for itself: no rank follows another.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_TRAFFIC_H
#define FP_P2P_TRAFFIC_H

#include "tune/tune.h"

/* Sent in frames; read by the receiver; written by the sender; read and written, a part each. */
enum path { PATH_PIECES, PATH_READ, PATH_WRITE, PATH_SPLIT, PATHS };
#define PATH_BIT(path) (1u << (path))

enum traffic_kind { TRAFFIC_ISOLATED, TRAFFIC_BURST, TRAFFIC_EXCHANGE, TRAFFIC_KINDS };

#define TRAFFIC_SIZES 12 /* classes by factors of two, from 4 KiB to 8 MiB and more */
/* Messages of a sample: at least TRAFFIC_BATCH, with none in progress then; at most TRAFFIC_BATCH_MOST. */
#define TRAFFIC_BATCH      16
#define TRAFFIC_BATCH_MOST 64

struct traffic_ticket {
    uint64_t began; /* ns */
    uint64_t bytes;
    uint32_t number; /* number of the message */
    struct tune_ticket tune;
    uint8_t size, kind;
    bool open; /* the cost is to be reported */
};

/* The key of a class and kind of messages. */
struct traffic_key {
    struct tune tune;         /* opened by the first message */
    struct tune_ticket batch; /* path of the messages of the present batch */
    uint64_t ns, bytes;       /* time and bytes of the complete messages of the next sample */
    uint32_t turn;            /* run of the tuner to which the sample belongs */
    uint8_t started, done;    /* messages of the batch; complete messages of the sample */
};

/* Statistics of a class, from which the kind of its next message is predicted. */
struct traffic_class {
    bool bursty;   /* messages of the class come in bursts */
    bool isolated; /* the last message began after the end of the one before, after a pause */
};

struct traffic {
    struct traffic_key keys[TRAFFIC_KINDS][TRAFFIC_SIZES];
    struct traffic_class classes[TRAFFIC_SIZES];
    uint64_t ended;     /* when the last message was complete, in ns */
    uint64_t last_cost; /* ns that the last message took, or added to those before */
    uint32_t messages;
    uint32_t under_way;
    uint8_t rule; /* enum path: candidate 0 */
};

void traffic_open(struct traffic *t, enum path rule);

/* Conditions that decide which paths are possible and worth trying. */
struct traffic_options {
    bool write;        /* the sender can write into the receiver's memory */
    bool cpu_moves;    /* processors move the bytes (transport_caps.cpu_moves) */
    bool software;     /* the adapter is a program: a processor moves the bytes */
    bool shared_cores; /* ranks share cores */
    bool exchange;     /* this rank has announced large messages to the sender, which is busy with them */
};
uint32_t traffic_list_paths(const struct traffic_options *o, uint64_t bytes);

/* The path for a message of `bytes` whose data can move now, one of `open` (a set of PATH_BIT, not empty).
 * Each ticket must be passed to traffic_end or traffic_cancel. `exchange`: messages of this rank are on their
 * way to the sender. */
enum path traffic_begin(struct traffic *t, uint64_t bytes, uint32_t open, bool exchange, uint64_t now,
                        struct traffic_ticket *ticket);

/* Reports that the message is complete. Its cost is the time since it began, or `work` ns if not 0: for ranks
 * that share cores, whose elapsed time includes that of other ranks. */
void traffic_end(struct traffic *t, struct traffic_ticket *ticket, uint64_t now, uint64_t work);

/* Closes the ticket without a cost: the message failed, or took another path. */
void traffic_cancel(struct traffic *t, struct traffic_ticket *ticket);

/* Bytes of a split message that the receiver reads. */
uint64_t traffic_read_share(const struct traffic_ticket *ticket);

/* A line for each key that was used: "64 KiB, isolated: split 5.37 us by cost, read 5.70 us; 120 of 4000
 * messages examined". */
size_t traffic_describe(const struct traffic *t, const char *place, char *out, size_t size);

#endif
