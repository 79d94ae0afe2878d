/* t_query.c: queries that programs use at start: names of states and errors, rates, GIDs and partition
 * keys, the adapter's clock, thread domains and parent domains.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "vt.h"
#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

/* Checks that every value has a distinct name, and that an invalid value has a name too. */
#define CHECK_NAMES(of, type, first, last)                                                \
    do {                                                                                  \
        const char *before = "";                                                          \
        for (int i = (first); i <= (last); i++) {                                         \
            const char *name = of((type)i);                                               \
            CHECK(name &&*name &&strcmp(name, before) != 0, #of "(%d) is '%s'", i, name); \
            before = name;                                                                \
        }                                                                                 \
        CHECK(of((type)((last) + 1000)), #of " of an invalid value");                     \
    } while (0)

static void test_names(void)
{
    CHECK_NAMES(ibv_node_type_str, enum ibv_node_type, IBV_NODE_CA, IBV_NODE_RNIC);
    CHECK_NAMES(ibv_port_state_str, enum ibv_port_state, IBV_PORT_NOP, IBV_PORT_ACTIVE_DEFER);
    CHECK_NAMES(ibv_event_type_str, enum ibv_event_type, IBV_EVENT_CQ_ERR, IBV_EVENT_WQ_FATAL);
    CHECK_NAMES(ibv_wc_status_str, enum ibv_wc_status, IBV_WC_SUCCESS, IBV_WC_GENERAL_ERR);
}

static void test_rates(void)
{
    static const struct {
        enum ibv_rate rate;
        int mult, mbps;
    } known[] = {{IBV_RATE_2_5_GBPS, 1, 2500},    {IBV_RATE_10_GBPS, 4, 10000},
                 {IBV_RATE_40_GBPS, 16, 40000},   {IBV_RATE_120_GBPS, 48, 120000},
                 {IBV_RATE_100_GBPS, -1, 103125}, {IBV_RATE_200_GBPS, -1, 206250}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        CHECK(ibv_rate_to_mbps(known[i].rate) == known[i].mbps, "rate %d", known[i].rate);
        CHECK(mbps_to_ibv_rate(known[i].mbps) == known[i].rate, "rate %d", known[i].rate);
        if (known[i].mult < 0)
            continue;
        CHECK(ibv_rate_to_mult(known[i].rate) == known[i].mult, "rate %d", known[i].rate);
        CHECK(mult_to_ibv_rate(known[i].mult) == known[i].rate, "rate %d", known[i].rate);
    }
    CHECK(mbps_to_ibv_rate(7) == IBV_RATE_MAX && mult_to_ibv_rate(3) == IBV_RATE_MAX);
    CHECK(ibv_rate_to_mbps(IBV_RATE_MAX) == -1 && ibv_rate_to_mult(IBV_RATE_MAX) == -1);
}

/* ibv_query_gid, ibv_query_gid_ex and ibv_query_gid_table return the GID in use. */
static void test_addresses(struct vt *t)
{
    struct ibv_gid_entry one, table[64];
    union ibv_gid gid;
    uint16_t pkey = 0;
    const uint32_t index = t->gid_index < 0 ? 0 : (uint32_t)t->gid_index;
    CHECK(!ibv_query_gid(t->ctx, 1, (int)index, &gid));
    CHECK(!ibv_query_gid_ex(t->ctx, 1, index, &one, 0), "ibv_query_gid_ex does not find the GID in use");
    CHECK(memcmp(&one.gid, &gid, sizeof(gid)) == 0 && one.port_num == 1 && one.gid_index == index);
    ssize_t n = ibv_query_gid_table(t->ctx, table, 64, 0);
    CHECK(n > 0, "ibv_query_gid_table returned %zd", n);
    CHECK(ibv_query_gid_table(t->ctx, table, (size_t)n - 1, 0) < 0,
          "a table of %zd entries, room for one less", n);
    bool found = false;
    for (ssize_t i = 0; i < n; i++)
        found = found || memcmp(&table[i].gid, &gid, sizeof(gid)) == 0;
    CHECK(found, "ibv_query_gid_table does not contain the GID in use");
    CHECK(ibv_query_gid(t->ctx, 1, -1, &gid) != 0 && ibv_query_gid_ex(t->ctx, 99, 0, &one, 0) != 0);
    CHECK(ibv_query_gid_table(t->ctx, table, 64, 1) < 0, "unknown flags were accepted");
    CHECK(!ibv_query_pkey(t->ctx, 1, 0, &pkey) && pkey == 0xffff, "partition key 0x%x", ntohs(pkey));
    CHECK(ibv_get_pkey_index(t->ctx, 1, pkey) == 0 && ibv_get_pkey_index(t->ctx, 1, htons(0x1234)) == -1);
}

/* The adapter's clock, if it has one, advances. */
static void test_clocks(struct vt *t)
{
    struct ibv_values_ex a = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK}, b = a, wrong = {.comp_mask = 1u << 30};
    if (ibv_query_rt_values_ex(t->ctx, &a) == 0) {
        CHECK(!ibv_query_rt_values_ex(t->ctx, &b));
        CHECK(b.raw_clock.tv_sec > a.raw_clock.tv_sec ||
              (b.raw_clock.tv_sec == a.raw_clock.tv_sec && b.raw_clock.tv_nsec >= a.raw_clock.tv_nsec));
    }
    CHECK(ibv_query_rt_values_ex(t->ctx, &wrong) != 0, "a query of unknown values was accepted");
}

/* A parent domain: regions of either domain are valid in both, and the protection domain cannot be freed
 * before the parent domain. */
static void test_domains(struct vt *t)
{
    struct ibv_td_init_attr none = {0};
    struct ibv_td *td = ibv_alloc_td(t->ctx, &none);
    if (!td)
        return; /* the adapter has no parent domains */
    struct ibv_pd *outer = ibv_alloc_pd(t->ctx);
    struct ibv_parent_domain_init_attr attr = {.pd = outer, .td = td};
    struct ibv_pd *inner = ibv_alloc_parent_domain(t->ctx, &attr);
    CHECK(outer && inner, "cannot create a parent domain: %s", strerror(errno));
    CHECK(ibv_dealloc_pd(outer) == EBUSY, "deallocated a protection domain that a parent domain uses");
    CHECK(!ibv_dealloc_pd(inner) && !ibv_dealloc_pd(outer) && !ibv_dealloc_td(td));
    attr.pd = NULL;
    CHECK(!ibv_alloc_parent_domain(t->ctx, &attr), "created a parent domain without a protection domain");
}

static void test_forks(struct vt *t)
{
    CHECK(!ibv_fork_init());
    CHECK(ibv_is_fork_initialized() != IBV_FORK_DISABLED);
    struct ibv_device_attr_ex all;
    CHECK(!ibv_query_device_ex(t->ctx, NULL, &all) && all.orig_attr.phys_port_cnt >= 1);
    CHECK(ibv_get_device_name(t->ctx->device) && ibv_get_device_guid(t->ctx->device) != 0);
}

static void run_test(struct vt *t)
{
    test_names();
    test_rates();
    test_addresses(t);
    test_clocks(t);
    test_domains(t);
    test_forks(t);
    vt_sync(t);
}

int main(void)
{
    return vt_run(run_test);
}
