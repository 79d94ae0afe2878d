/* machine.c: the table of a machine's numbers: names, units, bounds, and the preset.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"

const struct machine machine_simple = {.copy_rate = 1,
                                       .reduce_rate = 1,
                                       .link_rate = 1,
                                       .link_ns = 10,
                                       .switch_ns = 100,
                                       .mtu = 1000,
                                       .buffers = 16,
                                       .radix = 8,
                                       .rails = 1,
                                       .retry_ns = 1000,
                                       .go_back = 1};

/* A cluster with 100 Gb/s InfiniBand, in round numbers that agree with data sheets and published
 * measurements: about 1 us for a small message between two nodes. No real machine has exactly these numbers;
 * --machine sets those of another one. */
const struct machine machine_preset = {
    .send_ns = 150,
    .receive_ns = 150,
    .message_ns = 60,
    .copy_rate = 10,
    .reduce_rate = 5,
    .local_ns = 200,
    .eager_bytes = 16384,
    .link_rate = 12.5,
    .link_ns = 100,
    .switch_ns = 100,
    .bus_rate = 0,
    .bus_ns = 200,
    .bus_shared = 0,
    .mtu = 4096,
    .header_bytes = 30,
    .buffers = 16,
    .radix = 36,
    .rails = 1,
    .bus_node = 0,
    .doorbell_ns = 0,
    .lmc = 0,
    .loss = 0,
    .retry_ns = 50000,
    .go_back = 1,
    .barrier_ns = 100,
    .ack_ns = 40,
};

/* InfiniHost adapters on a 64-bit, 133 MHz PCI-X bus, 10 Gb/s links, a switch of 8 ports: processor times,
 * bus and links add up to the published latency of 6.8 us and bandwidth of 871 MB/s [Liu04 table 6.2]. */
static const struct machine liu2004 = {
    .send_ns = 1300,
    .receive_ns = 1300,
    .message_ns = 400,
    .copy_rate = 1.5,
    .reduce_rate = 0.7,
    .local_ns = 1000,
    .eager_bytes = 32768,
    .link_rate = 1,
    .link_ns = 150,
    .switch_ns = 200,
    .bus_rate = 0.885,
    .bus_ns = 1800,
    .bus_shared = 1,
    .mtu = 2048,
    .header_bytes = 30,
    .buffers = 8,
    .radix = 24,
    .rails = 1,
    .retry_ns = 50000,
    .go_back = 1,
    .barrier_ns = 200,
    .ack_ns =
        250, /* fitted: 128 co-roots are best in the paper's design, as for all values from 165 to 330 */
    .multicast_ns = 11420,     /* fitted: a multicast to 1024 nodes takes 20.0 us [Liu04 11.1.3] ... */
    .multicast_byte_ns = 8.69, /* ... and 40.0 us with 1836 bytes */
};

bool machine_set_preset(struct machine *m, const char *name)
{
    if (strcmp(name, "ib100") == 0)
        *m = machine_preset;
    else if (strcmp(name, "liu2004") == 0)
        *m = liu2004;
    else
        return false;
    return true;
}

static const struct {
    const char *name, *unit, *doc;
    size_t at;
    double min, max;
} numbers[] = {
#define NUMBER(member, unit, doc, min, max)                            \
    {                                                                  \
#member, unit, doc, offsetof(struct machine, member), min, max \
    }
    NUMBER(send_ns, "ns", "processor time to start a send", 0, 1e9),
    NUMBER(receive_ns, "ns", "processor time to receive a message that has arrived", 0, 1e9),
    NUMBER(message_ns, "ns", "time of the adapter from one message to the next (gap)", 0, 1e9),
    NUMBER(copy_rate, "GB/s", "copy rate of one core", 1e-6, 1e6),
    NUMBER(reduce_rate, "GB/s", "rate at which one core combines two operands of a reduction", 1e-6, 1e6),
    NUMBER(local_ns, "ns", "latency of an empty message within a node", 0, 1e9),
    NUMBER(eager_bytes, "B", "largest eager message; longer messages wait for their receiver (rendezvous)", 0,
           1e12),
    NUMBER(link_rate, "GB/s", "rate of a cable", 1e-6, 1e6),
    NUMBER(link_ns, "ns", "delay of a cable and the ports at its ends", 0, 1e9),
    NUMBER(switch_ns, "ns", "delay of a switch, first byte in to first byte out", 0, 1e9),
    NUMBER(bus_rate, "GB/s", "rate between memory and adapter; 0: unlimited", 0, 1e6),
    NUMBER(bus_ns, "ns", "delay between memory and adapter", 0, 1e9),
    NUMBER(bus_shared, "", "1: both directions share the bus's rate", 0, 1),
    NUMBER(bus_turn_ns, "ns", "time in which a shared bus changes its direction", 0, 1e9),
    NUMBER(mtu, "B", "largest data size of a packet", 64, 1e9),
    NUMBER(header_bytes, "B", "header size of each packet", 0, 1e6),
    NUMBER(buffers, "", "packets that fit into the receive buffer of a link", 1, 64),
    NUMBER(lanes, "",
           "0: packets share links; else messages hold one of this number of lanes of each link (worms)", 0,
           16),
    NUMBER(adaptive, "", "1: switches take the way up that is least busy; 0: that of the routing table", 0,
           1),
    NUMBER(radix, "", "ports of a switch", 2, 4096),
    NUMBER(rails, "", "adapters of a node, each with its own network", 1, 16),
    NUMBER(bus_node, "", "1: all adapters of a node share one bus", 0, 1),
    NUMBER(doorbell_ns, "ns", "from the write to the doorbell until the adapter begins", 0, 1e9),
    NUMBER(lmc, "", "2^lmc LIDs for each node; messages take turns with their routes", 0, 7),
    NUMBER(loss, "", "share of packets that each link loses", 0, 0.5),
    NUMBER(retry_ns, "ns",
           "until a packet of a reliable connection is sent again that was lost and not requested", 1, 1e9),
    NUMBER(go_back, "", "1: a lost packet and all that followed it are sent again; 0: it alone", 0, 1),
    NUMBER(cores, "", "processors that all ranks share (virtual nodes); 0: one for each rank", 0, 64),
    NUMBER(turn_ns, "ns", "time in which such a processor changes from one rank to another", 0, 1e9),
    NUMBER(ack_ns, "ns",
           "processor time to handle an acknowledgement of a multicast, which is written into memory", 0,
           1e9),
    NUMBER(multicast_ns, "ns",
           "how much longer the network takes over a multicast packet than over a message", 0, 1e9),
    NUMBER(multicast_byte_ns, "ns", "... for each byte of the packet", 0, 1e6),
    NUMBER(barrier_ns, "ns", "barrier logic of a switch: last arrival to passing it on", 0, 1e9),
};
enum { NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };

bool machine_set(struct machine *m, const char *name, const char *value)
{
    for (int i = 0; i < NUMBERS; i++) {
        char *end;
        if (strcmp(numbers[i].name, name) != 0)
            continue;
        double number = strtod(value, &end);
        if (end == value || *end || !(number >= numbers[i].min && number <= numbers[i].max))
            return false;
        memcpy((char *)m + numbers[i].at, &number, sizeof(number));
        return true;
    }
    return false;
}

bool machine_set_pair(struct machine *m, const char *text)
{
    char name[64];
    size_t len = strcspn(text, "=");
    if (text[len] != '=' || len >= sizeof(name))
        return false;
    memcpy(name, text, len);
    name[len] = 0;
    return machine_set(m, name, text + len + 1);
}

bool machine_read(struct machine *m, FILE *in, char *why, size_t size)
{
    char line[512], name[64], value[64];
    for (int n = 1; fgets(line, sizeof(line), in); n++) {
        line[strcspn(line, "#\n")] = 0;
        int words = sscanf(line, "%63s %63s", name, value);
        if (words <= 0)
            continue;
        if (words < 2 || !machine_set(m, name, value)) {
            snprintf(why, size, "line %d, '%.60s': unknown parameter, or its value is out of range", n, line);
            return false;
        }
    }
    return true;
}

void machine_print(const struct machine *m, FILE *out)
{
    for (int i = 0; i < NUMBERS; i++) {
        double number;
        memcpy(&number, (const char *)m + numbers[i].at, sizeof(number));
        cli_print_text(numbers[i].doc,
                       fprintf(out, "  %-13s %10g %-4s", numbers[i].name, number, numbers[i].unit), 33, out);
    }
}
