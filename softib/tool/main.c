/* main.c: softib: runs programs on the software HCA, and shows and changes the state of their fabric.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tool.h"
#include "base/nearest.h"
#include "fabric/registry.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "softib - a software InfiniBand HCA and fabric for unmodified verbs programs\n"
    "\n"
    "Commands:\n"
    "  softib run [--node N] [--fabric TEXT] CMD...\n"
    "                     run CMD on softib instead of the system's libibverbs\n"
    "  softib info [--json]\n"
    "                     the fabric: nodes, ports, LIDs, who is in it\n"
    "  softib stat [--json]\n"
    "                     counters of every port\n"
    "  softib ctl port down|up node0/hca0/1\n"
    "                     take a port (or an HCA's, or a node's ports) down or up\n"
    "  softib ctl hca remove node0/hca1\n"
    "                     take an adapter out, as a hot unplug does\n"
    "  softib key FILE    write a new key for wire=tcp into FILE, mode 0600\n"
    "\n"
    "Examples:\n"
    "  softib run ibv_rc_pingpong & sleep 1; softib run ibv_rc_pingpong localhost\n"
    "  softib run mpirun -n 2 --mca btl openib,self \\\n"
    "      --mca btl_openib_allow_ib 1 ./a.out\n"
    "\n"
    "The fabric is described by SOFTIB_FABRIC: text, or the path of a file that\n"
    "begins with / or . and has this text. It has words key=value. Words after\n"
    "\"node1/hca0/1:\" (or \"node1:\", or \"hca1:\" of every node) hold for those ports\n"
    "only. Keys, with their defaults in parentheses:\n"
    "    nodes hcas ports   number of nodes, HCAs per node, ports per HCA; these\n"
    "                       come first (1 1 1)\n"
    "    lmc                each port has 2^lmc LIDs, and so 2^lmc paths (0)\n"
    "    mtu                256 to 4096; of an Ethernet 352 to 9216, less the\n"
    "                       headers (4096; Ethernet: 1500, which leaves 1024)\n"
    "    link               infiniband, or ethernet: ports are RoCE ports\n"
    "                       (infiniband)\n"
    "    netdev             of one port with link=ethernet: the network interface\n"
    "                       whose addresses are its GIDs (a made-up one)\n"
    "    vlan               1 to 4094: with link=ethernet, GIDs in this VLAN besides\n"
    "                       (none)\n"
    "    without            features that adapters lack, as in without=srq,atomics;\n"
    "                       see below (none)\n"
    "    rate latency       of a port's link: 1GB/s, 10Gbit/s; 1.5us (as fast as\n"
    "                       memory); between two ports the larger latency counts,\n"
    "                       once each way\n"
    "    bus                of an adapter: all its ports, both directions together\n"
    "                       (as fast as memory)\n"
    "    high               1 to 15: packets of this service level and higher ones\n"
    "                       use a virtual lane of high priority, which shares the\n"
    "                       link with the others'; between processes of one\n"
    "                       machine, not multicast (one lane)\n"
    "    down up            time after the start of the fabric at which a port goes\n"
    "                       down or up: 2s\n"
    "    ud_loss ud_dup ud_reorder seed\n"
    "                       faults of datagrams, as probabilities (0)\n"
    "    ud_drop            a receiver loses a datagram; other members of a group\n"
    "                       get it (0)\n"
    "    switch_loss        faults of barrier packets (0)\n"
    "    switches           number of switches for the nodes in order, up to 16:\n"
    "                       barriers go up to a further switch that connects them,\n"
    "                       and down (1: one switch)\n"
    "    pin                time that registering memory takes for each page of 4\n"
    "                       KiB (as it is here)\n"
    "    groups             multicast groups that there may be, up to 512 (512)\n"
    "    sm                 1: ports name a subnet manager, so programs join groups\n"
    "                       through librdmacm (0)\n"
    "    hub                1: each node has a device softwire0 besides, of a\n"
    "                       barrier network; wire=shm only (0)\n"
    "    atomics            adapter: atomic towards each other; global: towards\n"
    "                       processors too, and fail on memory of another process\n"
    "                       that is not a shared mapping (adapter)\n"
    "    name               any word; separates fabrics whose text is otherwise\n"
    "                       equal\n"
    "    wire               shm: all nodes on this machine; tcp: each node a machine\n"
    "                       (shm)\n"
    "    addr               of a node or port, with wire=tcp: its IPv4 address, or\n"
    "                       several (up to 8), of which those that answer are used,\n"
    "                       one for each port\n"
    "    base               of a node or all: the first of its TCP and UDP port\n"
    "                       numbers (47200)\n"
    "Features for without=:\n"
    "%s\n"
    "\n"
    "With wire=tcp all processes must know one key, 32 hexadecimal digits:\n"
    "SOFTIB_KEY, or the file SOFTIB_KEY_FILE, or ~/.softib.key. An MPI job makes its\n"
    "own. A process belongs to the node in SOFTIB_NODE (0). softib sets malloc to\n"
    "keep large blocks in the heap, where they can use huge pages;\n"
    "SOFTIB_MALLOC=leave turns that off.\n"
    "\n"
    "Examples of fabrics:\n"
    "  SOFTIB_FABRIC='nodes=2 ports=2 rate=1GB/s node1/hca0/2: latency=5us'\n"
    "  SOFTIB_FABRIC='nodes=2 wire=tcp node0: addr=10.0.0.1 node1: addr=10.0.0.2'\n"
    "  SOFTIB_FABRIC='nodes=2 hcas=2 wire=tcp node0: addr=10.0.0.1 addr=10.1.0.1\n"
    "      addr=172.17.0.1 node1: addr=10.0.0.2 addr=10.1.0.2 addr=172.17.0.1'\n";

static void print_help(FILE *to)
{
    enum { WIDTH = 80 };
    char names[512] = "";
    size_t line = 0; /* start of the last line */
    for (unsigned i = 0; i < FEATURES; i++) {
        const size_t at = strlen(names);
        const bool wrap = i == 0 || at - line + strlen(fabric_features[i]) + 3 > WIDTH;
        line = wrap ? at + 2 : line;
        snprintf(names + at, sizeof(names) - at, "%s%s%s", i ? "," : "", wrap ? i ? "\n    " : "    " : " ",
                 fabric_features[i]);
    }
    fprintf(to, help, names);
}

bool tool_fabric(struct fabric *f)
{
    char err[512];
    char *text = fabric_text(err, sizeof(err));
    const char *node = getenv("SOFTIB_NODE");
    if (!text || !fabric_parse(text, f, err, sizeof(err))) {
        fprintf(stderr, "softib: %s\n", err);
        free(text);
        return false;
    }
    free(text);
    if (node)
        f->node = (uint32_t)strtoul(strncmp(node, "node", 4) ? node : node + 4, NULL, 10);
    if (f->node < f->nodes)
        return true;
    fprintf(stderr, "softib: SOFTIB_NODE=%s: the fabric has nodes 0 to %u\n", node, f->nodes - 1);
    return false;
}

struct registry *tool_registry(const struct fabric *f, uint64_t *key)
{
    *key = registry_key(f);
    int fd = registry_find(*key);
    return fd < 0 ? NULL : registry_map(fd);
}

void port_name(const struct fabric *f, uint32_t linear, char out[48])
{
    struct fab_place at = {0};
    fabric_find_lid(f, fabric_port_lid(f, linear), &at);
    snprintf(out, 48, "node%u/hca%u/%u", at.node, at.hca, at.port);
}

static int tool_print_usage(const char *what, const char *arg)
{
    fprintf(stderr, "softib: %s%s%s\nTry: softib --help\n", what, arg ? ": " : "", arg ? arg : "");
    return 2;
}

static int tool_reject_command(const char *typed)
{
    static const char *const commands[] = {"run", "info", "stat", "ctl", "key"};
    struct nearest best = nearest_start_search(typed);
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
        nearest_compare_candidate(&best, commands[i]);
    if (!best.word)
        return tool_print_usage("unknown command", typed);
    fprintf(stderr, "softib: unknown command: %s (did you mean %s?)\n", typed, best.word);
    return 2;
}

static char **parse_options(char **argv, struct options *o)
{
    for (; *argv && !strncmp(*argv, "--", 2); argv++) {
        if (!strcmp(*argv, "--json"))
            o->json = true;
        else if (!strcmp(*argv, "--fabric") && argv[1])
            o->fabric = *++argv;
        else if (!strcmp(*argv, "--node") && argv[1])
            o->node = *++argv;
        else
            break;
    }
    return argv;
}

int main(int argc, char **argv)
{
    struct options o = {0};
    if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        print_help(argc < 2 ? stderr : stdout);
        return argc < 2 ? 2 : 0;
    }
    char **rest = parse_options(argv + 2, &o);
    if (o.fabric)
        setenv("SOFTIB_FABRIC", o.fabric, 1);
    if (o.node)
        setenv("SOFTIB_NODE", o.node, 1);
    if (*rest && !strcmp(*rest, "--help")) {
        print_help(stdout);
        return 0;
    }
    if (*rest && !strncmp(*rest, "--", 2) && strcmp(*rest, "--"))
        return tool_print_usage("unknown option", *rest);
    if (*rest && !strcmp(*rest, "--"))
        rest++;
    if (!strcmp(argv[1], "run"))
        return *rest ? cmd_run(&o, rest) : tool_print_usage("run what?", NULL);
    if (!strcmp(argv[1], "ctl"))
        return cmd_ctl(&o, rest);
    if (!strcmp(argv[1], "key"))
        return *rest && !rest[1] ? cmd_key(rest) : tool_print_usage("key: name the file to write", NULL);
    if (strcmp(argv[1], "stat") && strcmp(argv[1], "info"))
        return tool_reject_command(argv[1]);
    if (*rest)
        return tool_print_usage("unexpected argument", *rest);
    return strcmp(argv[1], "stat") ? cmd_info(&o) : cmd_stat(&o);
}
