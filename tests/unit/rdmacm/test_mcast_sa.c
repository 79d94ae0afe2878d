/* test_mcast_sa.c: joins a multicast group of an InfiniBand subnet through a substitute for librdmacm
 * (stub.c): the requests, the route that the answer gives, refusals, and the release of all objects.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>

#include "base/err.h"
#include "net/ib/multicast/subnet_join.h"
#include "stub.h"
#include "test.h"

static struct stub *seen;

static struct ib_device make_device(uint8_t last)
{
    struct ib_device d = {.name = "mlx9_0 port 1", .port = 1};
    d.address.gid[0] = 0xfe;
    d.address.gid[1] = 0x80;
    d.address.gid[15] = last;
    return d;
}

static bool all_released(void)
{
    return seen->channels == 0 && seen->ids == 0 && seen->joins == 0 && seen->events == 0;
}

static int join_group(const struct ib_device *d, struct ibv_ah_attr *route, uint16_t *lid, void **joined)
{
    union ibv_gid gid = {.raw = {0xff, 0x15, [15] = 77}};
    *lid = 0;
    *joined = NULL;
    return ib_multicast_subnet_join(d, &gid, lid, route, joined);
}

static void test_join_and_leave(void)
{
    const struct ib_device d = make_device(9);
    struct ibv_ah_attr route = {0};
    uint16_t lid;
    void *joined;
    seen->answer = STUB_JOINS;
    EXPECT_EQ(join_group(&d, &route, &lid, &joined), 0);
    EXPECT_EQ(seen->space, 0x0111); /* RDMA_PS_UDP */
    EXPECT_EQ(seen->bound.family, 27);
    EXPECT(memcmp(seen->bound.gid, d.address.gid, 16) == 0);
    EXPECT_EQ(seen->requested.family, 27);
    EXPECT(seen->requested.gid[0] == 0xff && seen->requested.gid[1] == 0x15 && seen->requested.gid[15] == 77);
    EXPECT_EQ(lid, 0xc012);
    EXPECT(route.dlid == 0xc012 && route.sl == 3 && route.is_global == 1);
    EXPECT_EQ(seen->joins, 1);
    EXPECT_EQ(seen->events, 0);
    ib_multicast_subnet_leave(joined);
    EXPECT(all_released());
}

static void expect_join_error(enum stub_answer mood, const char *cause)
{
    const struct ib_device d = make_device(4);
    struct ibv_ah_attr route = {0};
    uint16_t lid;
    void *joined;
    seen->answer = mood;
    EXPECT(join_group(&d, &route, &lid, &joined) != 0);
    EXPECT(joined == NULL && lid == 0);
    const char *detail = err_detail(MPI_ERR_OTHER);
    EXPECT(detail && strstr(detail, "mlx9_0 port 1") && strstr(detail, cause));
    seen->joins = 0; /* leaving a group after a refused join is optional */
    EXPECT(all_released());
}

static void test_refusals_are_reported(void)
{
    expect_join_error(STUB_REFUSES, "subnet administrator");
    expect_join_error(STUB_NO_DEVICE, "No such device");
}

int main(void)
{
    void *library = dlopen("librdmacm.so.1", RTLD_NOW);
    seen = library ? dlsym(library, "stub") : NULL;
    if (!seen) {
        printf("the substitute for librdmacm (stub.c) is not found\n");
        return 1;
    }
    TEST_RUN(test_join_and_leave);
    TEST_RUN(test_refusals_are_reported);
    return test_result();
}
