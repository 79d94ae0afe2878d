/* settings.c: the table of settings, and the parsers of their values.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/settings.h"
#include "base/base.h"
#include "fabric/fabric.h"
#include "softib/barrier.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

struct unit {
    const char *name;
    double factor;
};

/* Parses a number with one of the units; the last unit has no name. */
static bool parse_quantity(const char *value, const struct unit *units, double limit, uint64_t *out)
{
    char *end;
    double v = strtod(value, &end);
    if (end == value || !(v >= 0) || v > limit)
        return false;
    for (; units->name; units++)
        if (!strcmp(end, units->name)) {
            *out = (uint64_t)(v * units->factor);
            return true;
        }
    return false;
}

static bool parse_time(const struct setting *s, const char *value, void *field)
{
    static const struct unit units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
    (void)s;
    return parse_quantity(value, units, 1e9, field);
}

static bool parse_rate(const struct setting *s, const char *value, void *field)
{
    static const struct unit units[] = {
        {"B/s", 1},          {"KB/s", 1e3},       {"MB/s", 1e6}, {"GB/s", 1e9},
        {"Mbit/s", 1e6 / 8}, {"Gbit/s", 1e9 / 8}, {NULL, 0},
    };
    uint64_t rate;
    (void)s;
    if (!parse_quantity(value, units, 1e15, &rate) || !rate)
        return false;
    *(uint64_t *)field = rate;
    return true;
}

static bool parse_probability(const struct setting *s, const char *value, void *field)
{
    char *end;
    double v = strtod(value, &end);
    (void)s;
    if (end == value || *end || !(v >= 0) || v > 1)
        return false;
    *(uint32_t *)field = v >= 1 ? UINT32_MAX : (uint32_t)(v * 4294967296.0);
    return true;
}

static void store_number(uint64_t v, size_t size, void *field)
{
    switch (size) {
    case 1:
        *(uint8_t *)field = (uint8_t)v;
        break;
    case 2:
        *(uint16_t *)field = (uint16_t)v;
        break;
    case 4:
        *(uint32_t *)field = (uint32_t)v;
        break;
    default:
        *(uint64_t *)field = v;
        break;
    }
}

static bool parse_number(const struct setting *s, const char *value, void *field)
{
    char *end;
    if (!isdigit((unsigned char)*value))
        return false;
    errno = 0;
    unsigned long long v = strtoull(value, &end, 0);
    if (*end || errno || v < s->low || v > s->high)
        return false;
    store_number(v, s->size, field);
    return true;
}

static bool parse_choice(const struct setting *s, const char *value, void *field)
{
    bool second = !strcmp(value, s->choice[1]);
    if (!second && strcmp(value, s->choice[0]))
        return false;
    store_number(second, s->size, field);
    return true;
}

static bool parse_name(const struct setting *s, const char *value, void *field)
{
    if (!*value || strlen(value) >= s->size || strpbrk(value, s->forbidden))
        return false;
    strcpy(field, value);
    return true;
}

static bool parse_feature(const struct setting *s, const char *value, void *field)
{
    (void)s;
    for (unsigned i = 0; i < FEATURES; i++)
        if (!strcmp(value, fabric_features[i])) {
            *(uint32_t *)field |= 1u << i;
            return true;
        }
    return false;
}

#define FIELD(scope, type, field) scope, offsetof(struct type, field), sizeof(((struct type *)0)->field)
#define SIZES(field)              FIELD(SETTING_OF_SIZES, fabric, field)
#define FABRIC(field)             FIELD(SETTING_OF_FABRIC, fabric, field)
#define PORTS(field)              FIELD(SETTING_OF_PORTS, fab_port, field)
#define NUMBER(first, last)       .parse = parse_number, .low = first, .high = last
#define CHOICE(zero, one)         .parse = parse_choice, .choice = {zero, one}
#define NAME(without, what)       .parse = parse_name, .forbidden = without, .expected = what
#define PROBABILITY               .parse = parse_probability, .expected = "a probability from 0 to 1"
#define TIME                      .parse = parse_time, .expected = "a time such as 500ns, 2us, 10ms or 1s"
#define RATE                      .parse = parse_rate, .expected = "a rate such as 10GB/s or 100Gbit/s"

static const struct setting settings[] = {
    {"nodes", SIZES(nodes), NUMBER(1, FAB_MAX_PORTS)},
    {"hcas", SIZES(hcas), NUMBER(1, FAB_MAX_HCAS)},
    {"ports", SIZES(ports), NUMBER(1, 8)},
    {"lmc", SIZES(lmc), NUMBER(0, 7)},
    {"switches", FABRIC(switches), NUMBER(1, SOFTIB_LEAVES_MAX)},
    {"hub", FABRIC(hub), NUMBER(0, 1)},
    {"groups", FABRIC(groups), NUMBER(1, FABRIC_GROUPS)},
    {"sm", FABRIC(sm), NUMBER(0, 1)},
    {"ud_loss", FABRIC(ud_loss), PROBABILITY},
    {"ud_drop", FABRIC(ud_drop), PROBABILITY},
    {"ud_dup", FABRIC(ud_dup), PROBABILITY},
    {"ud_reorder", FABRIC(ud_reorder), PROBABILITY},
    {"switch_loss", FABRIC(sw_loss), PROBABILITY},
    {"name", FABRIC(name), NAME("/@", "a name without / and @")},
    {"mtu", FABRIC(mtu), NUMBER(256, ETHERNET_MTU_MAX)}, /* text_finish_mtu checks it for each port */
    {"atomics", FABRIC(atomics_global), CHOICE("adapter", "global")},
    {"pin", FABRIC(pin), TIME},
    {"wire", FABRIC(wire), CHOICE("shm", "tcp")},
    {"base", FABRIC(base), NUMBER(1, 65535 - 1024)},
    {"seed", FABRIC(seed), NUMBER(1, UINT64_MAX)},
    {"rate", PORTS(rate), RATE},
    {"bus", PORTS(bus), RATE},
    {"latency", PORTS(latency), TIME},
    {"down", PORTS(down_at), TIME},
    {"up", PORTS(up_at), TIME},
    {"link", PORTS(ethernet), CHOICE("infiniband", "ethernet")},
    {"netdev", PORTS(netdev), NAME("/:", "the name of a network interface")},
    {"vlan", PORTS(vlan), NUMBER(1, 4094)},
    {"high", PORTS(high), NUMBER(1, 15)},
    {SETTING_WITHOUT, PORTS(without), .parse = parse_feature},
};

const struct setting *setting_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        if (!strcmp(name, settings[i].name))
            return &settings[i];
    return NULL;
}

bool setting_store(const struct setting *s, void *object, const char *value)
{
    return s->parse(s, value, (char *)object + s->at);
}

void setting_describe_values(const struct setting *s, char *out, size_t len)
{
    if (s->expected)
        snprintf(out, len, "%s", s->expected);
    else if (s->choice[0])
        snprintf(out, len, "%s or %s", s->choice[0], s->choice[1]);
    else if (s->high == UINT64_MAX)
        snprintf(out, len, "a number from %llu on", (unsigned long long)s->low);
    else
        snprintf(out, len, "a number from %llu to %llu", (unsigned long long)s->low,
                 (unsigned long long)s->high);
}

struct nearest setting_find_nearest(const char *name)
{
    struct nearest best = nearest_start_search(name);
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        nearest_compare_candidate(&best, settings[i].name);
    nearest_compare_candidate(&best, "addr");
    return best;
}

struct nearest setting_find_nearest_feature(const char *name)
{
    struct nearest best = nearest_start_search(name);
    for (unsigned i = 0; i < FEATURES; i++)
        nearest_compare_candidate(&best, fabric_features[i]);
    return best;
}
