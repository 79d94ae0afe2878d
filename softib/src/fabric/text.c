/* text.c: parses the text of SOFTIB_FABRIC. The text is a list of words. `key=value` is a setting of the
 * whole fabric. A scope, `node1/hca0/1:`, `node1/hca0:`, `node1:`, or `hca1/2:` (of every node), restricts
 * the settings after it to its ports. The value of `without=` is a list: words after it that are neither
 * settings nor scopes are further features.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/fabric.h"
#include "base/base.h"
#include "base/nearest.h"
#include "softib/barrier.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define LID_MAX          0xBFFFu
#define WITHOUT          "without"
#define ETHERNET_MTU_MAX 9216u
#define ETHERNET_MTU     1500u

struct parse {
    struct fabric *f;
    bool *match; /* ports of the current scope; NULL before the first scope */
    uint32_t scope_node;
    bool addr_given; /* the scope has an addr=: further ones are added to it */
    bool listing;    /* the last setting was without=: a single word is a further feature */
    char *err;
    size_t errlen;
};

static bool text_fail(struct parse *p, const char *what, const char *word)
{
    snprintf(p->err, p->errlen, "SOFTIB_FABRIC: %s in \"%s\"", what, word);
    return false;
}

static bool fail_value(struct parse *p, const char *expected, const char *word)
{
    snprintf(p->err, p->errlen, "SOFTIB_FABRIC: bad value in \"%s\": expected %s", word, expected);
    return false;
}

#define EXPECTED_RATE "a rate such as 10GB/s or 100Gbit/s"
#define EXPECTED_TIME "a time such as 500ns, 2us, 10ms or 1s"
#define EXPECTED_PORT "a port number from 1 to 64511"

static bool text_parse_unit(const char *unit, double *v, const char *const *names, const double *factors)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(unit, names[i])) {
            *v *= factors[i];
            return true;
        }
    return false;
}

static bool parse_time(const char *s, uint64_t *ns)
{
    static const char *const names[] = {"ns", "us", "ms", "s", NULL};
    static const double factors[] = {1, 1e3, 1e6, 1e9};
    char *end;
    double v = strtod(s, &end);
    if (end == s || !(v >= 0) || v > 1e9 || !text_parse_unit(end, &v, names, factors))
        return false;
    *ns = (uint64_t)v;
    return true;
}

static bool parse_rate(const char *s, uint64_t *bytes)
{
    static const char *const names[] = {"B/s", "KB/s", "MB/s", "GB/s", "Mbit/s", "Gbit/s", NULL};
    static const double factors[] = {1, 1e3, 1e6, 1e9, 1e6 / 8, 1e9 / 8};
    char *end;
    double v = strtod(s, &end);
    if (end == s || !(v > 0) || v > 1e15 || !text_parse_unit(end, &v, names, factors) || v < 1)
        return false;
    *bytes = (uint64_t)v;
    return true;
}

static bool parse_probability(const char *s, uint32_t *p)
{
    char *end;
    double v = strtod(s, &end);
    if (end == s || *end || !(v >= 0) || v > 1)
        return false;
    *p = v >= 1 ? UINT32_MAX : (uint32_t)(v * 4294967296.0);
    return true;
}

static bool parse_uint(const char *s, uint64_t lo, uint64_t hi, uint64_t *out)
{
    char *end;
    if (!isdigit((unsigned char)*s))
        return false;
    errno = 0;
    unsigned long long v = strtoull(s, &end, 0);
    if (*end || errno || v < lo || v > hi)
        return false;
    *out = v;
    return true;
}

static bool set_mtu(struct fabric *f, const char *v)
{
    uint64_t n;
    if (!parse_uint(v, 256, ETHERNET_MTU_MAX, &n))
        return false;
    f->mtu = (uint32_t)n; /* finish_mtu checks the value again: not every Ethernet MTU is an InfiniBand MTU */
    return true;
}

static bool set_u32(uint32_t *field, const char *v, uint64_t lo, uint64_t hi)
{
    uint64_t n;
    if (!parse_uint(v, lo, hi, &n))
        return false;
    *field = (uint32_t)n;
    return true;
}

static bool set_name(struct fabric *f, const char *v)
{
    if (!*v || strlen(v) >= sizeof(f->name) || strpbrk(v, "/@"))
        return false;
    strcpy(f->name, v);
    return true;
}

static bool text_set_base(uint16_t *field, const char *v)
{
    uint64_t n;
    if (!parse_uint(v, 1, 65535 - 1024, &n))
        return false;
    *field = (uint16_t)n;
    return true;
}

static bool set_base(struct fabric *f, const char *v)
{
    return text_set_base(&f->base, v);
}

static bool set_wire(struct fabric *f, const char *v)
{
    if (strcmp(v, "shm") && strcmp(v, "tcp"))
        return false;
    f->wire = strcmp(v, "tcp") ? WIRE_SHM : WIRE_TCP;
    return true;
}

static bool set_atomics(struct fabric *f, const char *v)
{
    f->atomics_global = !strcmp(v, "global");
    return f->atomics_global || !strcmp(v, "adapter");
}

static bool set_pin_cost(struct fabric *f, const char *v)
{
    return parse_time(v, &f->pin);
}

static bool set_seed(struct fabric *f, const char *v)
{
    return parse_uint(v, 1, UINT64_MAX, &f->seed);
}

/* Settings of the whole fabric: a number within bounds, a probability (no bounds), or a function. The first
 * SIZES settings must precede settings of ports in the text. */
#define SIZES     4
#define AT(field) offsetof(struct fabric, field)
static const struct global {
    const char *name;
    size_t at;
    uint32_t low, high;
    bool (*set)(struct fabric *f, const char *v);
    const char *expected; /* description of the values for error messages; NULL: from the bounds */
} globals[] = {
    {"nodes", AT(nodes), 1, FAB_MAX_PORTS, NULL, NULL},
    {"hcas", AT(hcas), 1, FAB_MAX_HCAS, NULL, NULL},
    {"ports", AT(ports), 1, 8, NULL, NULL},
    {"lmc", AT(lmc), 0, 7, NULL, NULL},
    {"switches", AT(switches), 1, SOFTIB_LEAVES_MAX, NULL, NULL},
    {"hub", AT(hub), 0, 1, NULL, NULL},
    {"groups", AT(groups), 1, FABRIC_GROUPS, NULL, NULL},
    {"sm", AT(sm), 0, 1, NULL, NULL},
    {"ud_loss", AT(ud_loss), 0, 0, NULL, NULL},
    {"ud_drop", AT(ud_drop), 0, 0, NULL, NULL},
    {"ud_dup", AT(ud_dup), 0, 0, NULL, NULL},
    {"ud_reorder", AT(ud_reorder), 0, 0, NULL, NULL},
    {"switch_loss", AT(sw_loss), 0, 0, NULL, NULL},
    {"name", 0, 0, 0, set_name, "a name without / and @"},
    {"mtu", 0, 0, 0, set_mtu, "256, 512, 1024, 2048 or 4096 bytes; up to 9216 with link=ethernet"},
    {"atomics", 0, 0, 0, set_atomics, "adapter or global"},
    {"pin", 0, 0, 0, set_pin_cost, EXPECTED_TIME},
    {"wire", 0, 0, 0, set_wire, "shm or tcp"},
    {"base", 0, 0, 0, set_base, EXPECTED_PORT},
    {"seed", 0, 0, 0, set_seed, "a number from 1 on"},
};

static const struct global *find_global(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(globals); i++)
        if (!strcmp(name, globals[i].name))
            return &globals[i];
    return NULL;
}

static bool set_global(struct fabric *f, const struct global *g, const char *v)
{
    uint32_t *field = (uint32_t *)(void *)((char *)f + g->at);
    if (g->set)
        return g->set(f, v);
    return g->high ? set_u32(field, v, g->low, g->high) : parse_probability(v, field);
}

static bool set_rate(struct fab_port *p, const char *v)
{
    return parse_rate(v, &p->rate);
}

static bool set_bus(struct fab_port *p, const char *v)
{
    return parse_rate(v, &p->bus);
}

static bool set_latency(struct fab_port *p, const char *v)
{
    return parse_time(v, &p->latency);
}

static bool set_high(struct fab_port *p, const char *v)
{
    uint64_t level;
    if (!parse_uint(v, 1, 15, &level))
        return false;
    p->high = (uint8_t)level;
    return true;
}

static bool set_down(struct fab_port *p, const char *v)
{
    return parse_time(v, &p->down_at);
}

static bool set_up(struct fab_port *p, const char *v)
{
    return parse_time(v, &p->up_at);
}

static bool set_link(struct fab_port *p, const char *v)
{
    p->ethernet = !strcmp(v, "ethernet");
    return p->ethernet || !strcmp(v, "infiniband");
}

static bool set_netdev(struct fab_port *p, const char *v)
{
    if (!*v || strlen(v) >= sizeof(p->netdev) || strpbrk(v, "/:"))
        return false;
    strcpy(p->netdev, v);
    return true;
}

static bool set_vlan(struct fab_port *p, const char *v)
{
    uint64_t n;
    if (!parse_uint(v, 1, 4094, &n))
        return false;
    p->vlan = (uint16_t)n;
    return true;
}

static bool set_missing_feature(struct fab_port *p, const char *v)
{
    for (unsigned i = 0; i < FEATURES; i++)
        if (!strcmp(v, fabric_features[i])) {
            p->without |= 1u << i;
            return true;
        }
    return false;
}

static const struct local {
    const char *name;
    bool (*set)(struct fab_port *p, const char *v);
    const char *expected;
} locals[] = {
    {"rate", set_rate, EXPECTED_RATE},
    {"bus", set_bus, EXPECTED_RATE},
    {"latency", set_latency, EXPECTED_TIME},
    {"down", set_down, EXPECTED_TIME},
    {"up", set_up, EXPECTED_TIME},
    {"link", set_link, "infiniband or ethernet"},
    {"netdev", set_netdev, "the name of a network interface"},
    {"vlan", set_vlan, "a number from 1 to 4094"},
    {"high", set_high, "a service level from 1 to 15"},
    {WITHOUT, set_missing_feature, NULL}, /* reported by unknown_feature */
};

static const struct local *find_local(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(locals); i++)
        if (!strcmp(name, locals[i].name))
            return &locals[i];
    return NULL;
}

/* Fails with an error that suggests the most similar known name. */
static bool fail_unknown(struct parse *p, const char *kind, struct nearest best, const char *word)
{
    char what[96];
    if (best.word)
        snprintf(what, sizeof(what), "unknown %s (did you mean %s?)", kind, best.word);
    else
        snprintf(what, sizeof(what), "unknown %s (see softib --help)", kind);
    return text_fail(p, what, word);
}

static bool unknown_setting(struct parse *p, const char *name, const char *word)
{
    struct nearest best = nearest_start_search(name);
    for (size_t i = 0; i < ARRAY_LEN(globals); i++)
        nearest_compare_candidate(&best, globals[i].name);
    for (size_t i = 0; i < ARRAY_LEN(locals); i++)
        nearest_compare_candidate(&best, locals[i].name);
    nearest_compare_candidate(&best, "addr");
    return fail_unknown(p, "setting", best, word);
}

static bool unknown_feature(struct parse *p, const char *name, const char *word)
{
    struct nearest best = nearest_start_search(name);
    for (unsigned i = 0; i < FEATURES; i++)
        nearest_compare_candidate(&best, fabric_features[i]);
    return fail_unknown(p, "feature", best, word);
}

static bool unknown_word(struct parse *p, const char *word)
{
    struct nearest best = nearest_start_search(word);
    char what[96];
    for (size_t i = 0; i < ARRAY_LEN(globals); i++)
        nearest_compare_candidate(&best, globals[i].name);
    for (size_t i = 0; i < ARRAY_LEN(locals); i++)
        nearest_compare_candidate(&best, locals[i].name);
    if (!best.word)
        return text_fail(p, "expected key=value or node0/hca0/1:", word);
    snprintf(what, sizeof(what), "expected key=value or node0/hca0/1: (did you mean %s=?)", best.word);
    return text_fail(p, what, word);
}

/* Allocates the ports. Sizes are final from the first use of a port or node on, or at the end of the text. */
static bool text_allocate_ports(struct parse *p, const char *word)
{
    struct fabric *f = p->f;
    if (f->port)
        return true;
    f->nports = f->nodes * f->hcas * f->ports;
    if (f->nports > FAB_MAX_PORTS || ((f->nports + 1) << f->lmc) > LID_MAX)
        return text_fail(p, "more ports than there are LIDs: lower nodes=, hcas=, ports= or lmc=", word);
    f->port = calloc(f->nports, sizeof(*f->port));
    f->base_of = calloc(f->nodes, sizeof(*f->base_of));
    if (!f->port || !f->base_of)
        return text_fail(p, "out of memory", word);
    for (uint32_t i = 0; i < f->nports; i++) {
        f->port[i].down_at = f->port[i].up_at = NEVER;
        f->port[i].addr[0].s_addr = htonl(INADDR_LOOPBACK);
        f->port[i].addrs = 1;
    }
    return true;
}

static bool begin_scope(struct parse *p, const char *word)
{
    if (!text_allocate_ports(p, word))
        return false;
    if (!p->match && !(p->match = calloc(p->f->nports, sizeof(bool))))
        return text_fail(p, "out of memory", word);
    if (!fabric_select(p->f, word, p->match))
        return text_fail(p, "no such node, HCA or port (write node0/hca0/1)", word);
    p->scope_node = strncmp(word, "node", 4) ? p->f->nodes : (uint32_t)strtoul(word + 4, NULL, 10);
    p->addr_given = false;
    return true;
}

/* Adds an IP address to the ports in scope. If several ports share one list, each port uses a different one
 * of the addresses that answer, so that each network of a node becomes a rail. */
static bool add_addr(struct parse *p, const char *v, const char *word)
{
    struct fabric *f = p->f;
    struct in_addr a;
    if (inet_pton(AF_INET, v, &a) != 1)
        return text_fail(p, "bad IPv4 address", word);
    uint8_t nth = 0;
    for (uint32_t i = 0; i < f->nports; i++) {
        struct fab_port *port = &f->port[i];
        if (!p->match[i])
            continue;
        port->addrs = p->addr_given ? port->addrs : 0;
        port->rail = nth++;
        if (port->addrs == FAB_ADDRS)
            return text_fail(p, "more than 8 addresses of one port", word);
        port->addr[port->addrs++] = a;
    }
    p->addr_given = true;
    return true;
}

static bool set_ports(struct parse *p, const struct local *l, const char *v, const char *word)
{
    struct fabric *f = p->f;
    if (!text_allocate_ports(p, word))
        return false;
    for (uint32_t i = 0; i < f->nports; i++)
        if ((!p->match || p->match[i]) && !l->set(&f->port[i], v))
            return l->set == set_missing_feature ? unknown_feature(p, v, word)
                                                 : fail_value(p, l->expected, word);
    return true;
}

static bool scoped_address(struct parse *p, const char *k, const char *v, const char *word)
{
    struct fabric *f = p->f;
    if (p->scope_node == f->nodes)
        return text_fail(p, "an address is of one node: write it after node0:", word);
    if (!strcmp(k, "addr"))
        return add_addr(p, v, word);
    return text_set_base(&f->base_of[p->scope_node], v) ? true : fail_value(p, EXPECTED_PORT, word);
}

static bool fail_global(struct parse *p, const struct global *g, const char *word)
{
    char bounds[64] = "a probability from 0 to 1";
    if (g->high)
        snprintf(bounds, sizeof(bounds), "a number from %u to %u", g->low, g->high);
    return fail_value(p, g->expected ? g->expected : bounds, word);
}

static bool text_parse_setting(struct parse *p, char *word)
{
    struct fabric *f = p->f;
    char copy[256];
    snprintf(copy, sizeof(copy), "%s", word);
    char *v = strchr(copy, '=');
    if (!v && p->listing)
        return set_ports(p, find_local(WITHOUT), copy, word);
    if (!v)
        return unknown_word(p, word);
    *v++ = 0;
    p->listing = !strcmp(copy, WITHOUT);
    if (p->match && (!strcmp(copy, "addr") || !strcmp(copy, "base")))
        return scoped_address(p, copy, v, word);
    const struct global *g = find_global(copy);
    const struct local *l = find_local(copy);
    if (l)
        return set_ports(p, l, v, word);
    if (!strcmp(copy, "addr"))
        return text_fail(p, "an address is of one node: write it after node0:", word);
    if (!g)
        return unknown_setting(p, copy, word);
    if (p->match)
        return text_fail(p, "a setting of the whole fabric: write it before the first node0:", word);
    if (f->port && g < globals + SIZES)
        return text_fail(p, "nodes=, hcas=, ports= and lmc= must come before the settings of ports", word);
    return set_global(f, g, v) ? true : fail_global(p, g, word);
}

static bool parse_words(struct parse *p, char *copy)
{
    char *save = NULL;
    for (char *w = strtok_r(copy, " \t\r\n;,", &save); w; w = strtok_r(NULL, " \t\r\n;,", &save)) {
        size_t n = strlen(w);
        if (w[n - 1] == ':') {
            w[n - 1] = 0;
            p->listing = false;
            if (!begin_scope(p, w))
                return false;
        } else if (!text_parse_setting(p, w)) {
            return false;
        }
    }
    return text_allocate_ports(p, "the sizes");
}

static void strip_comments(char *s)
{
    for (bool in = false; *s; s++) {
        in = *s == '#' ? true : *s == '\n' ? false : in;
        if (in)
            *s = ' ';
    }
}

/* Copies to all ports of an adapter what they share: the bus, and the missing features. */
static void copy_adapter_settings(struct fabric *f)
{
    for (uint32_t i = 0; i < f->nports; i++) {
        struct fab_port *first = &f->port[fabric_bus_port(f, i)];
        first->bus = max_u64(first->bus, f->port[i].bus);
        first->without |= f->port[i].without;
    }
    for (uint32_t i = 0; i < f->nports; i++) {
        const struct fab_port *first = &f->port[fabric_bus_port(f, i)];
        f->port[i].bus = first->bus;
        f->port[i].without = first->without;
        f->paced |= f->port[i].rate || f->port[i].latency || f->port[i].bus;
    }
}

/* Computes each port's MTU: InfiniBand's are powers of two; over Ethernet the largest one that fits with
 * the headers. */
static bool finish_mtu(struct parse *p)
{
    struct fabric *f = p->f;
    bool odd = f->mtu && (f->mtu > 4096 || (f->mtu & (f->mtu - 1)));
    char word[24];
    snprintf(word, sizeof(word), "mtu=%u", f->mtu);
    for (uint32_t i = 0; i < f->nports; i++) {
        if (odd && !f->port[i].ethernet)
            return text_fail(p, "an MTU that only ports with link=ethernet can have", word);
        uint32_t mtu = f->mtu ? f->mtu : f->port[i].ethernet ? ETHERNET_MTU : 4096;
        f->port[i].mtu = odd || !f->mtu ? fabric_mtu_of_ethernet(mtu) : mtu;
        if (!f->port[i].ethernet)
            f->port[i].mtu = mtu;
        if (!f->port[i].mtu)
            return text_fail(p, "an Ethernet too small for the headers of RoCE", word);
    }
    return true;
}

/* Checks that each interface is used once and each of its GIDs names one port. */
static bool finish_links(struct parse *p)
{
    struct fabric *f = p->f;
    for (uint32_t i = 0; i < f->nports; i++) {
        const struct fab_port *a = &f->port[i];
        f->roce |= a->ethernet;
        if ((*a->netdev || a->vlan) && !a->ethernet)
            return text_fail(p, "only a port with link=ethernet has it", *a->netdev ? a->netdev : "vlan");
        for (uint32_t k = 0; k < i && *a->netdev; k++)
            if (!strcmp(a->netdev, f->port[k].netdev) &&
                (f->wire == WIRE_SHM || i / (f->hcas * f->ports) == k / (f->hcas * f->ports)))
                return text_fail(
                    p, "two ports cannot have one network interface (write node0/hca0/1: netdev=...)",
                    a->netdev);
    }
    return true;
}

bool fabric_parse(const char *text, struct fabric *f, char *err, size_t errlen)
{
    memset(f, 0, sizeof(*f));
    strcpy(f->name, "softib");
    f->nodes = f->hcas = f->ports = 1;
    f->seed = 1;
    f->switches = 1;
    f->groups = FABRIC_GROUPS;
    f->base = 47200;
    f->id = hash_bytes(text, strlen(text), 1469598103934665603ull);

    struct parse p = {.f = f, .err = err, .errlen = errlen};
    char *copy = strdup(text);
    bool ok = copy != NULL;
    if (ok) {
        strip_comments(copy);
        ok = parse_words(&p, copy) && finish_mtu(&p) && finish_links(&p);
    }
    for (uint32_t i = 0; ok && i < f->nodes; i++)
        if (!f->base_of[i])
            f->base_of[i] = f->base;
    if (ok)
        copy_adapter_settings(f);
    free(p.match);
    free(copy);
    if (!ok)
        fabric_free(f);
    return ok;
}

static char *read_small_file(const char *path)
{
    FILE *in = fopen(path, "re");
    if (!in)
        return NULL;
    char *buf = calloc(1, FAB_TEXT_MAX);
    size_t n = buf ? fread(buf, 1, FAB_TEXT_MAX, in) : 0;
    fclose(in);
    if (n == FAB_TEXT_MAX) {
        free(buf);
        errno = EFBIG;
        return NULL;
    }
    return buf;
}

char *fabric_text(char *err, size_t errlen)
{
    const char *v = getenv("SOFTIB_FABRIC");
    char *text = !v ? strdup("") : strchr("/.", *v) && *v ? read_small_file(v) : strdup(v);
    if (!text)
        snprintf(err, errlen, "SOFTIB_FABRIC: cannot read %s: %s", v, strerror(errno));
    else if (strlen(text) >= FAB_TEXT_MAX) {
        snprintf(err, errlen, "SOFTIB_FABRIC: longer than %u bytes", FAB_TEXT_MAX);
        free(text);
        text = NULL;
    }
    return text;
}
