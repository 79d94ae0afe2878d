/* fabric.c: parses the text of SOFTIB_FABRIC. The text is a list of words: `key=value` sets something for the
 * whole fabric; `node1/hca0/1:` (any tail may be left out) or `hca1/2:` (of every node) limits the settings that
 * follow it to those ports.
 * The table below lists all settings.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/fabric.h"
#include "base/base.h"
#include "softib/barrier.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define LID_MAX   0xBFFFu
#define GUID_BASE 0x0250f71b00000000ull /* locally administered */

struct parse {
    struct fabric *f;
    bool *match; /* ports the current scope names; NULL before the first scope */
    uint32_t scope_node;
    bool addr_given; /* in this scope: a further one is added to it */
    char *err;
    size_t errlen;
};

static bool fail(struct parse *p, const char *what, const char *word)
{
    snprintf(p->err, p->errlen, "SOFTIB_FABRIC: %s in \"%s\"", what, word);
    return false;
}

static bool scale(const char *unit, double *v, const char *const *names, const double *factors)
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
    if (end == s || !(v >= 0) || v > 1e9 || !scale(end, &v, names, factors))
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
    if (end == s || !(v > 0) || v > 1e15 || !scale(end, &v, names, factors) || v < 1)
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
    if (!parse_uint(v, 256, 4096, &n) || (n & (n - 1)))
        return false;
    f->mtu = (uint32_t)n;
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

static bool set_base(uint16_t *field, const char *v)
{
    uint64_t n;
    if (!parse_uint(v, 1, 65535 - 1024, &n))
        return false;
    *field = (uint16_t)n;
    return true;
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

/* Settings of the whole fabric. Sizes must come before the first scope. Returns 1 known, 0 unknown, -1 bad.
 */
static int set_global(struct fabric *f, const char *k, const char *v)
{
    uint64_t n;
    if (!strcmp(k, "name"))
        return set_name(f, v) ? 1 : -1;
    if (!strcmp(k, "nodes"))
        return set_u32(&f->nodes, v, 1, FAB_MAX_PORTS) ? 1 : -1;
    if (!strcmp(k, "hcas"))
        return set_u32(&f->hcas, v, 1, FAB_MAX_HCAS) ? 1 : -1;
    if (!strcmp(k, "ports"))
        return set_u32(&f->ports, v, 1, 8) ? 1 : -1;
    if (!strcmp(k, "lmc"))
        return set_u32(&f->lmc, v, 0, 7) ? 1 : -1;
    if (!strcmp(k, "mtu"))
        return set_mtu(f, v) ? 1 : -1;
    if (!strcmp(k, "ud_loss"))
        return parse_probability(v, &f->ud_loss) ? 1 : -1;
    if (!strcmp(k, "ud_drop"))
        return parse_probability(v, &f->ud_drop) ? 1 : -1;
    if (!strcmp(k, "ud_dup"))
        return parse_probability(v, &f->ud_dup) ? 1 : -1;
    if (!strcmp(k, "ud_reorder"))
        return parse_probability(v, &f->ud_reorder) ? 1 : -1;
    if (!strcmp(k, "switch_loss"))
        return parse_probability(v, &f->sw_loss) ? 1 : -1;
    if (!strcmp(k, "switches"))
        return set_u32(&f->switches, v, 1, SOFTIB_LEAVES_MAX) ? 1 : -1;
    if (!strcmp(k, "hub"))
        return set_u32(&f->hub, v, 0, 1) ? 1 : -1;
    if (!strcmp(k, "atomics"))
        return set_atomics(f, v) ? 1 : -1;
    if (!strcmp(k, "pin"))
        return parse_time(v, &f->pin) ? 1 : -1;
    if (!strcmp(k, "groups"))
        return set_u32(&f->groups, v, 1, FABRIC_GROUPS) ? 1 : -1;
    if (!strcmp(k, "sm"))
        return set_u32(&f->sm, v, 0, 1) ? 1 : -1;
    if (!strcmp(k, "wire"))
        return set_wire(f, v) ? 1 : -1;
    if (!strcmp(k, "base"))
        return set_base(&f->base, v) ? 1 : -1;
    if (strcmp(k, "seed"))
        return 0;
    if (!parse_uint(v, 1, UINT64_MAX, &n))
        return -1;
    f->seed = n;
    return 1;
}

static bool set_port(struct fab_port *p, const char *k, const char *v, bool *known)
{
    *known = true;
    if (!strcmp(k, "rate"))
        return parse_rate(v, &p->rate);
    if (!strcmp(k, "bus"))
        return parse_rate(v, &p->bus);
    if (!strcmp(k, "latency"))
        return parse_time(v, &p->latency);
    if (!strcmp(k, "down"))
        return parse_time(v, &p->down_at);
    if (!strcmp(k, "up"))
        return parse_time(v, &p->up_at);
    *known = false;
    return false;
}

/* The sizes are fixed by the first use of a port, a node or the end of the text. */
static bool settle(struct parse *p, const char *word)
{
    struct fabric *f = p->f;
    if (f->port)
        return true;
    f->nports = f->nodes * f->hcas * f->ports;
    if (f->nports > FAB_MAX_PORTS || ((f->nports + 1) << f->lmc) > LID_MAX)
        return fail(p, "more ports than there are LIDs: lower nodes=, hcas=, ports= or lmc=", word);
    f->port = calloc(f->nports, sizeof(*f->port));
    f->base_of = calloc(f->nodes, sizeof(*f->base_of));
    if (!f->port || !f->base_of)
        return fail(p, "out of memory", word);
    for (uint32_t i = 0; i < f->nports; i++) {
        f->port[i].down_at = f->port[i].up_at = NEVER;
        f->port[i].addr[0].s_addr = htonl(INADDR_LOOPBACK);
        f->port[i].addrs = 1;
    }
    return true;
}

static bool enter_scope(struct parse *p, const char *word)
{
    if (!settle(p, word))
        return false;
    if (!p->match && !(p->match = calloc(p->f->nports, sizeof(bool))))
        return fail(p, "out of memory", word);
    if (!fabric_select(p->f, word, p->match))
        return fail(p, "no such node, HCA or port (write node0/hca0/1)", word);
    p->scope_node = strncmp(word, "node", 4) ? p->f->nodes : (uint32_t)strtoul(word + 4, NULL, 10);
    p->addr_given = false;
    return true;
}

/* Adds to the ports in scope an address under which they may be reached. Where several ports have one list,
 * each takes another of those that answer: so the networks a node is on become its rails. */
static bool add_addr(struct parse *p, const char *v, const char *word)
{
    struct fabric *f = p->f;
    struct in_addr a;
    if (inet_pton(AF_INET, v, &a) != 1)
        return fail(p, "bad IPv4 address", word);
    uint8_t nth = 0;
    for (uint32_t i = 0; i < f->nports; i++) {
        struct fab_port *port = &f->port[i];
        if (!p->match[i])
            continue;
        port->addrs = p->addr_given ? port->addrs : 0;
        port->rail = nth++;
        if (port->addrs == FAB_ADDRS)
            return fail(p, "more than 8 addresses of one port", word);
        port->addr[port->addrs++] = a;
    }
    p->addr_given = true;
    return true;
}

static bool set_ports(struct parse *p, const char *k, const char *v, const char *word)
{
    struct fabric *f = p->f;
    if (!settle(p, word))
        return false;
    for (uint32_t i = 0; i < f->nports; i++) {
        bool known;
        if (p->match && !p->match[i])
            continue;
        if (!set_port(&f->port[i], k, v, &known))
            return fail(p, known ? "bad value" : "unknown setting", word);
    }
    return true;
}

static bool setting(struct parse *p, char *word)
{
    struct fabric *f = p->f;
    char copy[256];
    snprintf(copy, sizeof(copy), "%s", word);
    char *v = strchr(copy, '=');
    if (!v)
        return fail(p, "expected key=value or node0/hca0/1:", word);
    *v++ = 0;
    if (p->match && p->scope_node == f->nodes && (!strcmp(copy, "addr") || !strcmp(copy, "base")))
        return fail(p, "an address is of one node: write it after node0:", word);
    if (p->match && !strcmp(copy, "addr"))
        return add_addr(p, v, word);
    if (p->match && !strcmp(copy, "base"))
        return set_base(&f->base_of[p->scope_node], v) ? true : fail(p, "bad value", word);
    if (!p->match) {
        int r = set_global(f, copy, v);
        bool size =
            !strcmp(copy, "nodes") || !strcmp(copy, "hcas") || !strcmp(copy, "ports") || !strcmp(copy, "lmc");
        if (r > 0 && size && f->port)
            return fail(p, "nodes=, hcas=, ports= and lmc= must come before the settings of ports", word);
        if (r)
            return r > 0 ? true : fail(p, "bad value", word);
    }
    return set_ports(p, copy, v, word);
}

static bool parse_words(struct parse *p, char *copy)
{
    char *save = NULL;
    for (char *w = strtok_r(copy, " \t\r\n;,", &save); w; w = strtok_r(NULL, " \t\r\n;,", &save)) {
        size_t n = strlen(w);
        if (w[n - 1] == ':') {
            w[n - 1] = 0;
            if (!enter_scope(p, w))
                return false;
        } else if (!setting(p, w)) {
            return false;
        }
    }
    return settle(p, "the sizes");
}

static void strip_comments(char *s)
{
    for (bool in = false; *s; s++) {
        in = *s == '#' ? true : *s == '\n' ? false : in;
        if (in)
            *s = ' ';
    }
}

bool fabric_parse(const char *text, struct fabric *f, char *err, size_t errlen)
{
    memset(f, 0, sizeof(*f));
    strcpy(f->name, "softib");
    f->nodes = f->hcas = f->ports = 1;
    f->mtu = 4096;
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
        ok = parse_words(&p, copy);
    }
    for (uint32_t i = 0; ok && i < f->nodes; i++)
        if (!f->base_of[i])
            f->base_of[i] = f->base;
    for (uint32_t i = 0; ok && i < f->nports; i++) { /* a bus belongs to the whole adapter */
        struct fab_port *first = &f->port[fabric_bus(f, i)];
        first->bus = max_u64(first->bus, f->port[i].bus);
    }
    for (uint32_t i = 0; ok && i < f->nports; i++) {
        f->port[i].bus = f->port[fabric_bus(f, i)].bus;
        f->paced |= f->port[i].rate || f->port[i].latency || f->port[i].bus;
    }
    free(p.match);
    free(copy);
    if (!ok)
        fabric_free(f);
    return ok;
}

void fabric_free(struct fabric *f)
{
    free(f->port);
    free(f->base_of);
    f->port = NULL;
    f->base_of = NULL;
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

uint32_t fabric_linear(const struct fabric *f, uint32_t node, uint32_t hca, uint32_t port)
{
    return (node * f->hcas + hca) * f->ports + port - 1;
}

uint16_t fabric_lid(const struct fabric *f, uint32_t linear)
{
    return (uint16_t)((linear + 1) << f->lmc);
}

bool fabric_locate(const struct fabric *f, uint16_t lid, struct fab_place *at)
{
    uint32_t n = lid >> f->lmc;
    if (n < 1 || n > f->nports)
        return false;
    n--;
    at->linear = n;
    at->path = lid & ((1u << f->lmc) - 1);
    at->port = n % f->ports + 1;
    at->hca = n / f->ports % f->hcas;
    at->node = n / f->ports / f->hcas;
    return true;
}

static bool known(const struct in_addr *list, unsigned n, struct in_addr a)
{
    for (unsigned i = 0; i < n; i++)
        if (list[i].s_addr == a.s_addr)
            return true;
    return false;
}

unsigned fabric_addrs(const struct fabric *f, uint32_t node, struct in_addr out[FAB_NODE_ADDRS])
{
    uint32_t ports = f->hcas * f->ports;
    const struct fab_port *p = &f->port[node * ports];
    unsigned n = 0;
    for (uint32_t i = 0; i < ports; i++)
        for (unsigned k = 0; k < p[i].addrs && n < FAB_NODE_ADDRS; k++)
            if (!known(out, n, p[i].addr[k]))
                out[n++] = p[i].addr[k];
    return n;
}

uint64_t fabric_latency(const struct fabric *f, uint32_t from, uint32_t to)
{
    return max_u64(f->port[from].latency, f->port[to].latency);
}

uint64_t fabric_node_guid(uint32_t node, uint32_t hca)
{
    return GUID_BASE | (uint64_t)node << 16 | (uint64_t)hca << 8;
}

uint64_t fabric_port_guid(uint32_t node, uint32_t hca, uint32_t port)
{
    return fabric_node_guid(node, hca) | port;
}

uint16_t fabric_guid_lid(const struct fabric *f, uint64_t guid)
{
    uint32_t node = (guid >> 16) & 0xffff, hca = (guid >> 8) & 0xff, port = guid & 0xff;
    if (guid >> 32 != GUID_BASE >> 32 || node >= f->nodes || hca >= f->hcas || port < 1 || port > f->ports)
        return 0;
    return fabric_lid(f, fabric_linear(f, node, hca, port));
}

bool fabric_select(const struct fabric *f, const char *text, bool *match)
{
    unsigned node = 0, hca = 0, port = 0;
    bool all = !strncmp(text, "hca", 3); /* of every node */
    int used = 0,
        parts = all ? 1 + sscanf(text, "hca%u%n/%u%n", &hca, &used, &port, &used)
                    : sscanf(text, "node%u%n/hca%u%n/%u%n", &node, &used, &hca, &used, &port, &used);
    if (parts < (all ? 2 : 1) || text[used] || node >= f->nodes || (parts > 1 && hca >= f->hcas) ||
        (parts > 2 && (port < 1 || port > f->ports)))
        return false;
    for (uint32_t i = 0; i < f->nports; i++) {
        struct fab_place at = {0};
        fabric_locate(f, fabric_lid(f, i), &at);
        match[i] = (all || at.node == node) && (parts < 2 || at.hca == hca) && (parts < 3 || at.port == port);
    }
    return true;
}
