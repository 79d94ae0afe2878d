/* machine.h: the machine that is simulated, as numbers: processors, adapters, links, switches. Read from a text file of lines
 * "name value unit", or taken from a preset.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_MACHINE_H
#define FP_SIM_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct graph;

/* Times in nanoseconds, rates in bytes a nanosecond, which is gigabytes a second. */
struct machine {
    double send_ns, receive_ns; /* processor time to start a send and to take a message that has arrived */
    double message_ns;          /* adapter: from one message to the next, whatever their size */
    double copy_rate;           /* one core copies, in memory and to ranks of its node */
    double reduce_rate;         /* one core combines two operands */
    double local_ns;            /* a message of no bytes to a rank of the same node */
    double eager_bytes;         /* longer messages wait until the receiver has requested them */
    double link_rate, link_ns;  /* of a cable and the ports at its ends */
    double switch_ns;           /* from the first byte in to the first byte out */
    double bus_rate, bus_ns;    /* between memory and adapter; rate 0: never a limit */
    double bus_shared;          /* not 0: both directions share the rate */
    double bus_turn_ns;         /* of such a bus: from one direction to the other */
    double mtu, header_bytes;   /* largest packet, and what each carries beside its data */
    double buffers; /* packets that fit into the receiving end of a link; more must wait in front of it */
    double
        lanes; /* not 0: a message holds one of this number of lanes of each cable on its route (lanes.c) */
    double
        adaptive; /* not 0: switches send a packet up the way that is least busy, not the routing table's */
    double radix; /* ports of a switch */
    double rails; /* adapters of a node, each with a network of its own */
    double bus_node;    /* not 0: all adapters of a node share one bus */
    double doorbell_ns; /* from the processor's write until the adapter begins with the message */
    double lmc;  /* a node has 2^lmc LIDs, each with routes of its own; messages take turns with them */
    double loss; /* the share of packets that a link loses */
    double
        retry_ns; /* until an adapter sends a lost packet of a reliable connection again, if the receiver does not request it */
    double go_back;    /* not 0: and all that followed it (go-back-N), as InfiniBand does */
    double barrier_ns; /* a switch with barrier logic: from the last arrival to passing it on */
    double ack_ns; /* processor time to handle an acknowledgement that an adapter has written into memory */
    double
        multicast_ns; /* how much longer adapters and switches take over a multicast packet than over a message */
    double multicast_byte_ns; /* ... for each byte of it */
    double
        cores; /* processors that all ranks of a job share, as virtual nodes of one machine do; 0: one for each rank */
    double turn_ns;               /* of such a processor: from one rank to another */
    const struct graph *topology; /* NULL: a fat tree */
};

extern const struct machine
    machine_plain; /* for tests: 1 byte a nanosecond, no headers, times that are easy to add up */
extern const struct machine machine_preset; /* see machine.c for where its numbers come from */

/* Sets a machine of published values by its name: ib100 is the preset, liu2004 the nodes of [Liu04 6, 7]. False: no such name. */
/* How much longer a multicast packet takes than a message. */
static inline double machine_multicast_ns(const struct machine *m, double bytes)
{
    return m->multicast_ns + bytes * m->multicast_byte_ns;
}

bool machine_named(struct machine *m, const char *name);
/* Reads settings that replace the present ones. False: `why` has a sentence that names the line. */
bool machine_read(struct machine *m, FILE *in, char *why, size_t size);
/* False when the name is not known or the value is out of its bounds. */
bool machine_set(struct machine *m, const char *name, const char *value);
bool machine_set_pair(struct machine *m, const char *text); /* "name=value" */
void machine_print(const struct machine *m, FILE *out);

#endif
