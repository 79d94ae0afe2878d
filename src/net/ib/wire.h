/* wire.h: the format of the InfiniBand messages between two processes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_WIRE_H
#define FP_NET_IB_WIRE_H

#include <stdint.h>

#include "net/ib/device/device.h"
#include "net/rails/rail.h"
#include "net/transport.h"

#define IB_GRH_BYTES 40 /* global routing header before the data of a datagram */

#define IB_COPY 256 /* largest message in bytes that is sent inline */

#define IB_LANES 2 /* largest number of queue pairs of the primary rail; 1 without shared receive queues */

enum ib_type {
    IB_FRAME,        /* frame of the layer above; takes a credit or a ring slot */
    IB_CREDIT,       /* returns credits only; unordered */
    IB_WAKE,         /* the receiver must poll its rings; unordered */
    IB_QUERY,        /* struct ib_write_status: has the receiver seen that write's last byte? unordered */
    IB_ANSWER,       /* struct ib_write_status: the answer to IB_QUERY; unordered */
    IB_WRITE,        /* struct ib_redo_write: a silent write for the receiver to execute itself; unordered */
    IB_WRITTEN,      /* the write of IB_WRITE was executed, or its memory was released; unordered */
    IB_LEAVE,        /* struct ib_leave: the sender needs no more messages and ends soon; unordered */
    IB_RING_ON,      /* struct ib_ring_on: the receiver may write frames into this ring */
    IB_RING_OFF,     /* the receiver must write no more frames into the ring */
    IB_RING_STOPPED, /* the sender writes no more frames into the ring */
    IB_RAILS,        /* struct ib_rails_message: the sender's rails and its ends of the pairs (pairs.c) */
    IB_RESERVE,      /* struct ib_reserve_message: reservations of rails (lab/mechanisms/rails) */
    IB_CLOSE,        /* see policy/conn.h for CLOSE, AGREE and KEEP */
    IB_AGREE,
    IB_KEEP,
    IB_NOTHING, /* replaces a lost message that the next connection generation does not need */
    IB_TYPES
};
#define IB_UNORDERED                                                                       \
    (1u << IB_CREDIT | 1u << IB_WAKE | 1u << IB_QUERY | 1u << IB_ANSWER | 1u << IB_WRITE | \
     1u << IB_WRITTEN | 1u << IB_LEAVE)
#define IB_ANSWERS (1u << IB_ANSWER | 1u << IB_WRITTEN)
#define IB_FINAL   (1u << IB_CLOSE | 1u << IB_AGREE) /* a side sends no message after these */

/* Values of ib_head.flags. */
#define IB_WAITED 1 /* the frame had to wait for a credit */
#define IB_PAIRED 2 /* credits[0] belongs to the further rail that carries the message */

/* Precedes every message. All types but unordered ones count in `seq` (PSN in [Liu04 6.2.5]), by which the receiver puts the
 * channels of a connection in order. Every message returns credits. */
struct ib_head {
    uint16_t seq;
    uint8_t type;
    uint8_t flags;
    uint8_t credits[IB_LANES];
    uint16_t ring; /* slots of the receiver's ring that the sender has emptied */
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

/* Query and answer about a write of which the receiver polls the last byte (enum net_delivery_status). */
struct ib_write_status {
    uint64_t number;
    uint64_t seen;
};

/* A silent write (a write whose completion is not reported), as it was requested. */
struct ib_redo_write {
    uint64_t address;
    struct net_key key;
    uint32_t length, spare;
    char bytes[IB_COPY];
};

/* A rail of the sender. */
struct ib_rail_info {
    struct ib_address address;
    uint64_t network; /* rails with the same network are joined */
    uint32_t rate;    /* Mb/s, nominal */
    uint8_t adapter;  /* index of the rail's key in a net_key */
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
    uint8_t rails, pairs; /* pairs: 0 while the rails of the receiver are unknown */
    uint16_t frames : 15; /* receive buffers of each pair at the sender; 0: pairs carry no frames */
    uint16_t rings : 1;   /* slots of the sender's ring may be written over any pair */
    struct ib_rail_info rail[IB_RAILS_MAX];
    struct ib_pair_info pair[RAILS_MAX];
};

/* The body of IB_RESERVE: frames of the reservation protocol, as many as fit. */
#define IB_RESERVE_MOST        8
#define IB_RESERVE_FRAME_BYTES 20
struct ib_reserve_message {
    uint32_t count;
    uint32_t in_use; /* bit set of the rails with transfers to the receiver (FISHPLATE_LAB=IB_STRIPE=local) */
    uint8_t frame[IB_RESERVE_MOST][IB_RESERVE_FRAME_BYTES];
};

/* The part of a HELLO that only XRC uses. */
struct ib_hello_xrc {
    uint32_t qpn, psn;      /* the sender's initiator */
    uint32_t target;        /* target of the receiver's initiator; 0: not known yet */
    uint32_t srq[IB_LANES]; /* the sender's shared receive queues */
};

/* The datagram by which a process opens a connection (conn.h). */
struct ib_hello {
    uint32_t magic;
    uint32_t version;
    uint64_t job, to_job; /* jobs of the sender and of the receiver */
    uint32_t from, to;    /* ranks in these jobs */
    uint32_t mine, yours; /* connection generations; see policy/conn.h */
    uint32_t lanes;
    uint32_t receive;                      /* enum ib_receive */
    uint32_t qpn[IB_LANES], psn[IB_LANES]; /* with XRC qpn is the immediate of messages to the sender */
    struct ib_hello_xrc xrc;
    uint32_t posted[IB_LANES]; /* initial credits of the receiver */
    uint32_t scheme;           /* enum credit_scheme, the same at both ends */
    uint32_t rd_atomic;
    uint64_t bell; /* word in the sender's memory that the receiver sets before it sleeps */
    uint32_t bell_key;
    uint32_t ready;    /* conn_is_open() */
    uint16_t expected; /* next sequence number that the sender expects; all messages before it have arrived */
    uint8_t rail;      /* rail of the sender's queue pairs */
    uint8_t adapter;   /* index of the sender's keys in a net_key */
    uint32_t up;       /* bit set of the sender's rails whose ports are up */
    struct ib_address address;
};

#endif
