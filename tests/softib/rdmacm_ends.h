/* rdmacm_ends.h: both ends of connections of librdmacm in one process, each end on its own event channel,
 * for tests of softib's connection manager.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_TESTS_RDMACM_ENDS_H
#define SOFTIB_TESTS_RDMACM_ENDS_H

#include "expect.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MS 60000

static struct rdma_event_channel *active, *passive;

static inline struct sockaddr_in make_address(const char *ip, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, ip, &a.sin_addr);
    return a;
}

static inline struct sockaddr *to_sockaddr(struct sockaddr_in *a)
{
    return (struct sockaddr *)a;
}

/* Events that were fetched while the test waited for others. With wire=tcp the active end sends its
 * requests only while it fetches events; other programs do that in a process of their own. */
static struct {
    struct rdma_event_channel *channel;
    struct rdma_cm_event *event;
} fetched[16];

static inline void fetch_events(struct rdma_event_channel *c)
{
    struct rdma_cm_event *e;
    int flags = fcntl(c->fd, F_GETFL);
    fcntl(c->fd, F_SETFL, flags | O_NONBLOCK);
    for (int i = 0; i < 16; i++)
        if (!fetched[i].event && !rdma_get_cm_event(c, &e)) {
            fetched[i].channel = c;
            fetched[i].event = e;
        }
    fcntl(c->fd, F_SETFL, flags);
}

static inline struct rdma_cm_event *next_event(struct rdma_event_channel *c)
{
    struct rdma_cm_event *e;
    struct pollfd p[2] = {{.fd = c->fd, .events = POLLIN}, {.fd = active->fd, .events = POLLIN}};
    for (int i = 0; i < 16; i++)
        if (fetched[i].event && fetched[i].channel == c) {
            e = fetched[i].event;
            memmove(&fetched[i], &fetched[i + 1], (size_t)(15 - i) * sizeof(fetched[0]));
            fetched[15].event = NULL;
            return e;
        }
    if (poll(p, 2, WAIT_MS) < 1)
        return NULL;
    fetch_events(c);
    if (c != active)
        fetch_events(active);
    return next_event(c);
}

/* Returns the next event, which must be of that type; the caller acknowledges it. */
static inline struct rdma_cm_event *expect_event(int line, struct rdma_event_channel *c,
                                                 enum rdma_cm_event_type type)
{
    struct rdma_cm_event *e = next_event(c);
    if (!e) {
        printf("FAILED line %d: no event, expected %s\n", line, rdma_event_str(type));
        exit(1);
    }
    if (e->event != type) {
        printf("FAILED line %d: event %s (status %d), expected %s\n", line, rdma_event_str(e->event),
               e->status, rdma_event_str(type));
        exit(1);
    }
    return e;
}
#define EXPECT_EVENT(c, type)   expect_event(__LINE__, c, RDMA_CM_EVENT_##type)
#define EXPECT_AND_ACK(c, type) rdma_ack_cm_event(EXPECT_EVENT(c, type))

#define EXPECT_ERROR(call, error)                 \
    do {                                          \
        errno = 0;                                \
        EXPECT((call) == -1 && errno == (error)); \
    } while (0)

static inline struct rdma_cm_id *create_id(struct rdma_event_channel *c, enum rdma_port_space ps)
{
    struct rdma_cm_id *id = NULL;
    if (rdma_create_id(c, &id, (void *)0x77, ps)) {
        perror("rdma_create_id");
        exit(1);
    }
    return id;
}

static inline struct rdma_cm_id *start_listener(enum rdma_port_space ps, int backlog)
{
    struct sockaddr_in a = make_address("0.0.0.0", 0);
    struct rdma_cm_id *id = create_id(passive, ps);
    EXPECT(!rdma_bind_addr(id, to_sockaddr(&a)));
    EXPECT(!rdma_listen(id, backlog));
    EXPECT(rdma_get_src_port(id));
    return id;
}

/* Creates an identifier of the active end with a route to the port. */
static inline struct rdma_cm_id *create_routed_id(enum rdma_port_space ps, uint16_t port)
{
    struct sockaddr_in a = make_address("127.0.0.1", port);
    struct rdma_cm_id *id = create_id(active, ps);
    EXPECT(!rdma_resolve_addr(id, NULL, to_sockaddr(&a), 1000));
    EXPECT_AND_ACK(active, ADDR_RESOLVED);
    EXPECT(id->verbs && id->port_num && id->pd);
    EXPECT(!rdma_resolve_route(id, 1000));
    EXPECT_AND_ACK(active, ROUTE_RESOLVED);
    EXPECT(id->route.num_paths == 1 && id->route.path_rec);
    return id;
}

static inline uint16_t get_source_port(struct rdma_cm_id *id)
{
    return ntohs(rdma_get_src_port(id));
}

static inline void add_qp(struct rdma_cm_id *id, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr a = {
        .qp_type = type,
        .sq_sig_all = 1,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
    EXPECT(!rdma_create_qp(id, NULL, &a));
    EXPECT(id->qp && id->send_cq && id->recv_cq && id->send_cq_channel);
    EXPECT_ERROR(rdma_create_qp(id, NULL, &a), EINVAL);
}

static inline void destroy_id(struct rdma_cm_id *id)
{
    rdma_destroy_ep(id);
}

static inline enum ibv_qp_state get_qp_state(struct rdma_cm_id *id)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr i;
    return ibv_query_qp(id->qp, &a, IBV_QP_STATE, &i) ? IBV_QPS_UNKNOWN : a.qp_state;
}

static inline struct rdma_cm_id *expect_request(struct rdma_cm_id *l, const char *private_data,
                                                unsigned length)
{
    struct rdma_cm_event *e = EXPECT_EVENT(passive, CONNECT_REQUEST);
    struct rdma_cm_id *id = e->id;
    EXPECT(e->listen_id == l && id != l && id->context == (void *)0x77 && id->verbs &&
           id->channel == passive);
    EXPECT(e->param.conn.private_data_len == length);
    EXPECT(e->param.conn.private_data && !strcmp(e->param.conn.private_data, private_data));
    EXPECT(ntohs(rdma_get_src_port(id)) == get_source_port(l));
    rdma_ack_cm_event(e);
    return id;
}

static inline void open_channels(void)
{
    active = rdma_create_event_channel();
    passive = rdma_create_event_channel();
    if (!active || !passive) {
        perror("rdma_create_event_channel");
        exit(1);
    }
}

/* Closes both channels and returns the exit status of the test. */
static inline int close_channels(void)
{
    rdma_destroy_event_channel(active);
    rdma_destroy_event_channel(passive);
    printf(failures ? "%d failures\n" : "all calls have the expected results\n", failures);
    return failures != 0;
}

#endif
