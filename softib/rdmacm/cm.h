/* cm.h: identifiers and event channels of the connection manager, and the calls between its files.
 *
 * There are no threads. Each event channel is an epoll descriptor with the sockets and timers of its
 * identifiers; rdma_get_cm_event handles ready descriptors until there is an event. One lock protects all
 * state.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_RDMACM_CM_H
#define SOFTIB_RDMACM_CM_H

#include "link.h"
#include "softib/address.h"
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define SOFTIB_API             __attribute__((visibility("default")))
#define CM_OF(public_id)       ((struct cm_id *)(void *)(public_id))
#define CM_PRIVATE_MAX         196
#define CM_BACKLOG_MAX         1024
#define CM_UNPROVED_MAX        128   /* connections without a request; then the oldest is closed */
#define CM_UNPROVED_MS         10000 /* time limit for the request to arrive */
#define CM_DEFAULT_ACK_TIMEOUT 18    /* 4.096 us * 2^18 = 1.07 s */

/* Reasons of rejects, with the numbers of the InfiniBand specification. */
enum cm_reject {
    CM_REJECT_TIMEOUT = 4,
    CM_REJECT_INVALID_SERVICE = 8,
    CM_REJECT_CONSUMER = 28,
    CM_REJECT_ECE = 35
};

enum cm_state {
    CM_IDLE,
    CM_BOUND,
    CM_LISTENING,
    CM_ADDR_RESOLVED,
    CM_ROUTE_RESOLVED,
    CM_CONNECTING, /* active: the request was sent */
    CM_RESPONDED,  /* active, without a QP in the identifier: the program must call rdma_establish */
    CM_UNPROVED,   /* passive: connected, but its request has not arrived; not reported to the program */
    CM_REQUESTED,  /* passive: the program must call rdma_accept or rdma_reject */
    CM_ACCEPTED,   /* passive: the active side has not confirmed the connection */
    CM_CONNECTED,
    CM_ENDED, /* disconnected, rejected, failed */
};

enum cm_watch_kind { WATCH_LISTENER, WATCH_LINK, WATCH_TIMER, WATCH_QUEUE };

/* A descriptor in the epoll descriptor of a channel. */
struct cm_watch {
    enum cm_watch_kind kind;
    int fd; /* -1: none */
    struct cm_id *id;
};

struct cm_event {
    struct rdma_cm_event e; /* first member: the program has a pointer to `e` */
    struct cm_id *counted;  /* identifier that is not destroyed before the event is acknowledged, or NULL */
    struct cm_event *next;
    uint8_t private_data[CM_PRIVATE_MAX];
};

struct cm_channel {
    struct rdma_event_channel channel; /* first member: the program has a pointer to `channel` */
    struct cm_watch queue;             /* an eventfd, readable while `first` is not NULL */
    int spare; /* a reserve descriptor, closed when no others are free: see listen.c */
    struct cm_event *first, **last;
};

struct cm_group {
    union ibv_gid gid;
    struct sockaddr_storage addr;
    uint16_t lid;
    bool attached, send_only;
    void *context;
    struct cm_group *next;
};

/* An adapter of this node. All identifiers share its context and default objects. */
struct cm_device {
    struct ibv_context *verbs;
    struct ibv_pd *pd;
    struct ibv_xrcd *xrcd;
    struct ibv_device_attr attr;
    uint64_t guid;
};

struct cm_id {
    struct rdma_cm_id id; /* first member: the program has a pointer to `id` */
    bool synchronous;     /* the identifier has its own channel */
    enum cm_state state;
    struct cm_device *device;
    struct softib_address here, there; /* local and remote address; `here` is valid if `device` is set */
    bool has_there;

    struct cm_link link;
    struct cm_watch link_watch, timer;
    struct cm_watch *listen; /* the sockets bound to its port number */
    unsigned listens;        /* number of sockets in `listen` */
    bool bound;

    unsigned attempt;       /* active: number of names or addresses of the service tried so far */
    struct cm_id *listener; /* of an identifier in state CM_UNPROVED */
    struct cm_id *unproved; /* of a listener: list of its identifiers in state CM_UNPROVED */
    struct cm_id *unproved_next;
    unsigned unproved_count;

    struct message peer;          /* the request (passive side) or the reply (active side) of the peer */
    struct rdma_conn_param param; /* the program's parameters, limited to the resources of the device */
    uint32_t qp_num, psn, qkey;
    uint8_t ack_timeout, tos;
    bool reuse_addr, own_send_cq, own_recv_cq, own_srq_cq;
    struct ibv_ece ece;
    struct ibv_sa_path_rec path;

    struct cm_group *groups;
    struct ibv_qp_init_attr ep_attr; /* of rdma_create_ep: for the QPs of incoming requests */
    bool has_ep_attr;
    struct ibv_pd *ep_pd;
    void *ep_connect;
    size_t ep_connect_len;

    unsigned unacked; /* events that the program has fetched and not acknowledged */
};

extern pthread_mutex_t cm_lock;
extern pthread_cond_t cm_acked;

int cm_return_error(int error);

/* defined in device.c */
bool device_init(void); /* once: joins the fabric, opens the adapters; false with errno */
const struct softib_place *device_get_place(void);
struct cm_device *device_find_by_guid(uint64_t node_guid);
struct ibv_pd *device_pd(struct cm_device *d);
struct ibv_xrcd *device_xrcd(struct cm_device *d);

/* defined in address.c */
struct cm_address {
    struct in6_addr ip; /* IPv4 is mapped */
    uint16_t port;
    bool any, multicast;
};
bool address_read(const struct sockaddr *a, struct cm_address *out);
void address_write(struct sockaddr_storage *out, int family, const struct in6_addr *ip, uint16_t port);
bool address_find_local(const struct in6_addr *ip, struct softib_address *out);
bool address_find_remote(const struct in6_addr *ip, struct softib_address *out);
bool address_of_gid(const uint8_t gid[16], uint16_t lid, uint32_t gid_index, struct softib_address *out);
/* Finds a port of this node from which `there` is reached, or any port that is up if `there` is NULL. */
bool address_choose_source(const struct softib_address *there, struct softib_address *out);
bool address_port_up(const struct softib_address *a);
void id_bind_device(struct cm_id *p, const struct softib_address *here);
uint16_t address_ephemeral_port(void);
void path_fill(struct cm_id *p); /* fills p->id.route.path_rec */

/* defined in channel.c */
bool channel_add(struct cm_channel *c, struct cm_watch *w, uint32_t events);
void channel_remove(struct cm_channel *c, struct cm_watch *w); /* removes the descriptor and closes it */
/* Queues an event; NULL with errno: no memory. */
struct cm_event *channel_report(struct cm_id *p, enum rdma_cm_event_type type, int status);
void channel_discard_events(struct cm_id *p);
void channel_set_timer(struct cm_id *p, unsigned ms); /* 0: stops the timer */
int id_wait(struct cm_id *p); /* waits for the event of a call on a synchronous identifier */
static inline struct cm_channel *channel_of(struct cm_id *p)
{
    return (struct cm_channel *)(void *)p->id.channel;
}

/* defined in id.c */
struct cm_id *id_new(struct cm_channel *c, void *context, enum rdma_port_space ps);
void id_free(struct cm_id *p); /* closes its sockets and drops its events; the lock is held */
int id_make_synchronous(struct cm_id *p);

/* defined in listen.c */
int listen_bind(struct cm_id *p, const struct cm_address *a);
void listen_close(struct cm_id *p);
void listen_ready(struct cm_watch *w);
void listen_remove_unproved(struct cm_id *p); /* removes p from its listener's list */

/* connect.c: handlers for a socket that is ready and for a timer that has expired */
void connect_link_ready(struct cm_id *p);
void connect_handle_timeout(struct cm_id *p);

/* defined in qp.c */
int qp_move_to_ready_to_send(struct cm_id *p); /* connects the QP of p to p->peer */
void qp_to_error(struct cm_id *p);
void qp_ah_attr(const struct cm_id *p, struct ibv_ah_attr *out); /* attributes of the path to p->there */
static inline bool id_is_datagram(const struct cm_id *p)
{
    return p->id.ps == RDMA_PS_UDP || p->id.ps == RDMA_PS_IPOIB;
}

/* defined in multicast.c */
void multicast_leave_all(struct cm_id *p);
void multicast_detach_all(struct cm_id *p);

#endif
