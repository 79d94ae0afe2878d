/* fabric.h: the fabric as the user described it in SOFTIB_FABRIC: the number of nodes, HCAs and ports, how
 * the links behave, and the addresses of the nodes. Each process reads the text once. LIDs and GUIDs are
 * computed from it, so that all processes and machines with the same text agree on them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_FABRIC_H
#define SOFTIB_FABRIC_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define FAB_MAX_PORTS  1024
#define FAB_MAX_HCAS   16
#define FAB_TEXT_MAX   (256u << 10)
#define FAB_ADDRS      8
#define FAB_NODE_ADDRS 32

enum fab_wire {
    WIRE_SHM, /* all nodes on this machine */
    WIRE_TCP, /* each node is its own machine, even when it is not */
};

/* What adapters may lack, and an adapter of this fabric lacks with `without=`. A program sees what it would see on
 * such hardware: no capability bit, and EOPNOTSUPP (or the refusal of a limit of 0) from the calls. */
#define FABRIC_FEATURES(F)                                                         \
    F(ATOMICS, "atomics")   /* atomic operations */                                \
    F(SRQ, "srq")           /* shared receive queues */                            \
    F(XRC, "xrc")           /* extended reliable connections */                    \
    F(MW, "mw")             /* memory windows */                                   \
    F(MCAST, "mcast")       /* multicast */                                        \
    F(INLINE, "inline")     /* data inside send requests */                        \
    F(APM, "apm")           /* alternate paths */                                  \
    F(CQ_EX, "cq_ex")       /* extended completion queues */                       \
    F(QP_EX, "qp_ex")       /* extended queue pairs: ibv_wr_* */                   \
    F(IMPORT, "import")     /* devices, PDs and MRs imported by file descriptor */ \
    F(ODP, "odp")           /* memory regions that are not pinned */               \
    F(DM, "dm")             /* memory of the device */                             \
    F(COUNTERS, "counters") /* ibv_counters */                                     \
    F(TM, "tm")             /* tag matching in shared receive queues */

#define FABRIC_FEATURE_NUMBER(id, name) FEATURE_##id,
enum fab_feature { FABRIC_FEATURES(FABRIC_FEATURE_NUMBER) FEATURES };

extern const char *const fabric_features[FEATURES]; /* their names in the text */

struct fab_port {
    uint64_t rate;    /* bytes a second, 0: as fast as memory */
    uint64_t bus;     /* of its adapter, all ports and both directions together, likewise */
    uint64_t latency; /* ns, one way, of the wire to any other port: see fabric_latency */
    uint64_t down_at; /* ns since the fabric began, NEVER: not planned */
    uint64_t up_at;
    struct in_addr addr[FAB_ADDRS]; /* with wire=tcp: under which it may be reached */
    uint8_t addrs, rail;            /* how many; it takes the rail-th of those that answer */
    uint32_t mtu;                   /* of InfiniBand: 256 to 4096 */
    uint32_t without;               /* features that its adapter lacks: bits of 1 << enum fab_feature */
    bool ethernet;                  /* RoCE; the fields below are for RoCE ports */
    char netdev[16]; /* the network interface of this machine that it stands for, "": a made-up one */
    uint16_t vlan;   /* it has an interface of this VLAN besides, 0: none */
    struct in_addr interface_addr[FAB_ADDRS]; /* of the interface that netdev names: see gid.h */
    uint8_t interface_addrs;
    uint32_t interface_index; /* as the system numbers it, 0: not of this machine */
};

enum { FABRIC_GROUPS = 512 };

struct fabric {
    char name[64];
    uint32_t nodes, hcas, ports, lmc, mtu;
    uint32_t ud_loss, ud_drop, ud_dup, ud_reorder, sw_loss; /* probability in parts per 2^32 */
    uint64_t seed;
    uint32_t
        switches; /* switches that the nodes are attached to; if more than 1, one more switch connects them */
    uint32_t hub; /* 1: there is a barrier network: see fabric_has_hub */
    bool atomics_global; /* atomics are those of the processor, or fail */
    uint64_t pin;        /* ns that registering takes for each page, besides what it takes here */
    uint32_t groups;     /* multicast groups that there may be */
    uint32_t sm;         /* 1: ports name a subnet manager, through which programs join groups */
    enum fab_wire wire;
    uint16_t base;         /* first TCP and UDP port number */
    uint32_t node;         /* ours */
    uint64_t id;           /* hash of the text: processes with the same one are in the same fabric */
    uint16_t *base_of;     /* per node */
    struct fab_port *port; /* per linear port number */
    uint32_t nports;
    bool paced; /* some port has a rate or a latency, or some adapter a bus */
    bool roce;  /* some port has link=ethernet */
};

/* A place on the fabric: which port an LID names, and with which path bits. */
struct fab_place {
    uint32_t node, hca, port, linear, path;
};

/* Parses the text into *f; on failure returns false with a message in err. */
bool fabric_parse(const char *text, struct fabric *f, char *err, size_t errlen);
void fabric_free(struct fabric *f);

/* The text of SOFTIB_FABRIC (the variable, or the file it names), malloc'ed; NULL with err when unreadable.
 */
char *fabric_text(char *err, size_t errlen);

/* True if the fabric has the wired barrier hub: only on one machine, since packets between machines can be lost. */
static inline bool fabric_has_hub(const struct fabric *f)
{
    return f->hub && f->wire == WIRE_SHM;
}

uint32_t fabric_port_index(const struct fabric *f, uint32_t node, uint32_t hca, uint32_t port);
/* The first port of the adapter, which keeps the bookings of the adapter's bus. */
static inline uint32_t fabric_bus_port(const struct fabric *f, uint32_t linear)
{
    return linear - linear % f->ports;
}
static inline bool fabric_lacks_feature(const struct fabric *f, uint32_t linear, enum fab_feature what)
{
    return f->port[linear].without >> what & 1;
}
/* The largest MTU of InfiniBand whose packets fit into that of an Ethernet with the headers of RoCE; 0: none. */
uint32_t fabric_mtu_of_ethernet(uint32_t mtu);
uint16_t fabric_port_lid(const struct fabric *f, uint32_t linear);
bool fabric_find_lid(const struct fabric *f, uint16_t lid, struct fab_place *at);
uint64_t fabric_node_guid(uint32_t node, uint32_t hca);
uint64_t fabric_port_guid(uint32_t node, uint32_t hca, uint32_t port);
/* The addresses a node's sockets are bound to, each once; returns how many. */
unsigned fabric_addrs(const struct fabric *f, uint32_t node, struct in_addr out[FAB_NODE_ADDRS]);
/* The transit time of a packet between two ports: the latency of the slower port. */
uint64_t fabric_latency(const struct fabric *f, uint32_t from, uint32_t to);
/* From a port GUID back to its LID, 0 when it names no port. */
uint16_t fabric_guid_lid(const struct fabric *f, uint64_t guid);

/* The ports that "node1/hca0/1" names; the tail may be left out. "hca1" and "hca1/2" are those of every node. */
bool fabric_select(const struct fabric *f, const char *text, bool *match /* nports */);

#endif
