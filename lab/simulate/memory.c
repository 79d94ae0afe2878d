/* memory.c: `fishplate-lab sim memory`: memory that a process of a job of any size registers, by scheme.
 * lab/sim/memory.c computes it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/sim/memory.h"

#include "api/inside.h"
#include "base/tunable.h"
#include "tools/fishplate/command.h"
#include "cli/json.h"
#include "simulate.h"
#include "cli/options.h"

struct memory_options {
    size_t ranks[SIM_LIST_MAX], partners;
    int nranks;
    bool json, help;
};

static const char usage[] =
    "Usage: fishplate-lab sim memory [options]\n"
    "\n"
    "How much memory a process needs for messages in a job of any size, for each way of connecting and "
    "receiving:\n"
    "\n"
    "  static         connected to all others at the start, with buffers for each\n"
    "  on demand      connected to those it exchanges messages with\n"
    "  and rings      on demand, and RDMA rings for some peers (FISHPLATE_IB_POLLSET)\n"
    "  rings for all  on demand, and a ring for each\n"
    "  shared queues  on demand, with two receive queues that all connections share\n"
    "\n"
    "Computed with the library's own arithmetic and settings: FISHPLATE_IB_BUFFERS=2 fishplate-lab sim "
    "memory shows what fewer buffers save. `frames` is what the library registers when connections open (its "
    "counter ib_buffer_bytes); buffers that busy senders request later are added. `queues` is an estimate of "
    "what an adapter's driver allocates for queue pairs. Each number is given for a process that exchanges "
    "messages with all others, and with the number of peers in --partners.\n"
    "\n"
    "Options:\n"
    "  --ranks 1k,100k   ranks of the job (default 64,1000,10000,100000)\n"
    "  --partners 17     peers that a process exchanges messages with (default: log2 of the ranks, rounded "
    "up)\n"
    "  --json\n"
    "  --help\n";

static bool parse_value(void *options, const char *name, const char *value)
{
    struct memory_options *o = options;
    size_t one[SIM_LIST_MAX];
    int count;
    if (strcmp(name, "--ranks") == 0)
        return sim_parse_list(value, o->ranks, &o->nranks);
    if (strcmp(name, "--partners") == 0 && sim_parse_list(value, one, &count) && count == 1 && one[0] > 0) {
        o->partners = one[0];
        return true;
    }
    return false;
}

static void memory_read_setting(const char *name, uint32_t *number, size_t *size)
{
    const struct fishplate_inside *in = get_library_table();
    for (size_t i = 0; i < in->tunables_count(); i++) {
        const struct tunable *t = in->tunables_get(i);
        if (strcmp(t->name, name) != 0 || t->value < 0)
            continue;
        if (number)
            *number = (uint32_t)t->value;
        else
            *size = (size_t)t->value;
    }
}

/* Reads the present settings of the library; a build without InfiniBand uses memory_presets. */
static struct memory_rules memory_settings(void)
{
    struct memory_rules r = memory_presets;
    get_library_table()->tunables_load();
    memory_read_setting("IB_BUFFERS", &r.buffers, NULL);
    memory_read_setting("IB_BUFFERS_MAX", &r.buffers_max, NULL);
    memory_read_setting("IB_FRAME", NULL, &r.frame);
    memory_read_setting("IB_SHARED_FACTOR", &r.factor, NULL);
    memory_read_setting("IB_SHARED_BASE", &r.base, NULL);
    memory_read_setting("IB_RING_SLOTS", &r.slots, NULL);
    memory_read_setting("IB_RING_SLOT", NULL, &r.slot);
    memory_read_setting("IB_POLLSET", &r.rings, NULL);
    memory_read_setting("IB_SEND_DEPTH", &r.send_depth, NULL);
    return r;
}

static uint32_t memory_count_partners(const struct memory_options *o, uint32_t ranks)
{
    uint32_t bits = 0;
    while ((1u << bits) < ranks && bits < 31)
        bits++;
    return o->partners ? (uint32_t)o->partners : bits;
}

static void print_bytes(double bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    int u = 0;
    bytes /= 1024;
    for (; bytes >= 1000 && u < 3; u++)
        bytes /= 1024;
    printf(" %8.1f %s", bytes, units[u]);
}

static void memory_print_row(struct json *j, const struct memory_rules *r, uint32_t ranks, uint32_t partners,
                             enum memory_scheme scheme, bool json)
{
    struct memory_use few, all;
    memory_compute(r, scheme, ranks, partners, &few);
    memory_compute(r, scheme, ranks, ranks - 1, &all);
    if (json) {
        json_object(j, NULL);
        json_int(j, "ranks", ranks);
        json_int(j, "partners", partners);
        json_string(j, "scheme", memory_scheme_names[scheme]);
        json_real(j, "frames", few.frames);
        json_real(j, "queues", few.queues);
        json_real(j, "frames_all", all.frames);
        json_real(j, "queues_all", all.queues);
        json_real(j, "queue_pairs_all", all.queue_pairs);
        json_end(j);
        return;
    }
    printf("%8u  %-14s", ranks, memory_scheme_names[scheme]);
    print_bytes(few.frames);
    print_bytes(few.queues);
    printf("   ");
    print_bytes(all.frames);
    print_bytes(all.queues);
    printf(" %12.0f\n", all.queue_pairs);
}

int command_sim_memory(int argc, char **argv)
{
    struct memory_options o = {.ranks = {64, 1000, 10000, 100000}, .nranks = 4};
    const struct sim_command c = {"sim memory", &o, &o.help, &o.json, NULL, parse_value, NULL};
    struct json j = {.out = stdout};
    const int status = sim_parse(&c, argc, argv);
    if (status)
        return status;
    if (o.help) {
        cli_print_page(usage, stdout);
        return 0;
    }
    for (int i = 0; i < o.nranks; i++)
        if (o.ranks[i] < 2 || o.ranks[i] > 1u << 30)
            return sim_report_misuse("sim memory", "is out of range: there must be 2 to 1073741824 ranks",
                                     "--ranks");
    const struct memory_rules r = memory_settings();
    if (o.json) {
        json_object(&j, NULL);
        json_string(&j, "program", "fishplate-lab sim memory");
        json_string(&j, "carrier", "computed");
        json_array(&j, "results");
    } else
        printf(
            "fishplate-lab sim memory: a process; %u buffers of %zu bytes a peer, shared queues of log2(n) * "
            "%u + %u\n\n"
            "%8s  %-14s %25s   %25s\n%8s  %-14s %12s %12s    %12s %12s %12s\n",
            r.buffers, r.frame, r.factor, r.base, "", "", "with some partners", "with all", "ranks", "scheme",
            "frames", "queues", "frames", "queues", "queue pairs");
    for (int i = 0; i < o.nranks; i++)
        for (int s = 0; s < MEMORY_SCHEMES; s++)
            memory_print_row(&j, &r, (uint32_t)o.ranks[i], memory_count_partners(&o, (uint32_t)o.ranks[i]),
                             (enum memory_scheme)s, o.json);
    if (o.json) {
        json_end(&j);
        json_end(&j);
        putchar('\n');
    }
    return 0;
}
