/* wire.h: the format of the messages between two processes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_WIRE_H
#define FP_NET_IB_WIRE_H

#include <stdint.h>

#include "net/ib/device/device.h"
#include "net/rails/rail.h"
#include "net/transport.h"

#define IB_GRH_BYTES 40 /* before the data of a datagram */

#define IB_COPY 256 /* what is sent inline is at most so long */

#define IB_LANES 2 /* at most; one without shared receive queues */

enum ib_type {
    IB_FRAME,  /* a frame of the layer above; takes a credit (or a ring slot) */
    IB_CREDIT, /* nothing but credits; unordered */
    IB_WAKE,   /* look at your rings; unordered */
    IB_QUERY, /* struct ib_write_status: has the end of that write been seen? its connection failed; unordered */
    IB_ANSWER, /* struct ib_write_status: the answer; unordered */
    IB_WRITE, /* struct ib_redo_write: a silent write whose connection failed, for its receiver to do; unordered */
    IB_WRITTEN,      /* it has, or has given that memory up; unordered */
    IB_LEAVE,        /* I need nothing more and end soon: when I am gone nothing is wrong; unordered */
    IB_RING_ON,      /* struct ib_ring_on: you may write frames there */
    IB_RING_OFF,     /* write no more */
    IB_RING_STOPPED, /* I shall write no more */
    IB_RAILS,        /* struct ib_rails_message: what I know and have of further rails (join.h) */
    IB_RESERVE, /* struct ib_reserve_message: rails that are asked for, granted, and free again (lab/mechanisms/rails) */
    IB_CLOSE, /* conn.h */
    IB_AGREE,
    IB_KEEP,
    IB_NOTHING, /* in the place of a message that a broken connection lost and nobody needs any more */
    IB_TYPES
};
#define IB_UNORDERED                                                                       \
    (1u << IB_CREDIT | 1u << IB_WAKE | 1u << IB_QUERY | 1u << IB_ANSWER | 1u << IB_WRITE | \
     1u << IB_WRITTEN | 1u << IB_LEAVE)
#define IB_ANSWERS (1u << IB_ANSWER | 1u << IB_WRITTEN)
#define IB_FINAL   (1u << IB_CLOSE | 1u << IB_AGREE) /* what ends a connection */

#define IB_WAITED 1 /* flags: this frame had to wait for a credit */
#define IB_PAIRED 2 /* it travels over a further rail: credits[0] are those of that pair (spread.h) */

/* Before everything that is sent. All but unordered types count in seq (the paper's PSN, 6.2.5), so that the
 * receiver can put the channels of a connection in order. Credits ride on everything. */
struct ib_head {
    uint16_t seq;
    uint8_t type;
    uint8_t flags;
    uint8_t credits[IB_LANES];
    uint16_t ring; /* slots of your ring that are free again */
};
_Static_assert(sizeof(struct ib_head) == 8, "head and frame header fill half a cache line");

struct ib_frame {
    struct ib_head head;
    struct frame_header header;
    char payload[];
};

struct ib_ring_on {
    uint64_t address;
    uint32_t rkey[IB_ADAPTERS_MAX];
    uint32_t slots, slot_size;
};

/* The state of a write whose receiver polls the last byte (net_fate). */
struct ib_write_status {
    uint64_t number;
    uint64_t seen;
};

/* A silent write (without notification), as it was requested. */
struct ib_redo_write {
    uint64_t address;
    struct net_key key;
    uint32_t length, spare;
    char bytes[IB_COPY];
};

/* A rail of the sender. */
struct ib_rail_info {
    struct ib_address address;
    uint64_t network; /* rails are joined where this is the same */
    uint32_t rate;    /* Mb/s, nominal */
    uint8_t adapter;  /* place of its key in a net_key */
    uint8_t up;
    uint16_t rd_atomic;
};

/* The sender's end of a pair of rails (joint.h). */
struct ib_pair_info {
    uint32_t generation;
    uint32_t qpn : 24, made : 1, joined : 1, spare : 6;
    uint32_t psn;
};

/* The body of IB_LEAVE. */
struct ib_leave {
    uint32_t awaits; /* the sender waits for the LEAVE of the receiver */
};

/* The body of IB_RAILS. */
struct ib_rails_message {
    uint8_t rails, pairs; /* pairs: 0 while the peer's rails are not known */
    uint16_t frames : 15; /* receive buffers that each pair has; 0: pairs carry no frames */
    uint16_t rings : 1;   /* slots of my ring may be written over any pair */
    struct ib_rail_info rail[IB_RAILS_MAX];
    struct ib_pair_info pair[RAILS_MAX];
};

/* The body of IB_RESERVE: frames of reservations; those that find no room go with the next message. */
#define IB_RESERVE_MOST        8
#define IB_RESERVE_FRAME_BYTES 20
struct ib_reserve_message {
    uint32_t count;
    uint32_t in_use; /* rails that carry transfers with the receiver now: FISHPLATE_LAB=IB_STRIPE=local */
    uint8_t frame[IB_RESERVE_MOST][IB_RESERVE_FRAME_BYTES];
};

/* Of XRC: the initiator of the sender, the target of that of the receiver (0: not known yet), and the sender's receive queues. */
struct ib_hello_xrc {
    uint32_t qpn, psn, target;
    uint32_t srq[IB_LANES];
};

/* The datagram by which a process opens a connection (conn.h). */
struct ib_hello {
    uint32_t magic;
    uint32_t version;
    uint64_t job, to_job; /* the sender's, and that of who is meant */
    uint32_t from, to;    /* ranks there */
    uint32_t mine, yours;
    uint32_t lanes;
    uint32_t receive;                      /* enum ib_receive */
    uint32_t qpn[IB_LANES], psn[IB_LANES]; /* with XRC qpn is the immediate of messages to the sender */
    struct ib_hello_xrc xrc;
    uint32_t posted[IB_LANES]; /* credits to begin with */
    uint32_t scheme;           /* both must do the same sums */
    uint32_t rd_atomic;
    uint64_t bell;
    uint32_t bell_key;
    uint32_t ready;       /* conn_ready */
    uint32_t ring_by_imm; /* frames in my ring must be announced by an immediate */
    uint16_t expected;    /* the seq that I expect next: what came before it has arrived */
    uint8_t rail;         /* of the sender, where its queue pairs are */
    uint8_t adapter;      /* place of its keys in a net_key */
    uint32_t up;          /* rails of the sender whose ports are up, a bit each */
    struct ib_address address;
    struct ib_address alternate; /* another way here, or the same */
};

#endif
