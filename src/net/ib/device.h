/* device.h: one open port of one adapter: which one, its capabilities, and its address. Everything is queried
 * from the device; nothing is assumed. A process that uses several has one for each (rail.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_DEVICE_H
#define FP_NET_IB_DEVICE_H

#include "net/ib/survey.h"
#include "net/ib/verbs.h"

#define IB_NAME_MAX     64
#define IB_RAILS_MAX    8 /* that a process uses */
#define IB_ADAPTERS_MAX 4 /* a net_key has room for so many keys */

struct boot;

/* How a port is reached. It travels (boot, HELLO): fixed layout, little-endian. */
struct ib_address {
    uint8_t gid[16];
    uint16_t lid;
    uint8_t mtu;          /* enum ibv_mtu */
    uint8_t ethernet;     /* RoCE: reached by GID; LIDs mean nothing */
    uint32_t ud_qpn : 24; /* where HELLOs go */
    uint32_t rails : 8;   /* how many the process has */
    uint64_t subnet;      /* GID prefix on InfiniBand: another one needs a global route */
};
_Static_assert(sizeof(struct ib_address) == 32, "travels between processes");

struct ib_device {
    struct verbs verbs;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_device_attr attr;
    struct ibv_port_attr port_attr;
    char name[IB_NAME_MAX]; /* "mlx5_0 port 1": for messages */
    uint8_t port;
    uint8_t gid_index;
    uint8_t path;  /* added to the port's LID, at both ends: one of several ways through the fabric (LMC) */
    bool borrowed; /* context and protection domain belong to another port of the adapter */
    uint16_t pkey_index;
    bool ask_last_byte;  /* not decided yet */
    bool last_byte_last; /* RDMA data appears in memory with its last byte last */
    struct ib_address address;
    struct ib_survey survey; /* all ports of the library, with the reasons for and against each */
    struct net_port *used;   /* the one that is open, in the survey */
};

/* Collective over all ranks of a job on several nodes. Opens the best active port; real: softib will not do unless the user named it. 0; or MPI_ERR_OTHER with a
 * sentence that says why there is none (which may not be an error for the caller: one node needs none). */
int ib_device_open(struct ib_device *d, struct boot *boot, bool real);
void ib_device_close(struct ib_device *d);

/* One more port, which `home` has surveyed: of an adapter that is open already (`beside` is a port of it), or NULL. The
 * library stays that of `home`. 0, or an error with a sentence. */
int ib_device_more(const struct ib_device *home, const struct ib_device *beside, struct net_port *port,
                   uint8_t path, struct ib_device *out);

/* Its port was down when it was opened and is active now: reads its address again. False: it is on another network. */
bool ib_device_again(struct ib_device *d, const struct ibv_port_attr *attr);

/* For users who ask outside of a job on several nodes: the ports that the library FISHPLATE_VERBS names knows, and
 * what would be chosen here. 0, or an error with a sentence when there is nothing to show. */
int ib_device_look(struct ib_survey *out);

/* A device of the library by its name; NULL: there is none, or it cannot be opened. */
struct ibv_context *ib_device_named(const struct verbs *v, const char *name);

/* Finds out, once there is a queue pair to ask about, whether the last byte arrives last. */
void ib_device_ask_order(struct ib_device *d, struct ibv_qp *qp);

/* The adapter can add to memory, its own and that of peers. */
static inline bool ib_device_adds(const struct ib_device *d)
{
    return d->attr.atomic_cap != IBV_ATOMIC_NONE && d->attr.max_qp_rd_atom > 0 &&
           d->attr.max_qp_init_rd_atom > 0;
}

/* What peers may do with memory, and through queue pairs. */
static inline int ib_device_access(const struct ib_device *d)
{
    return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
           (ib_device_adds(d) ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

/* How to reach an address from this port. */
void ib_device_route(const struct ib_device *d, const struct ib_address *to, struct ibv_ah_attr *out);

#endif
