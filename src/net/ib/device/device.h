/* device.h: the open adapters and ports of this process; registered memory of the transport and of the user.
 * All limits are queried from the device.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_DEVICE_H
#define FP_NET_IB_DEVICE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/log.h"
#include "net/ib/device/survey.h"
#include "net/ib/device/verbs.h"
#include "net/regcache.h"
#include "net/transport.h"

struct boot;
struct counter;
struct ib;
struct ib_endpoint;
struct ib_lane;
struct ib_rail_info;
struct ib_shared;

/* ---- device.c: one open port of one adapter ---- */

#define IB_NAME_MAX     64
#define IB_RAILS_MAX    8 /* rails of a process */
#define IB_ADAPTERS_MAX 4 /* adapters of a process: a net_key has an rkey for each */

/* The address of a port, sent at boot and in HELLO: fixed layout, little-endian. */
struct ib_address {
    uint8_t gid[16];
    uint16_t lid;
    uint8_t mtu;          /* enum ibv_mtu */
    uint8_t ethernet;     /* RoCE: the port has no LID and is addressed by GID */
    uint32_t ud_qpn : 24; /* queue pair that receives HELLOs */
    uint32_t rails : 8;   /* number of rails of the process */
    uint64_t subnet;      /* GID prefix on InfiniBand: ports in other subnets need a global route */
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
    uint8_t path;  /* LMC: offset added to the LID at both ends, which selects one of several paths */
    bool borrowed; /* context and pd belong to another port of the adapter, and are not freed here */
    uint16_t pkey_index;
    bool query_last_byte; /* last_byte_last is still unknown */
    bool last_byte_last;  /* RDMA data appears in memory with its last byte last */
    struct ib_address address;
    struct ib_survey survey; /* all ports of the library, with the reasons for and against each */
    struct net_port *used;   /* entry of this port in the survey */
};

/* Opens the best active port. Collective over all ranks of a job on several nodes. real: softib is accepted
 * only if the user requested it. 0; or MPI_ERR_OTHER with a message (no error for a job on one node). */
int ib_device_open(struct ib_device *d, struct boot *boot, bool real);
void ib_device_close(struct ib_device *d);

/* Opens one more port that the survey of `home` lists. beside: an open port of the same adapter, whose
 * context is reused, or NULL. Uses the library of `home`. 0, or an error with a message. */
int ib_device_open_port(const struct ib_device *home, const struct ib_device *beside, struct net_port *port,
                        uint8_t path, struct ib_device *out);

/* Called when a port that was down when it was opened comes up: reads its address again. False: the port is
 * on another network now. */
bool ib_device_refresh(struct ib_device *d, const struct ibv_port_attr *attr);

/* Lists the ports of the library that FISHPLATE_VERBS selects, and marks those that would be used here. For
 * users, outside of a job on several nodes. 0, or an error with a message if there are no ports. */
int ib_device_list(struct ib_survey *out);

/* For a job on one node, which opens no adapter: warns of FISHPLATE_IB_DEVICES that match no port here. */
void ib_device_check_names(void);

/* Opens a device of the library by name; NULL: no such device, or it cannot be opened. */
struct ibv_context *ib_device_open_named(const struct verbs *v, const char *name);

/* Determines, by means of a queue pair, whether the adapter places the last byte of a write last. */
void ib_device_query_order(struct ib_device *d, struct ibv_qp *qp);

/* True if the adapter can execute atomic operations on its own and on peers' memory. */
static inline bool ib_device_has_atomics(const struct ib_device *d)
{
    return d->attr.atomic_cap != IBV_ATOMIC_NONE && d->attr.max_qp_rd_atom > 0 &&
           d->attr.max_qp_init_rd_atom > 0;
}

/* The access rights of peers to registered memory and through queue pairs. */
static inline int ib_device_access_flags(const struct ib_device *d)
{
    return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
           (ib_device_has_atomics(d) ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

/* Fills the route from this port to an address. */
void ib_device_fill_route(const struct ib_device *d, const struct ib_address *to, struct ibv_ah_attr *out);

/* ---- rail.c: the rails of this process: the ports that it uses, each a path to every peer that has a port on the same network
 * [Liu04 8.1]. Rail 0 is the primary rail of the process: it carries the connections, their frames and rings. An adapter is opened
 * once, though several of its ports or paths are rails; it has one completion queue, and memory is registered once with each ---- */

struct ib_adapter {
    struct ib_device *device; /* a port of the adapter: for its context and protection domain */
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    int cq_size, cq_used;
    uint32_t under_way; /* connections and stripes that use the completion queue; 0: polled rarely */
    uint8_t index;      /* index of the adapter's keys in a net_key */
    _Atomic int gone;   /* the adapter was removed: all operations on it fail */
};

static inline bool ib_adapter_is_gone(const struct ib_adapter *a)
{
    return atomic_load_explicit(&a->gone, memory_order_relaxed) != 0;
}

/* Adds `n` connections to the adapter's count: it is polled while the count is above 0. */
void ib_adapter_count_users(struct ib_adapter *a, struct ib *ib, int n);

struct ib_rail {
    struct ib_device *device;
    struct ib_adapter *adapter;
    struct counter *bytes, *stripes, *frames;
    double weight;         /* relative share in weighted striping */
    uint8_t index;         /* 0: primary rail of the process */
    bool waiting;          /* the port has not been up since the start; its address may be unknown */
    _Atomic uint64_t down; /* when the port went down, in ns; 0: it is up */
};

static inline bool ib_rail_is_up(const struct ib_rail *r)
{
    return atomic_load(&r->down) == 0;
}

/* Opens the further rails (ib->device is open), and one completion queue for each adapter. */
int ib_rails_open(struct ib *ib, struct boot *boot);
void ib_rails_check_waiting(struct ib *ib); /* uses ports that were down at the start and are up now */
void ib_rails_close(struct ib *ib);         /* destroys the completion queues */
void ib_rails_free(struct ib *ib);          /* closes the ports; all queue pairs on them must be destroyed */

/* Enlarges the completion queue by `more` entries: it must hold all requests that can complete at once. */
int ib_adapter_reserve_completions(struct ib_adapter *a, int more);

uint32_t ib_rails_list_up(const struct ib *ib);
uint32_t ib_rails_describe(const struct ib *ib, struct ib_rail_info *out); /* returns the number of rails */

/* True if several rails reach a peer with this address. Otherwise no transfer is striped. */
bool ib_has_several_rails(const struct ib *ib, const struct ib_address *peer);

/* ---- buffer.c: the transport's own registered memory, cut into buffers of a few sizes ---- */

struct ib_chunk {
    void *memory;
    size_t size;
    struct ibv_mr *mr[IB_ADAPTERS_MAX];
    struct ib_buffer *buffers;
};

/* A buffer. The adapter never writes the descriptor, only `data`. */
struct ib_buffer {
    char *data;
    struct ib_buffer *next;   /* next free buffer of the pool */
    struct list link;         /* in a list of posted buffers, held messages or recorded messages */
    struct ib_lane *lane;     /* queue pair for which the buffer was posted, or that received its message */
    struct ib_shared *shared; /* shared receive queue for which the buffer was posted */
    uint32_t lkey[IB_ADAPTERS_MAX], rkey[IB_ADAPTERS_MAX]; /* by adapter */
    uint32_t length;                                       /* bytes of the message */
    uint8_t rail;                                          /* rail of a HELLO */
};

/* A pool of registered buffers of one size. */
struct ib_pool {
    struct ib *ib;
    struct ib_buffer *free;
    size_t size;
    uint32_t total, in_use;
};

void ib_pool_init(struct ib_pool *pool, struct ib *ib, size_t size);
struct ib_buffer *ib_buffer_get(struct ib_pool *pool); /* NULL: out of memory, reason in err_detail */
void ib_buffer_put(struct ib_pool *pool, struct ib_buffer *b);
void ib_buffers_close(struct ib *ib);

/* ---- memory.c: the user's memory, registered with every adapter through the registration cache ---- */

int ib_memory_open(struct ib *ib);
void ib_memory_close(struct ib *ib);
int ib_memory_register(struct transport *t, const void *address, size_t len, struct net_mem *mem,
                       struct net_key *key);
int ib_memory_register_piece(struct transport *t, const void *address, size_t len, struct net_mem *mem,
                             struct net_key *key);
void ib_memory_release(struct transport *t, struct net_mem *mem);
/* Deregisters freed memory, which stays allocated while it is registered. Called from time to time. */
void ib_memory_sweep(struct ib *ib);
bool ib_memory_is_registered(const struct ib *ib, uint64_t address, size_t len,
                             const struct net_key *key); /* under this key, and not released since */

struct ib_region {
    uint32_t lkey[IB_ADAPTERS_MAX], rkey[IB_ADAPTERS_MAX];
    struct ibv_mr *mr[IB_ADAPTERS_MAX];
};

static inline uint32_t ib_lkey(const struct net_mem *mem, unsigned adapter)
{
    return ((const struct ib_region *)((const struct regcache_entry *)mem->handle)->handle)->lkey[adapter];
}

/* The rkeys of a net_key, two in each word, in the order of the owner's adapters. */
static inline uint32_t ib_rkey(const struct net_key *key, unsigned adapter)
{
    return (uint32_t)(key->word[adapter / 2] >> (adapter % 2 ? 32 : 0));
}

/* ---- fatal.c ---- */

/* Ends the job with a message that names peer, device and failure. ep NULL: the failure is local. */
_Noreturn void ib_fatal(struct ib *ib, const struct ib_endpoint *ep, const char *fmt, ...) PRINTF_LIKE(3, 4);

#endif
