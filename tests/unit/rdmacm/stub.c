/* stub.c: a substitute for librdmacm whose answers the test chooses (stub.h), so that joining a multicast
 * group through the subnet administrator can be tested without InfiniBand. Checks each request against the
 * layout of <rdma/rdma_user_cm.h> and of sockaddr_ib.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "stub.h"

struct rdma_event_channel {
    int fd;
};
struct rdma_cm_event {
    void *id, *listen_id;
    int event, status;
    struct {
        const void *private_data;
        uint8_t private_data_len;
        struct ibv_ah_attr ah_attr;
        uint32_t qp_num, qkey;
    } ud;
};

struct stub stub = {.answer = STUB_JOINS};

struct rdma_event_channel *rdma_create_event_channel(void);
void rdma_destroy_event_channel(struct rdma_event_channel *c);
int rdma_create_id(struct rdma_event_channel *c, void **id, void *context, int space);
int rdma_destroy_id(void *id);
int rdma_bind_addr(void *id, const struct stub_address *a);
int rdma_join_multicast(void *id, const struct stub_address *a, void *context);
int rdma_leave_multicast(void *id, const struct stub_address *a);
int rdma_get_cm_event(struct rdma_event_channel *c, struct rdma_cm_event **out);
int rdma_ack_cm_event(struct rdma_cm_event *e);

struct rdma_event_channel *rdma_create_event_channel(void)
{
    struct rdma_event_channel *c = malloc(sizeof(*c));
    if (!c)
        return NULL;
    c->fd = stub.fd = eventfd(0, EFD_CLOEXEC);
    stub.channels++;
    return c;
}

void rdma_destroy_event_channel(struct rdma_event_channel *c)
{
    close(c->fd);
    free(c);
    stub.channels--;
}

int rdma_create_id(struct rdma_event_channel *c, void **id, void *context, int space)
{
    (void)c, (void)context;
    stub.space = space;
    stub.ids++;
    *id = malloc(1);
    return 0;
}

int rdma_destroy_id(void *id)
{
    free(id);
    stub.ids--;
    return 0;
}

int rdma_bind_addr(void *id, const struct stub_address *a)
{
    (void)id;
    stub.bound = *a;
    errno = ENODEV;
    return stub.answer == STUB_NO_DEVICE ? -1 : 0;
}

int rdma_join_multicast(void *id, const struct stub_address *a, void *context)
{
    const uint64_t one = 1;
    (void)id, (void)context;
    stub.requested = *a;
    stub.joins++;
    return write(stub.fd, &one, sizeof(one)) == (ssize_t)sizeof(one) ? 0 : -1;
}

int rdma_leave_multicast(void *id, const struct stub_address *a)
{
    (void)id;
    stub.joins -= memcmp(a->gid, stub.requested.gid, sizeof(a->gid)) == 0;
    return 0;
}

int rdma_get_cm_event(struct rdma_event_channel *c, struct rdma_cm_event **out)
{
    uint64_t n;
    struct rdma_cm_event *e = calloc(1, sizeof(*e));
    if (!e || read(c->fd, &n, sizeof(n)) != (ssize_t)sizeof(n))
        return -1;
    e->event = stub.answer == STUB_REFUSES
                   ? 13
                   : 12; /* RDMA_CM_EVENT_MULTICAST_ERROR, RDMA_CM_EVENT_MULTICAST_JOIN */
    e->status = stub.answer == STUB_REFUSES ? -EINVAL : 0;
    e->ud.ah_attr = (struct ibv_ah_attr){.dlid = 0xc012, .sl = 3, .is_global = 1, .port_num = 1};
    memcpy(&e->ud.ah_attr.grh.dgid, stub.requested.gid, 16);
    e->ud.qp_num = 0xffffff;
    stub.events++;
    *out = e;
    return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *e)
{
    free(e);
    stub.events--;
    return 0;
}
