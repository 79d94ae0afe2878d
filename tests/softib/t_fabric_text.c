/* t_fabric_text.c: the text of SOFTIB_FABRIC: valid settings, and the error message for each kind of mistake.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "expect.h"
#include "fabric/gid.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

static void test_valid_texts(void)
{
    struct fabric f;
    char err[256];
    EXPECT(fabric_parse("", &f, err, sizeof(err)) && f.nports == 1 && f.port[0].mtu == 4096 && !f.paced);
    fabric_free(&f);
    EXPECT(fabric_parse(
        "nodes=3 hcas=2 ports=2 lmc=3 mtu=1024 rate=10Gbit/s; # comment\n"
        "node1/hca1/2: rate=500MB/s latency=1.5us down=2s up=3s\n node2: latency=7us addr=10.1.2.3 base=5000",
        &f, err, sizeof(err)));
    EXPECT(f.nports == 12 && f.lmc == 3 && f.port[11].mtu == 1024 && f.paced);
    uint32_t p = fabric_port_index(&f, 1, 1, 2);
    EXPECT(f.port[p].rate == 500000000 && f.port[p].latency == 1500 && f.port[p].down_at == 2 * NS_S);
    EXPECT(f.port[0].rate == 1250000000 && f.port[0].latency == 0);
    EXPECT(f.port[fabric_port_index(&f, 2, 0, 1)].latency == 7000);
    EXPECT(f.port[fabric_port_index(&f, 2, 1, 1)].addr[0].s_addr == inet_addr("10.1.2.3") &&
           f.base_of[2] == 5000 && f.base_of[1] == f.base);
    for (uint32_t i = 0; i < f.nports; i++) {
        struct fab_place at;
        uint16_t lid = fabric_port_lid(&f, i);
        EXPECT(lid % 8 == 0 && fabric_find_lid(&f, (uint16_t)(lid + 5), &at) && at.linear == i &&
               at.path == 5);
        EXPECT(fabric_guid_lid(&f, fabric_port_guid(at.node, at.hca, at.port)) == lid);
    }
    struct fab_place none;
    EXPECT(!fabric_find_lid(&f, 0, &none) && !fabric_find_lid(&f, 7, &none) &&
           !fabric_find_lid(&f, 13 * 8, &none));
    fabric_free(&f);
}

/* The GID tables of all ports are disjoint, and each entry identifies its port to the ports of the same
 * network. */
static void test_gids(void)
{
    struct fabric f;
    struct gid g, other;
    char err[256];
    EXPECT(fabric_parse("nodes=3 ports=2 node1: link=ethernet node2: link=ethernet vlan=7", &f, err,
                        sizeof(err)) &&
           f.roce && gid_read_interfaces(&f, err, sizeof(err)));
    EXPECT(gid_table_size(&f, 0) == 1 && gid_table_size(&f, 2) == 4 && gid_table_size(&f, 4) == 6);
    EXPECT(gid_table_entry(&f, 0, 0, &g) && g.type == GID_INFINIBAND && gid_resolve(&f, 1, 0, g.raw) == 1);
    EXPECT(!gid_resolve(&f, 2, 0, g.raw) && !gid_table_entry(&f, 0, 1, &g));
    for (uint32_t i = 0; gid_table_entry(&f, 4, i, &g); i++) {
        EXPECT(g.type == (i % 2 ? GID_ROCE_V2 : GID_ROCE_V1) && (g.vlan == 7) == (i >= 4));
        EXPECT(gid_resolve(&f, 5, i, g.raw) == fabric_port_lid(&f, 4));
        EXPECT(gid_resolve(&f, 2, i, g.raw) == (i < 4 ? fabric_port_lid(&f, 4) : 0));
        EXPECT(!gid_resolve(&f, 0, 0, g.raw) && !gid_resolve(&f, 5, i < 4 ? 5 : 0, g.raw));
        EXPECT(gid_table_entry(&f, 5, i, &other) && memcmp(other.raw, g.raw, sizeof(g.raw)));
    }
    fabric_free(&f);
}

/* A port with netdev= has the addresses of the interface. */
static void test_interfaces(void)
{
    struct fabric f;
    struct gid g;
    char err[256];
    const uint8_t loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
    bool found = false;
    EXPECT(fabric_parse("nodes=2 link=ethernet node0: netdev=lo", &f, err, sizeof(err)));
    EXPECT(gid_read_interfaces(&f, err, sizeof(err)) && f.port[0].interface_index &&
           !f.port[1].interface_index);
    for (uint32_t i = 0; gid_table_entry(&f, 0, i, &g); i++)
        found |= !memcmp(g.raw, loopback, sizeof(loopback));
    EXPECT(found || !f.port[0].interface_addrs);
    EXPECT(!found || gid_resolve(&f, 1, 3, loopback) == fabric_port_lid(&f, 0));
    fabric_free(&f);
    EXPECT(fabric_parse("nodes=2 wire=tcp link=ethernet node1: netdev=no_such addr=10.9.9.9", &f, err,
                        sizeof(err)));
    EXPECT(gid_read_interfaces(&f, err, sizeof(err)) && f.port[1].interface_addrs == 1);
    f.node = 1;
    EXPECT(!gid_read_interfaces(&f, err, sizeof(err)) && strstr(err, "netdev=no_such"));
    fabric_free(&f);
}

/* A list of addresses of a node applies to all its ports, each on a separate rail; a port may have its own
 * list. */
static void test_addresses(void)
{
    struct fabric f;
    char err[256];
    EXPECT(fabric_parse("nodes=2 hcas=2 wire=tcp node0: addr=10.0.0.1 addr=10.1.0.1 addr=172.17.0.1"
                        " node1: addr=10.9.9.9 node1/hca1: addr=10.1.0.2 addr=10.0.0.2",
                        &f, err, sizeof(err)));
    EXPECT(f.port[0].addrs == 3 && f.port[1].addrs == 3 && f.port[2].addrs == 1 && f.port[3].addrs == 2);
    EXPECT(f.port[0].rail == 0 && f.port[1].rail == 1 && f.port[2].rail == 0 && f.port[3].rail == 0);
    EXPECT(f.port[1].addr[2].s_addr == inet_addr("172.17.0.1"));
    EXPECT(f.port[3].addr[0].s_addr == inet_addr("10.1.0.2"));
    struct in_addr at[FAB_NODE_ADDRS];
    EXPECT(fabric_addrs(&f, 0, at) == 3 && at[2].s_addr == inet_addr("172.17.0.1"));
    EXPECT(fabric_addrs(&f, 1, at) == 3 && at[0].s_addr == inet_addr("10.9.9.9") &&
           at[2].s_addr == inet_addr("10.0.0.2"));
    fabric_free(&f);
    EXPECT(fabric_parse("nodes=2 ports=2 wire=tcp node1: addr=10.9.9.9", &f, err, sizeof(err)));
    EXPECT(fabric_addrs(&f, 1, at) == 1 && at[0].s_addr == inet_addr("10.9.9.9"));
    fabric_free(&f);
}

/* Two ports are connected by one wire: its latency counts once and is that of the slower port. */
static void test_latency(void)
{
    struct fabric f;
    char err[256];
    EXPECT(fabric_parse("nodes=3 latency=20us node2: latency=50us", &f, err, sizeof(err)));
    EXPECT(fabric_latency(&f, 0, 1) == 20000 && fabric_latency(&f, 0, 2) == 50000 &&
           fabric_latency(&f, 2, 1) == 50000);
    fabric_free(&f);
}

static bool lacks_feature(const struct fabric *f, uint32_t linear, enum fab_feature what)
{
    return fabric_lacks_feature(f, linear, what);
}

/* without= as a list: each adapter lacks its own features, and so do all its ports. */
static void test_features(void)
{
    struct fabric f;
    char err[256];
    /* "ports" must precede the settings of ports. */
    EXPECT(fabric_parse("nodes=2,without=xrc,mw,ports=2", &f, err, sizeof(err)) == false);
    EXPECT(
        fabric_parse("nodes=2,ports=2,without=xrc,mw,mtu=2048 node1/hca0/2: without=srq, atomics rate=1GB/s",
                     &f, err, sizeof(err)));
    EXPECT(lacks_feature(&f, 0, FEATURE_XRC) && lacks_feature(&f, 0, FEATURE_MW) &&
           !lacks_feature(&f, 0, FEATURE_SRQ));
    EXPECT(lacks_feature(&f, 2, FEATURE_SRQ) && lacks_feature(&f, 3, FEATURE_ATOMICS) &&
           lacks_feature(&f, 3, FEATURE_XRC));
    EXPECT(f.port[0].mtu == 2048 && f.port[3].rate == 1000000000 && !f.port[2].rate);
    fabric_free(&f);
}

/* InfiniBand and Ethernet ports in one fabric; the MTU of an Ethernet port excludes the headers. */
static void test_links(void)
{
    struct fabric f;
    char err[256];
    EXPECT(fabric_parse("nodes=2 node1: link=ethernet vlan=7 netdev=eth3", &f, err, sizeof(err)));
    EXPECT(!f.port[0].ethernet && f.port[0].mtu == 4096);
    EXPECT(f.port[1].ethernet && f.port[1].mtu == 1024 && f.port[1].vlan == 7 &&
           !strcmp(f.port[1].netdev, "eth3"));
    fabric_free(&f);
    static const struct {
        const char *text;
        uint32_t mtu;
    } mtus[] = {
        {"mtu=9000", 4096}, {"mtu=4192", 4096}, {"mtu=4191", 2048}, {"mtu=352", 256}, {"mtu=2048", 2048}};
    for (size_t i = 0; i < ARRAY_LEN(mtus); i++) {
        char text[64];
        snprintf(text, sizeof(text), "link=ethernet %s", mtus[i].text);
        EXPECT(fabric_parse(text, &f, err, sizeof(err)) && f.port[0].mtu == mtus[i].mtu);
        fabric_free(&f);
    }
}

static void expect_rejected(const char *text, const char *names)
{
    struct fabric f;
    char err[256] = "";
    if (fabric_parse(text, &f, err, sizeof(err)) || !strstr(err, names)) {
        printf("FAILED: \"%s\" gave \"%s\", expected a refusal that names \"%s\"\n", text, err, names);
        failures++;
    }
}

int main(void)
{
    test_valid_texts();
    test_gids();
    test_interfaces();
    test_addresses();
    test_latency();
    test_features();
    test_links();
    expect_rejected("without=srqs", "did you mean srq?");
    expect_rejected("without=mw,atomic", "did you mean atomics?");
    expect_rejected("without=", "without=");
    expect_rejected("lnik=ethernet", "did you mean link?");
    expect_rejected("node=2", "did you mean nodes?");
    expect_rejected("latancy=5us", "did you mean latency?");
    expect_rejected("latency", "did you mean latency=?");
    expect_rejected("without=xrc nodes=2", "nodes=2");
    expect_rejected("without=xrc node0: srq", "srq");
    expect_rejected("node0: seed=3", "before the first node0:");
    expect_rejected("addr=10.0.0.1", "of one node");
    expect_rejected("link=token-ring", "link=token-ring");
    expect_rejected("link=ethrnet", "expected infiniband or ethernet");
    expect_rejected("wire=tpc", "expected shm or tcp");
    expect_rejected("hcas=99", "expected a number from 1 to 16");
    expect_rejected("ud_loss=2", "expected a probability from 0 to 1");
    expect_rejected("node0: rate=1GBs", "expected a rate such as");
    expect_rejected("nodes=2 node1: base=x", "expected a number from 1 to 64511");
    expect_rejected("vlan=4095 link=ethernet", "vlan=4095");
    expect_rejected("vlan=3", "link=ethernet");
    expect_rejected("mtu=9000", "mtu=9000");
    expect_rejected("link=ethernet mtu=300", "mtu=300");
    expect_rejected("nodes=2 link=ethernet netdev=eth0", "two ports");
    expect_rejected("link=ethernet netdev=a/b", "netdev=a/b");
    expect_rejected("nodes=0", "nodes=0");
    expect_rejected("nodes=x", "nodes=x");
    expect_rejected("nodes=-1", "nodes=-1");
    expect_rejected("colour=red", "colour=red");
    expect_rejected("nodes", "nodes");
    expect_rejected("mtu=1000", "mtu=1000");
    expect_rejected("rate=5", "rate=5");
    expect_rejected("rate=-1GB/s", "rate=-1GB/s");
    expect_rejected("latency=5", "latency=5");
    expect_rejected("high=0", "high=0");
    expect_rejected("high=16", "high=16");
    expect_rejected("bus=5", "bus=5");
    expect_rejected("pin=5", "pin=5");
    expect_rejected("ud_loss=1.5", "ud_loss=1.5");
    expect_rejected("ud_loss=nan", "ud_loss=nan");
    expect_rejected("ud_drop=2", "ud_drop=2");
    expect_rejected("nodes=2 node2: rate=1GB/s", "node2");
    expect_rejected("nodes=2 node1/hca1/1: rate=1GB/s", "node1/hca1/1");
    expect_rejected("nodes=2 node1/hca0/0: rate=1GB/s", "node1/hca0/0");
    expect_rejected("hcas=2 hca2: rate=1GB/s", "hca2");
    expect_rejected("hcas=2 hca: rate=1GB/s", "hca");
    expect_rejected("hcas=2 hca1/2: rate=1GB/s", "hca1/2");
    expect_rejected("hcas=2 hca1: addr=10.0.0.1", "one node");
    expect_rejected("hcas=2 hca1: base=5000", "one node");
    expect_rejected("rate=1GB/s nodes=2", "nodes=2");
    expect_rejected("nodes=1024 lmc=7", "LIDs");
    expect_rejected("nodes=1000 hcas=16", "LIDs");
    expect_rejected("wire=carrier-pigeon", "wire=carrier-pigeon");
    expect_rejected("nodes=2 node1: addr=localhost", "addr=localhost");
    expect_rejected(
        "nodes=1 node0: addr=1.1.1.1 addr=1.1.1.2 addr=1.1.1.3 addr=1.1.1.4 addr=1.1.1.5 addr=1.1.1.6 "
        "addr=1.1.1.7 addr=1.1.1.8 addr=1.1.1.9",
        "addr=1.1.1.9");
    return failures != 0;
}
