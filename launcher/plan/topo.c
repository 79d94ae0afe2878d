/* topo.c: groups the processors of our affinity mask into cores, L3 caches, NUMA nodes or sockets by the
 * lists in /sys/devices/system/cpu, and assigns the groups to ranks. Without sysfs every processor counts as
 * a core.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "plan/topo.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORD_BITS (8 * sizeof(unsigned long))

static bool cpus_contain(const struct cpus *s, unsigned cpu)
{
    return s->bits[cpu / WORD_BITS] >> cpu % WORD_BITS & 1;
}

static void cpus_set(struct cpus *s, unsigned cpu)
{
    s->bits[cpu / WORD_BITS] |= 1ul << cpu % WORD_BITS;
}

static void cpus_read_allowed(struct cpus *s)
{
    memset(s, 0, sizeof(*s));
    if (sched_getaffinity(0, sizeof(*s), (cpu_set_t *)s) != 0)
        cpus_set(s, 0);
}

/* Parses a list such as "0-3,8,10-11"; false if it is invalid. */
static bool parse_list(const char *text, struct cpus *s)
{
    memset(s, 0, sizeof(*s));
    while (isdigit((unsigned char)*text)) {
        char *end;
        unsigned long first = strtoul(text, &end, 10), last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (unsigned long c = first; c <= last && c < CPUS_MAX; c++)
            cpus_set(s, (unsigned)c);
        text = *end == ',' ? end + 1 : end;
    }
    return *text == '\n' || *text == '\0';
}

static bool read_list(const char *path, struct cpus *s)
{
    char text[8192];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    return parse_list(text, s);
}

/* Reads the processors that share a core, L3 cache, NUMA node or socket (`bind`) with `cpu`. */
static void topo_read_group(unsigned cpu, enum bind_to bind, struct cpus *s)
{
    char path[128];
    bool found = false;
    if (bind == BIND_NUMA) {
        /* Try the node lists in turn, since machines have few nodes; cpuN has only a link to its node. */
        for (unsigned node = 0; node < 1024 && !found; node++) {
            snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist", node);
            if (!read_list(path, s))
                break;
            found = cpus_contain(s, cpu);
        }
    } else if (bind == BIND_L3) {
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/cache/index3/shared_cpu_list", cpu);
        found = read_list(path, s) && cpus_contain(s, cpu);
        if (!found) { /* no L3 cache: the socket */
            topo_read_group(cpu, BIND_SOCKET, s);
            return;
        }
    } else if (bind != BIND_HWTHREAD) {
        const char *file = bind == BIND_SOCKET ? "package_cpus_list" : "core_cpus_list";
        const char *old = bind == BIND_SOCKET ? "core_siblings_list" : "thread_siblings_list";
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/%s", cpu, file);
        found = read_list(path, s) && cpus_contain(s, cpu);
        if (!found) {
            snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/%s", cpu, old);
            found = read_list(path, s) && cpus_contain(s, cpu);
        }
    }
    if (!found) {
        memset(s, 0, sizeof(*s));
        cpus_set(s, cpu);
    }
}

/* Lists the groups of one kind (cores, sockets ...), each restricted to `within`; *out is allocated. */
static unsigned topo_list_groups(const struct cpus *within, enum bind_to bind, struct cpus **out)
{
    struct cpus left = *within, *list = NULL;
    unsigned n = 0;
    for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
        if (cpu % WORD_BITS == 0 && left.bits[cpu / WORD_BITS] == 0) {
            cpu += WORD_BITS - 1;
            continue;
        }
        if (!cpus_contain(&left, cpu))
            continue;
        list = xrealloc(list, (n + 1) * sizeof(*list));
        struct cpus *g = &list[n++];
        topo_read_group(cpu, bind, g);
        for (size_t w = 0; w < COUNT_OF(g->bits); w++) {
            g->bits[w] &= left.bits[w];
            left.bits[w] &= ~g->bits[w];
        }
    }
    *out = list;
    return n;
}

unsigned topo_count(enum bind_to unit)
{
    struct cpus mask, *list;
    cpus_read_allowed(&mask);
    unsigned n = topo_list_groups(&mask, unit, &list);
    free(list);
    return n ? n : 1;
}

unsigned topo_cores(void)
{
    return topo_count(BIND_CORE);
}

/* Reorders the groups so that neighbours in the list are on different sockets. */
static void topo_scatter_groups(struct cpus *list, unsigned n, const struct cpus *mask)
{
    struct cpus *sockets, *out = xcalloc(n, sizeof(*out));
    unsigned nsockets = topo_list_groups(mask, BIND_SOCKET, &sockets), placed = 0;
    bool *used = xcalloc(n, sizeof(*used));
    while (placed < n) {
        unsigned before = placed;
        for (unsigned s = 0; s < nsockets; s++)
            for (unsigned g = 0; g < n; g++) {
                unsigned first = 0;
                while (first < CPUS_MAX - 1 && !cpus_contain(&list[g], first))
                    first++;
                if (used[g] || !cpus_contain(&sockets[s], first))
                    continue;
                used[g] = true;
                out[placed++] = list[g];
                break;
            }
        if (placed == before)
            break;
    }
    if (placed == n)
        memcpy(list, out, n * sizeof(*out));
    free(out);
    free(used);
    free(sockets);
}

/* Merges cores i * per to (i + 1) * per - 1 of the list into one set; the list wraps around. */
static void topo_merge_cores(const struct cpus *list, unsigned n, uint32_t i, uint32_t per, struct cpus *out)
{
    memset(out, 0, sizeof(*out));
    for (uint32_t k = 0; k < per; k++)
        for (size_t w = 0; w < COUNT_OF(out->bits); w++)
            out->bits[w] |= list[((uint64_t)i * per + k) % n].bits[w];
}

/* Computes the sets of `nranks` ranks that share the processors of `mask`. False: the ranks are not bound. */
static bool bind_ranks(const struct topo_request *q, const struct cpus *mask, uint32_t nranks,
                       struct cpus *sets, unsigned *short_of)
{
    struct cpus *list;
    enum bind_to bind = q->bind;
    const uint32_t per = q->per;
    const bool automatic = bind == BIND_DEFAULT && per == 0;
    if (bind == BIND_DEFAULT || (per > 0 && bind != BIND_HWTHREAD))
        bind = BIND_CORE;
    unsigned n = topo_list_groups(mask, bind, &list);
    if (n == 0 || (automatic && nranks > n)) {
        free(list);
        return false;
    }
    if (bind <= BIND_CORE && (uint64_t)nranks * (per ? per : 1) > n)
        *short_of = n;
    if (q->scatter_sockets)
        topo_scatter_groups(list, n, mask);
    for (uint32_t i = 0; i < nranks; i++) {
        /* Neighbouring ranks share a large group, unless the user requested -map-by socket. */
        bool block = bind >= BIND_L3 && !q->scatter_sockets;
        if (per > 0)
            topo_merge_cores(list, n, i, per, &sets[i]);
        else
            sets[i] = list[block ? (uint64_t)i * n / (nranks > n ? nranks : n) : i % n];
    }
    free(list);
    return true;
}

/* -map-by ppr: sets the sets of the ranks of one domain. Each domain in turn gets `ppr` ranks, again from the
 * first one if ranks are left: all ranks of a domain share its processors. */
static void bind_ranks_of_domain(const struct topo_request *q, unsigned d, unsigned ndomains,
                                 const struct cpus *domain, struct cpus *sets, unsigned *short_of)
{
    struct cpus *bound = xcalloc(q->nranks, sizeof(*bound));
    uint32_t n = 0, k = 0;
    for (uint32_t i = 0; i < q->nranks; i++)
        n += i / q->ppr % ndomains == d;
    const bool is_bound = bind_ranks(q, domain, n, bound, short_of);
    for (uint32_t i = 0; i < q->nranks; i++)
        if (i / q->ppr % ndomains == d)
            sets[i] = is_bound ? bound[k++] : *domain;
    free(bound);
}

struct cpus *topo_bind(const struct topo_request *q, unsigned *short_of)
{
    struct cpus mask, *domains = NULL;
    *short_of = 0;
    if (q->bind == BIND_NONE || q->nranks == 0 ||
        (q->bind == BIND_DEFAULT && q->per == 0 && q->ppr == 0 && q->nranks == 1))
        return NULL;
    cpus_read_allowed(&mask);
    struct cpus *sets = xcalloc(q->nranks, sizeof(*sets));
    if (q->ppr == 0 || q->ppr_unit == BIND_NONE) {
        if (!bind_ranks(q, &mask, q->nranks, sets, short_of)) {
            free(sets);
            return NULL;
        }
        return sets;
    }
    const unsigned ndomains = topo_list_groups(&mask, q->ppr_unit, &domains);
    for (unsigned d = 0; d < ndomains; d++)
        bind_ranks_of_domain(q, d, ndomains, &domains[d], sets, short_of);
    free(domains);
    return sets;
}

static void cpus_add(struct cpus *to, const struct cpus *from)
{
    for (size_t w = 0; w < COUNT_OF(to->bits); w++)
        to->bits[w] |= from->bits[w];
}

/* Adds the groups that one item ("3", "3-5" or "*") of *text selects within `within`; advances *text.
 * Returns NULL or an allocated error text. */
static char *add_slots(const char **text, const struct cpus *within, enum bind_to unit, struct cpus *out)
{
    struct cpus *list;
    const unsigned n = topo_list_groups(within, unit, &list);
    const char *what = unit == BIND_SOCKET ? "socket" : "core";
    unsigned long first = 0, last = n ? n - 1 : 0;
    char *end = (char *)*text + 1, *why = NULL;
    if (**text != '*') {
        first = last = strtoul(*text, &end, 10);
        if (*end == '-' && isdigit((unsigned char)end[1]))
            last = strtoul(end + 1, &end, 10);
    }
    if (**text != '*' && !isdigit((unsigned char)**text))
        why = xstrf("\"%s\" is no list of cores such as 0-3, 1:0,2 or 1:*", *text);
    else if (first > last || last >= n)
        why = xstrf("%s %lu is requested, and there %s %u, from 0", what, last, n == 1 ? "is" : "are", n);
    for (unsigned long i = first; i <= last && !why; i++)
        cpus_add(out, &list[i]);
    *text = end;
    free(list);
    return why;
}

char *topo_parse_slots(const char *text, struct cpus *out)
{
    struct cpus allowed, within;
    char *why = NULL;
    cpus_read_allowed(&allowed);
    within = allowed;
    memset(out, 0, sizeof(*out));
    while (*text && !why) {
        if (text[strcspn(text, ":,")] == ':') { /* a socket number; the cores after the colon belong to it */
            memset(&within, 0, sizeof(within));
            why = add_slots(&text, &allowed, BIND_SOCKET, &within);
            if (!why && *text != ':')
                why = xstrf("\"%s\" should be a socket and a colon", text);
            if (!why)
                text++;
        }
        why = why ? why : add_slots(&text, &within, BIND_CORE, out);
        if (!why && *text && *text++ != ',')
            why = xstrf("\"%s\" should follow a comma", text - 1);
    }
    return why;
}

void topo_format(const struct cpus *s, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (unsigned cpu = 0; cpu < CPUS_MAX && used + 16 < size; cpu++) {
        unsigned last = cpu;
        if (!cpus_contain(s, cpu))
            continue;
        while (last + 1 < CPUS_MAX && cpus_contain(s, last + 1))
            last++;
        used += (size_t)snprintf(out + used, size - used, last > cpu ? "%s%u-%u" : "%s%u", used ? "," : "",
                                 cpu, last);
        cpu = last;
    }
}
