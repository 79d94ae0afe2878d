/* subnet_join.c: joins a multicast group of an InfiniBand subnet through librdmacm, which is loaded at first
 * use. The address family AF_IB identifies ports and groups by GID, so IP over InfiniBand need not be
 * configured.
 *
 * SPDX-License-Identifier: Apache-2.0 */

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "net/ib/multicast/subnet_join.h"

#define PATIENCE       5000 /* ms; time limit for the subnet administrator's answer */
#define FAMILY_IB      27
#define PORT_SPACE_UDP 0x0111
#define EVENT_JOINED   12
#define NO_PARTITION   0xffff

/* Structures of librdmacm, whose header may not be installed at build time. */
struct address_ib {
    uint16_t family, partition;
    uint32_t flow;
    uint8_t gid[16];
    uint64_t service, service_mask, scope;
};
struct channel {
    int fd;
};
struct event {
    void *id, *listen_id;
    int kind, status;
    struct {
        const void *private_data;
        uint8_t private_length;
        struct ibv_ah_attr route;
        uint32_t qpn, qkey;
    } ud;
};

struct sa_join {
    struct channel *channel;
    void *id;
    struct address_ib group;
    struct channel *(*create_channel)(void);
    void (*destroy_channel)(struct channel *);
    int (*create_id)(struct channel *, void **, void *, int);
    int (*destroy_id)(void *);
    int (*bind_addr)(void *, void *);
    int (*join)(void *, void *, void *);
    int (*leave)(void *, void *);
    int (*get_event)(struct channel *, struct event **);
    int (*ack_event)(struct event *);
};

static bool join_load_library(struct sa_join *j)
{
    void *library = dlopen("librdmacm.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    struct {
        void **function;
        const char *name;
    } wanted[] = {{(void **)(void *)&j->create_channel, "rdma_create_event_channel"},
                  {(void **)(void *)&j->destroy_channel, "rdma_destroy_event_channel"},
                  {(void **)(void *)&j->create_id, "rdma_create_id"},
                  {(void **)(void *)&j->destroy_id, "rdma_destroy_id"},
                  {(void **)(void *)&j->bind_addr, "rdma_bind_addr"},
                  {(void **)(void *)&j->join, "rdma_join_multicast"},
                  {(void **)(void *)&j->leave, "rdma_leave_multicast"},
                  {(void **)(void *)&j->get_event, "rdma_get_cm_event"},
                  {(void **)(void *)&j->ack_event, "rdma_ack_cm_event"}};
    bool all = library != NULL;
    for (size_t i = 0; all && i < sizeof(wanted) / sizeof(*wanted); i++)
        all = (*wanted[i].function = dlsym(library, wanted[i].name)) != NULL;
    if (!all && library)
        dlclose(library);
    return all;
}

/* Waits for the subnet administrator's answer. */
static int join_await_answer(struct sa_join *j, union ibv_gid *gid, uint16_t *lid, struct ibv_ah_attr *route)
{
    struct pollfd fd = {.fd = j->channel->fd, .events = POLLIN};
    struct event *e;
    int n;
    do
        n = poll(&fd, 1, PATIENCE);
    while (n < 0 && errno == EINTR);
    if (n <= 0 || j->get_event(j->channel, &e) != 0)
        return ETIMEDOUT;
    int rc = e->kind == EVENT_JOINED ? e->status : ECONNREFUSED;
    if (rc == 0) {
        *route = e->ud.route;
        *gid = e->ud.route.grh.dgid;
        *lid = e->ud.route.dlid;
    }
    j->ack_event(e);
    return rc < 0 ? -rc : rc;
}

static int join_send_request(struct sa_join *j, const struct ib_device *d)
{
    struct address_ib mine = {.family = FAMILY_IB, .partition = NO_PARTITION};
    memcpy(mine.gid, d->address.gid, sizeof(mine.gid));
    j->channel = j->create_channel();
    if (!j->channel || j->create_id(j->channel, &j->id, NULL, PORT_SPACE_UDP) != 0 ||
        j->bind_addr(j->id, &mine) != 0 || j->join(j->id, &j->group, NULL) != 0)
        return errno ? errno : EIO;
    return 0;
}

int ib_multicast_subnet_join(const struct ib_device *d, union ibv_gid *gid, uint16_t *lid,
                             struct ibv_ah_attr *route, void **joined)
{
    struct sa_join *j = calloc(1, sizeof(*j));
    if (!j)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a multicast group");
    if (!join_load_library(j)) {
        free(j);
        return err_set(MPI_ERR_OTHER,
                       "%s: multicast groups need librdmacm.so.1, which is not installed: install the "
                       "librdmacm package of your system",
                       d->name);
    }
    j->group = (struct address_ib){.family = FAMILY_IB, .partition = NO_PARTITION};
    memcpy(j->group.gid, gid->raw, sizeof(j->group.gid));
    int rc = join_send_request(j, d);
    rc = rc ? rc : join_await_answer(j, gid, lid, route);
    if (rc != 0) {
        ib_multicast_subnet_leave(j);
        return err_set(
            MPI_ERR_OTHER,
            "%s: the subnet administrator (SA) refused to let this port join a multicast group (%s)", d->name,
            err_reason(rc));
    }
    *joined = j;
    return 0;
}

void ib_multicast_subnet_leave(void *joined)
{
    struct sa_join *j = joined;
    if (j->id) {
        j->leave(j->id, &j->group);
        j->destroy_id(j->id);
    }
    if (j->channel)
        j->destroy_channel(j->channel);
    free(j);
}
