/* fabric.h: the fabric that SOFTIB_FABRIC describes: numbers of nodes, HCAs and ports, properties of the
 * links, and addresses of the nodes. Each process reads the text once. LIDs and GUIDs are computed from
 * the text, so that they are equal in all processes and machines with the same text.
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

#define ETHERNET_MTU_MAX 9216u

enum fab_wire {
    WIRE_SHM, /* all nodes on this machine */
    WIRE_TCP, /* each node is treated as a machine of its own, also if several are on one machine */
};

/* Features that an adapter lacks with `without=`. A program observes the behaviour of such hardware: no
 * capability bit, and EOPNOTSUPP (or an error because of a limit of 0) from the calls. */
#define FABRIC_FEATURES(F)                                                       \
    F(ATOMICS, "atomics") /* atomic operations */                                \
    F(SRQ, "srq")         /* shared receive queues */                            \
    F(XRC, "xrc")         /* extended reliable connections */                    \
    F(MW, "mw")           /* memory windows */                                   \
    F(MCAST, "mcast")     /* multicast */                                        \
    F(INLINE, "inline")   /* data inside send requests */                        \
    F(APM, "apm")         /* alternate paths */                                  \
    F(CQ_EX, "cq_ex")     /* extended completion queues */                       \
    F(QP_EX, "qp_ex")     /* extended queue pairs: ibv_wr_* */                   \
    F(IMPORT, "import")   /* devices, PDs and MRs imported by file descriptor */ \
    F(ODP, "odp")         /* memory regions that are not pinned */               \
    F(DM, "dm")           /* memory of the device */

#define FABRIC_FEATURE_NUMBER(id, name) FEATURE_##id,
enum fab_feature { FABRIC_FEATURES(FABRIC_FEATURE_NUMBER) FEATURES };

extern const char *const fabric_features[FEATURES]; /* names of the features in SOFTIB_FABRIC */

struct fab_port {
    uint64_t rate; /* bytes per second; 0: not limited */
    /* Bytes per second of the adapter's bus, for all ports and both directions; 0: not limited. */
    uint64_t bus;
    uint8_t high;     /* lowest service level of the high-priority virtual lane; 0: the port has one lane */
    uint64_t latency; /* one-way latency to any other port, in ns: see fabric_latency */
    uint64_t down_at; /* ns after the start of the fabric at which the port goes down; NEVER: not planned */
    uint64_t up_at;   /* at which the port comes up again; NEVER: not planned */
    struct in_addr addr[FAB_ADDRS]; /* with wire=tcp: its possible addresses */
    uint8_t addrs;                  /* number of `addr` */
    uint8_t rail;                   /* index of the address that the port uses, among those that answer */
    uint32_t mtu;                   /* InfiniBand MTU: 256 to 4096 */
    uint32_t without;               /* features that its adapter lacks: bits of 1 << enum fab_feature */
    bool ethernet;                  /* RoCE; the fields below are for RoCE ports */
    /* Network interface of this machine whose addresses the port has; "": synthetic addresses. */
    char netdev[16];
    uint16_t vlan;                            /* VLAN in which the port has another address; 0: none */
    struct in_addr interface_addr[FAB_ADDRS]; /* IPv4 addresses of the interface `netdev`: see gid.h */
    uint8_t interface_addrs;
    uint32_t interface_index; /* of the interface `netdev`; 0: not on this machine */
};

enum { FABRIC_GROUPS = 512 };

struct fabric {
    char name[64];
    uint32_t nodes, hcas, ports, lmc, mtu;
    uint32_t ud_loss, ud_drop, ud_dup, ud_reorder, sw_loss; /* probability in parts per 2^32 */
    uint64_t seed;
    uint32_t switches;   /* number of switches with nodes; several are connected by one more switch */
    uint32_t hub;        /* 1: there is a barrier network: see fabric_has_hub */
    bool atomics_global; /* atomic operations are atomic with those of the processor, or fail */
    uint64_t pin;        /* additional ns for the registration of each page */
    uint32_t groups;     /* limit of multicast groups */
    uint32_t sm;         /* 1: ports report a subnet manager, through which programs join groups */
    enum fab_wire wire;
    uint16_t base;         /* first TCP and UDP port number */
    uint32_t node;         /* node of this process */
    uint64_t id;           /* hash of the text: equal for all processes of one fabric */
    uint16_t *base_of;     /* first TCP and UDP port number of each node */
    struct fab_port *port; /* by linear port number */
    uint32_t nports;
    bool paced; /* a port has a rate or a latency, or an adapter has a bus */
    bool roce;  /* a port has link=ethernet */
};

/* The port and the path bits of a LID. */
struct fab_place {
    uint32_t node, hca, port, linear, path;
};

/* Parses the text into *f; on failure returns false with a message in err. */
bool fabric_parse(const char *text, struct fabric *f, char *err, size_t errlen);
void fabric_free(struct fabric *f);

/* The text of SOFTIB_FABRIC (the variable, or the file that it names), allocated by malloc. NULL with a
 * message in err: it cannot be read. */
char *fabric_text(char *err, size_t errlen);

/* True if the fabric has the wired barrier hub: only on one machine, since packets between machines can be
 * lost. */
static inline bool fabric_has_hub(const struct fabric *f)
{
    return f->hub && f->wire == WIRE_SHM;
}

uint32_t fabric_port_index(const struct fabric *f, uint32_t node, uint32_t hca, uint32_t port);
/* The first port of the adapter, which contains the state of the adapter's bus. */
static inline uint32_t fabric_bus_port(const struct fabric *f, uint32_t linear)
{
    return linear - linear % f->ports;
}
static inline bool fabric_lacks_feature(const struct fabric *f, uint32_t linear, enum fab_feature what)
{
    return f->port[linear].without >> what & 1;
}
/* The largest InfiniBand MTU whose packets, with the headers of RoCE, fit in an Ethernet MTU; 0: none. */
uint32_t fabric_mtu_of_ethernet(uint32_t mtu);
uint16_t fabric_port_lid(const struct fabric *f, uint32_t linear);
bool fabric_find_lid(const struct fabric *f, uint16_t lid, struct fab_place *at);
uint64_t fabric_node_guid(uint32_t node, uint32_t hca);
uint64_t fabric_port_guid(uint32_t node, uint32_t hca, uint32_t port);
/* The addresses to which a node's sockets are bound, without duplicates; returns their number. */
unsigned fabric_addrs(const struct fabric *f, uint32_t node, struct in_addr out[FAB_NODE_ADDRS]);
/* The transit time of a packet between two ports: the latency of the slower port. */
uint64_t fabric_latency(const struct fabric *f, uint32_t from, uint32_t to);
/* The LID of the port with this GUID; 0: there is none. */
uint16_t fabric_guid_lid(const struct fabric *f, uint64_t guid);

/* Marks the ports that a text like "node1/hca0/1" selects. "node1" and "node1/hca0" select all their
 * ports; "hca1" and "hca1/2" select ports of every node. */
bool fabric_select(const struct fabric *f, const char *text, bool *match /* nports */);

#endif
