/* machine.h: parameters of the simulated machine: processors, adapters, links, switches. Read from a text
 * file of lines "name value unit", or taken from a preset.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_MACHINE_H
#define FP_SIM_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct graph;

/* Times in nanoseconds, rates in bytes per nanosecond (gigabytes per second). */
struct machine {
    double send_ns, receive_ns; /* processor time to start a send and to receive a message that has arrived */
    double message_ns;          /* adapter: time between two messages of any size */
    double copy_rate;           /* rate at which one core copies, in memory and to ranks of its node */
    double reduce_rate;         /* rate at which one core combines two operands */
    double local_ns;            /* time of an empty message to a rank of the same node */
    double eager_bytes;         /* longer messages use rendezvous */
    double link_rate, link_ns;  /* rate and delay of a cable with its two ports */
    double switch_ns;           /* delay from the first byte in to the first byte out */
    double bus_rate, bus_ns;    /* between memory and adapter; rate 0: unlimited */
    double bus_shared;          /* not 0: both directions share the bus rate */
    double bus_turn_ns;         /* time in which a shared bus changes its direction */
    double mtu, header_bytes;   /* largest packet, and bytes of a packet in addition to its data */
    double buffers; /* packets that fit into a link's buffers; further packets wait in front of it */
    double
        /* not 0: number of lanes of a cable, one of which a message holds on each cable of its route
         * (lanes.c) */
        lanes;
    double
        /* not 0: switches select the least busy link up for a packet, not the link of the routing table */
        adaptive;
    double radix;       /* ports of a switch */
    double rails;       /* adapters of a node, each with a network of its own */
    double bus_node;    /* not 0: all adapters of a node share one bus */
    double doorbell_ns; /* time from the processor's write until the adapter begins with the message */
    double lmc;  /* a node has 2^lmc LIDs, each with routes of its own; its messages use the LIDs in turn */
    double loss; /* fraction of packets that a link loses */
    double
        /* time until an adapter repeats a lost packet of a reliable connection if the receiver does not
         * request it */
        retry_ns;
    double go_back;    /* not 0: repeat all packets after the lost one too (go-back-N), as InfiniBand does */
    double barrier_ns; /* switch with barrier logic: time from the last arrival to forwarding */
    double ack_ns;     /* processor time to handle an acknowledgement that an adapter has written to memory */
    double multicast_ns;      /* additional time of adapters and switches for a multicast packet */
    double multicast_byte_ns; /* additional time for each byte of a multicast packet */
    double
        /* processors that all ranks of a job share, like virtual nodes of one machine; 0: one for each
         * rank */
        cores;
    double turn_ns;               /* time to change such a processor from one rank to another */
    const struct graph *topology; /* NULL: a fat tree */
};

extern const struct machine machine_simple; /* for tests: 1 byte per nanosecond, no headers, round times */
extern const struct machine machine_preset; /* machine.c names the sources of its numbers */

/* Sets a machine of published values by its name: ib100 is the preset, liu2004 the nodes of [Liu04 6, 7].
 * Returns false if the name is unknown. */
/* Additional time of a multicast packet compared with a message. */
static inline double machine_multicast_ns(const struct machine *m, double bytes)
{
    return m->multicast_ns + bytes * m->multicast_byte_ns;
}

bool machine_set_preset(struct machine *m, const char *name);
/* Reads settings, which replace the present ones. On failure returns false and stores in `why` a message with
 * the line number. */
bool machine_read(struct machine *m, FILE *in, char *why, size_t size);
/* Returns false if the name is unknown or the value is out of range. */
bool machine_set(struct machine *m, const char *name, const char *value);
bool machine_set_pair(struct machine *m, const char *text); /* "name=value" */
void machine_print(const struct machine *m, FILE *out);

#endif
