/* t_rdmacm_address.c: addresses, ports, options and other calls of librdmacm on softib that need no
 * connection, and the errors that they report.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rdmacm_ends.h"
#include <infiniband/ib.h>

static void test_addresses(void)
{
    struct sockaddr_in far = make_address("192.0.2.1", 5), port0 = make_address("198.18.0.2", 0),
                       any = make_address("0.0.0.0", 5), other = make_address("198.18.0.1", 9);
    struct sockaddr strange = {.sa_family = AF_UNIX};
    struct rdma_cm_event *e;
    struct rdma_cm_id *id = create_id(active, RDMA_PS_TCP), *two = create_id(active, RDMA_PS_TCP);
    EXPECT_ERROR(rdma_bind_addr(id, to_sockaddr(&far)), EADDRNOTAVAIL);
    EXPECT_ERROR(rdma_bind_addr(id, &strange), EAFNOSUPPORT);
    EXPECT_ERROR(rdma_resolve_addr(id, NULL, &strange, 1), EAFNOSUPPORT);
    EXPECT_ERROR(rdma_resolve_addr(id, NULL, to_sockaddr(&any), 1), EINVAL);
    EXPECT_ERROR(rdma_resolve_route(id, 1), EINVAL);
    EXPECT_ERROR(rdma_create_id(active, &id, NULL, 77), EINVAL);
    EXPECT_ERROR(rdma_bind_addr(id, to_sockaddr(&port0)), EADDRNOTAVAIL); /* an address of the other node */
    EXPECT(!rdma_resolve_addr(id, NULL, to_sockaddr(&far), 1));
    e = EXPECT_EVENT(active, ADDR_ERROR);
    EXPECT(e->status == -EHOSTUNREACH);
    rdma_ack_cm_event(e);
    EXPECT(!rdma_resolve_addr(id, to_sockaddr(&far), to_sockaddr(&other), 1));
    e = EXPECT_EVENT(active, ADDR_ERROR);
    EXPECT(e->status == -EADDRNOTAVAIL);
    rdma_ack_cm_event(e);
    other.sin_port = 0;
    EXPECT(!rdma_bind_addr(id, to_sockaddr(&other)) && id->verbs && id->port_num == 1);
    other.sin_port = rdma_get_src_port(id);
    EXPECT_ERROR(rdma_bind_addr(id, to_sockaddr(&other)), EINVAL);
    if (!getenv("RDMACM_TCP")) { /* with wire=tcp only rdma_listen detects conflicts */
        int yes = 1;
        EXPECT_ERROR(rdma_bind_addr(two, to_sockaddr(&other)), EADDRINUSE);
        EXPECT(!rdma_set_option(two, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes)));
        EXPECT(!rdma_bind_addr(two, to_sockaddr(&other)));
        EXPECT_ERROR(rdma_listen(two, 1), EADDRINUSE);
    }
    port0.sin_port = htons(7);
    struct sockaddr_in no_port = make_address("198.18.0.1", 0);
    /* The source is the bound address, whatever rdma_resolve_addr names. */
    EXPECT(!rdma_resolve_addr(id, to_sockaddr(&no_port), to_sockaddr(&port0), 1));
    EXPECT_AND_ACK(active, ADDR_RESOLVED);
    EXPECT(rdma_get_src_port(id) == other.sin_port);
    destroy_id(id);
    EXPECT(!rdma_listen(two, 1));
    destroy_id(two);
}

static void test_options(void)
{
    struct rdma_cm_id *id = create_id(active, RDMA_PS_TCP);
    uint8_t tos = 8, timeout = 20, bad = 40;
    int yes = 1;
    struct ibv_ece ece = {.vendor_id = 7, .options = 9};
    struct ibv_path_data path = {0};
    EXPECT(!rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1));
    EXPECT(!rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
    EXPECT(!rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &yes, sizeof(yes)));
    EXPECT_ERROR(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &bad, 1), EINVAL);
    EXPECT_ERROR(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &yes, sizeof(yes)), EINVAL);
    EXPECT_ERROR(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 1), EINVAL);
    EXPECT_ERROR(rdma_set_option(id, RDMA_OPTION_ID, 99, &yes, sizeof(yes)), ENOSYS);
    EXPECT_ERROR(rdma_set_option(id, 99, 0, &yes, sizeof(yes)), ENOSYS);
    EXPECT_ERROR(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)), EINVAL);
    EXPECT(!rdma_set_local_ece(id, &ece) && !rdma_get_remote_ece(id, &ece) && !ece.vendor_id);
    struct sockaddr_in a = make_address("127.0.0.1", 9);
    EXPECT(!rdma_resolve_addr(id, NULL, to_sockaddr(&a), 1));
    EXPECT_AND_ACK(active, ADDR_RESOLVED);
    EXPECT(!rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)));
    EXPECT_AND_ACK(active, ROUTE_RESOLVED);
    destroy_id(id);
    EXPECT(!strcmp(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT), "RDMA_CM_EVENT_TIMEWAIT_EXIT"));
    EXPECT(rdma_event_str(99) && rdma_event_str(-1));
    int n = 0;
    struct ibv_context **list = rdma_get_devices(&n);
    EXPECT(list && n >= 1 && list[0] && !list[n]);
    rdma_free_devices(list);
    struct rdma_cm_event *none;
    fcntl(active->fd, F_SETFL, O_NONBLOCK);
    EXPECT_ERROR(rdma_get_cm_event(active, &none), EAGAIN);
    fcntl(active->fd, F_SETFL, 0);
    struct sockaddr_ib native = {.sib_family = AF_IB};
    id = create_id(active, RDMA_PS_TCP);
    EXPECT_ERROR(rdma_bind_addr(id, (struct sockaddr *)&native), EAFNOSUPPORT);
    EXPECT_ERROR(rdma_resolve_addr(id, NULL, (struct sockaddr *)&native, 1), EAFNOSUPPORT);
    destroy_id(id);
}

int main(void)
{
    open_channels();
    test_addresses();
    test_options();
    return close_channels();
}
