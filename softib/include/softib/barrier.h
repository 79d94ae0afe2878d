/* barrier.h: barrier logic in the switch [Hoefler05 3.1]: a bit array of 2I lines and N+1 columns and ten
 * packet types; every packet is repeated until it is acknowledged. Barriers are the only extension of
 * verbs in softib. The switch and the host end are pure state machines, whose inputs are packets and time
 * and whose outputs are packets. softib has one switch in each fabric and carries its packets;
 * `switch_loss=` in SOFTIB_FABRIC drops some of them.
 *
 * In addition to the paper, a packet contains the number of its round: without it, a repeated barrierReached
 * whose acknowledgement was lost would count for the next barrier.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_BARRIER_H
#define SOFTIB_BARRIER_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SOFTIB_SWITCH_PORTS     1024 /* N of [Hoefler05]: ports of the switch */
#define SOFTIB_SWITCH_BARRIERS  128  /* I of [Hoefler05]: barriers in use at a time */
#define SOFTIB_SWITCH_REPEAT_NS 500000ull

enum softib_barrier_type { /* packet types, encoded as in [Hoefler05] table 3.1 */
                           SOFTIB_GET_ID = 1,
                           SOFTIB_GET_ID_ACK = 2,
                           SOFTIB_WANT_PARTICIPATE = 3,
                           SOFTIB_WANT_PARTICIPATE_ACK = 4,
                           SOFTIB_LEAVE = 5, /* 5 and 6 are unused in table 3.1: softib's extension */
                           SOFTIB_LEAVE_ACK = 6,
                           SOFTIB_BARRIER_REACHED = 7,
                           SOFTIB_BARRIER_REACHED_ACK = 8,
                           SOFTIB_BARRIER_READY = 9,
                           SOFTIB_BARRIER_READY_ACK = 10,
                           SOFTIB_FREE_BARRIER = 11,
                           SOFTIB_FREE_BARRIER_ACK = 12,
};

struct softib_packet {
    uint8_t type;  /* enum softib_barrier_type, 4 bits */
    uint8_t id;    /* barrier number; in a GET_ID_ACK SOFTIB_SWITCH_BARRIERS: no barrier is free */
    uint16_t port; /* switch port of the host that sends or receives the packet */
    uint32_t round;
};

/* The switch. Line i contains the ports that have reached barrier i, line i+I the ports that do not
 * participate. switch_is_barrier_complete computes the paper's column N (barrier i is complete). */
struct softib_switch {
    uint32_t ports;
    uint64_t line[2 * SOFTIB_SWITCH_BARRIERS][SOFTIB_SWITCH_PORTS / 64];
    uint64_t unacked[SOFTIB_SWITCH_BARRIERS][SOFTIB_SWITCH_PORTS / 64]; /* barrierReady sent, no ACK yet */
    uint64_t repeat_at[SOFTIB_SWITCH_BARRIERS];
    uint32_t round[SOFTIB_SWITCH_BARRIERS];
    uint32_t serial[SOFTIB_SWITCH_BARRIERS]; /* serial of the getId request; repetitions get the same id */
    uint16_t owner[SOFTIB_SWITCH_BARRIERS];
    uint8_t used[SOFTIB_SWITCH_BARRIERS];
    /* For a lower switch (`switches=`), which participates in barriers of the upper switch like a host. */
    uint8_t below;
    uint16_t up_port;                       /* port of this switch at the upper switch */
    uint8_t up[SOFTIB_SWITCH_BARRIERS];     /* enum softib_up */
    uint64_t up_at[SOFTIB_SWITCH_BARRIERS]; /* time to repeat the packet to the upper switch */
};

enum softib_up {
    SOFTIB_UP_OUT,     /* this switch does not participate */
    SOFTIB_UP_JOINING, /* wantParticipate sent */
    SOFTIB_UP_IN,
    SOFTIB_UP_REACHED, /* barrierReached sent, not acknowledged */
    SOFTIB_UP_ACKED,   /* barrierReached sent and acknowledged */
    SOFTIB_UP_LEAVING,
};

typedef void (*softib_emit)(void *arg, const struct softib_packet *p);

void softib_switch_init(struct softib_switch *s, uint32_t ports);
void softib_switch_packet(struct softib_switch *s, const struct softib_packet *p, uint64_t now_ns,
                          softib_emit emit, void *arg);
/* A lower switch has only hosts at its ports; the upper switch has only lower switches. The functions handle
 * packets of hosts and answers of the upper switch. `up` sends a packet to the upper switch and may call
 * softib_leaf_answer before it returns. Only the upper switch handles getId and freeBarrier. */
#define SOFTIB_LEAVES_MAX 16
void softib_leaf_init(struct softib_switch *s, uint32_t ports, uint16_t up_port);
void softib_leaf_packet(struct softib_switch *s, const struct softib_packet *p, uint64_t now_ns,
                        softib_emit emit, softib_emit up, void *arg);
void softib_leaf_answer(struct softib_switch *s, const struct softib_packet *p, uint64_t now_ns,
                        softib_emit emit, softib_emit up, void *arg);
void softib_leaf_tick(struct softib_switch *s, uint64_t now_ns, softib_emit emit, softib_emit up, void *arg);

/* Repeats packets that were not acknowledged in time. */
void softib_switch_tick(struct softib_switch *s, uint64_t now_ns, softib_emit emit, void *arg);

/* The host end of one barrier. Each process is a host with a port and participates in a barrier once. */
struct softib_barrier;

/* Rank 0 requests a barrier from the switch and sends *id to the other ranks; -1 with errno EAGAIN if all
 * barriers are in use. */
int softib_barrier_get_id(uint32_t *id);
/* Joins the barrier. Every rank calls it, including rank 0. Returns when the switch has acknowledged. */
struct softib_barrier *softib_barrier_join(uint32_t id);
/* Enters the barrier; softib_barrier_test then returns whether all ranks have entered. softib_barrier_wait
 * does both. */
int softib_barrier_enter(struct softib_barrier *b);
int softib_barrier_test(struct softib_barrier *b);
int softib_barrier_wait(struct softib_barrier *b);
/* Leaves the barrier; returns when the switch has acknowledged. The barrier is free when the last rank has
 * left. */
void softib_barrier_leave(struct softib_barrier *b);
/* Frees a barrier that no rank has joined. */
int softib_barrier_free(uint32_t id);

/* A separate barrier network [Hoefler05 3.2]: each host has two wires, `arrive` to a hub and `released` from
 * the hub. The hub sets `released` when every `arrive` is set, and clears `released` when every `arrive` is
 * clear; a host toggles its wire for every barrier. Wires are reliable, so that packets are neither
 * acknowledged nor repeated. There is one barrier, for one job at a time. With wire=shm the wires are words
 * in shared memory; with wire=tcp there is no hub.
 *
 * With `hub=1` in SOFTIB_FABRIC every node has the device softwire0 in addition to its HCAs. Verbs have no
 * operation for a wire, so the device has no ports, queues or memory; the functions below use the device
 * after ibv_open_device. */
struct softib_hub {
    uint32_t job;      /* number of the job that uses the hub; 0: none */
    uint32_t released; /* level of the wire `released` */
    uint64_t plugged[SOFTIB_SWITCH_PORTS / 64], arrive[SOFTIB_SWITCH_PORTS / 64];
};

/* The hub's state machine, as pure functions. */
void softib_hub_wire(struct softib_hub *h, uint32_t port, bool plugged);
void softib_hub_level(struct softib_hub *h, uint32_t port, bool up);

/* Returns the number of hosts that can plug in; -1 with errno EOPNOTSUPP: the device has no wires. */
struct ibv_context;
int softib_wires_hosts(struct ibv_context *device);

/* The host end of the barrier network. One process acquires the hub and sends the job number to the others.
 * Each process then plugs in its wires; no process may enter a barrier before all have plugged in, and no
 * process may leave before its last barrier is complete. A process that dies remains plugged in: a barrier
 * that it has not entered never completes, and the others must leave, too. The hub is free again when all its
 * processes have left or died. -1 with errno EBUSY: another job uses the hub; EOPNOTSUPP: the device has no
 * wires. */
struct softib_wires;
int softib_wires_take(struct ibv_context *device, uint32_t *job);
/* Releases the hub before any process has plugged in. */
int softib_wires_give_back(struct ibv_context *device, uint32_t job);
struct softib_wires *softib_wires_plug(struct ibv_context *device, uint32_t job);
int softib_wires_enter(struct softib_wires *w);
int softib_wires_test(struct softib_wires *w); /* 1: all processes have entered */
/* Leaves the hub, which is free when the last process has left. */
void softib_wires_unplug(struct softib_wires *w);

#ifdef __cplusplus
}
#endif
#endif
