/* text.c: parses the text of SOFTIB_FABRIC. The text is a list of words. `key=value` is a setting of the
 * whole fabric. A scope, `node1/hca0/1:`, `node1/hca0:`, `node1:`, or `hca1/2:` (of every node), restricts
 * the settings after it to its ports. The value of `without=` is a list: words after it that are neither
 * settings nor scopes are further features.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/fabric.h"
#include "base/base.h"
#include "fabric/settings.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#define LID_MAX      0xBFFFu
#define ETHERNET_MTU 1500u

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

static bool fail_value(struct parse *p, const struct setting *s, const char *word)
{
    char expected[64];
    setting_describe_values(s, expected, sizeof(expected));
    snprintf(p->err, p->errlen, "SOFTIB_FABRIC: bad value in \"%s\": expected %s", word, expected);
    return false;
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

static bool unknown_word(struct parse *p, const char *word)
{
    struct nearest best = setting_find_nearest(word);
    char what[96];
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

static bool set_ports(struct parse *p, const struct setting *s, const char *v, const char *word)
{
    struct fabric *f = p->f;
    if (!text_allocate_ports(p, word))
        return false;
    for (uint32_t i = 0; i < f->nports; i++)
        if ((!p->match || p->match[i]) && !setting_store(s, &f->port[i], v))
            return strcmp(s->name, SETTING_WITHOUT)
                       ? fail_value(p, s, word)
                       : fail_unknown(p, "feature", setting_find_nearest_feature(v), word);
    return true;
}

static bool set_global(struct parse *p, const struct setting *s, const char *v, const char *word)
{
    if (p->match)
        return text_fail(p, "a setting of the whole fabric: write it before the first node0:", word);
    if (p->f->port && s->scope == SETTING_OF_SIZES)
        return text_fail(p, "nodes=, hcas=, ports= and lmc= must come before the settings of ports", word);
    return setting_store(s, p->f, v) ? true : fail_value(p, s, word);
}

/* Sets the first port number of the node in scope. */
static bool set_node_base(struct parse *p, const struct setting *s, const char *v, const char *word)
{
    struct fabric node = {0};
    if (!setting_store(s, &node, v))
        return fail_value(p, s, word);
    p->f->base_of[p->scope_node] = node.base;
    return true;
}

static bool text_parse_setting(struct parse *p, char *word)
{
    char copy[256];
    snprintf(copy, sizeof(copy), "%s", word);
    char *v = strchr(copy, '=');
    if (!v && p->listing)
        return set_ports(p, setting_find(SETTING_WITHOUT), copy, word);
    if (!v)
        return unknown_word(p, word);
    *v++ = 0;
    p->listing = !strcmp(copy, SETTING_WITHOUT);
    const struct setting *s = setting_find(copy);
    bool is_addr = !strcmp(copy, "addr"), is_base = !strcmp(copy, "base");
    if (is_addr || (is_base && p->match)) {
        if (!p->match || p->scope_node == p->f->nodes)
            return text_fail(p, "an address is of one node: write it after node0:", word);
        return is_addr ? add_addr(p, v, word) : set_node_base(p, s, v, word);
    }
    if (!s)
        return fail_unknown(p, "setting", setting_find_nearest(copy), word);
    return s->scope == SETTING_OF_PORTS ? set_ports(p, s, v, word) : set_global(p, s, v, word);
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
static bool text_finish_mtu(struct parse *p)
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
static bool text_finish_links(struct parse *p)
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
        ok = parse_words(&p, copy) && text_finish_mtu(&p) && text_finish_links(&p);
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
