/* hosts.c: reads host lists. A host that is named twice is one host with the sum of the slots.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "plan/hosts.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/address.h"
#include "plan/batch.h"
#include "plan/rankfile.h"
#include "plan/slurm.h"
#include "plan/topo.h"
#include "cli/number.h"

static void add_host(struct hosts *h, const char *name, long slots, bool counted)
{
    for (uint32_t i = 0; i < h->n; i++)
        if (strcmp(h->v[i].name, name) == 0) {
            h->v[i].slots += (uint32_t)slots;
            h->v[i].counted = h->v[i].counted || counted;
            return;
        }
    h->v = xrealloc(h->v, (h->n + 1) * sizeof(*h->v));
    h->v[h->n++] = (struct host){.name = xstrdup(name), .slots = (uint32_t)slots, .counted = counted};
}

/* Adds a host: "name", "name:4" or "[::1]:4"; a bare IPv6 address has more than one colon and no slots. */
static void hosts_add_entry(struct hosts *h, const char *word, const char *where, long slots)
{
    char *name = xstrdup(word), *colon = strrchr(name, ':'), *at = name;
    bool counted = slots > 0;
    if (name[0] == '[' && strchr(name, ']')) {
        at = name + 1;
        char *end = strchr(name, ']');
        colon = end[1] == ':' ? end + 1 : NULL;
        *end = '\0';
    } else if (colon && strchr(name, ':') != colon) {
        colon = NULL;
    }
    if (colon) {
        *colon = '\0';
        if (!number_parse_integer(colon + 1, 1, 1 << 20, &slots))
            launcher_die(STATUS_USAGE, "In %s, \"%s\" should be a host name or host:slots.", where, word);
        counted = true;
    }
    /* A host name is passed to the remote shell as one word; a word that looks like an option is rejected. */
    if (!*at || *at == '-' || strpbrk(at, " \t/;&|$`\"'<>()"))
        launcher_die(STATUS_USAGE, "In %s, \"%s\" is not a host name.", where, word);
    add_host(h, at, counted ? slots : 1, counted);
    free(name);
}

struct hostfile {
    struct hosts *hosts;
    const char *path;
};

/* Adds the host of a line: `name`, `name:4`, `name slots=4`, `name max_slots=4`; a # begins a comment. */
static void add_line(void *ctx, char *line, unsigned number)
{
    const struct hostfile *f = ctx;
    char *save = NULL, *word, *where = xstrf("line %u of %s", number, f->path);
    line[strcspn(line, "#")] = '\0';
    char *name = strtok_r(line, " \t\r\n", &save);
    long slots = 0;
    while (name && (word = strtok_r(NULL, " \t\r\n", &save))) {
        if (strncmp(word, "slots=", 6) == 0) {
            if (!number_parse_integer(word + 6, 1, 1 << 20, &slots))
                launcher_die(STATUS_USAGE, "In %s, \"%s\" should be slots= and a number.", where, word);
        } else if (strncmp(word, "max_slots=", 10) != 0 && strncmp(word, "max-slots=", 10) != 0) {
            launcher_die(STATUS_USAGE,
                         "In %s, \"%s\" is neither a host name nor slots=N; a line is a host name "
                         "and optionally slots=N.",
                         where, word);
        }
    }
    if (name)
        hosts_add_entry(f->hosts, name, where, slots);
    free(where);
}

static void read_hostfile(struct hosts *h, const char *file)
{
    if (!file_for_each_line(file, add_line, &(struct hostfile){h, file}))
        launcher_die(STATUS_USAGE, "The host file %s cannot be read: %s.", file, strerror(errno));
    if (h->n == 0)
        launcher_die(STATUS_USAGE, "The host file %s names no host.", file);
}

/* True if all hosts belong to the Slurm allocation, so that srun reaches them. */
static bool hosts_use_allocation(const struct hosts *h)
{
    struct strings names = {0};
    if (!slurm_is_allocation() || !slurm_expand(getenv("SLURM_JOB_NODELIST"), SLURM_HOSTS_MAX, &names))
        return false;
    bool all = true;
    for (uint32_t i = 0; i < h->n && all; i++) {
        unsigned k = 0;
        while (k < names.n && strcmp(names.v[k], h->v[i].name) != 0)
            k++;
        all = k < names.n || h->v[i].local;
    }
    strings_free(&names);
    return all;
}

const char *hosts_choose_launcher(const struct options *o, const struct hosts *h)
{
    if (o->launcher)
        return o->launcher;
    return hosts_use_allocation(h) ? "slurm" : "ssh";
}

static void add_batch_host(void *hosts, const char *host, long slots, const char *where)
{
    hosts_add_entry(hosts, host, where, slots);
}

/* Adds the hosts of the rank file, in its order; used if no other list names hosts. */
static void add_hosts_of_ranks(struct hosts *h, const char *file)
{
    for (uint32_t r = 0; h->ranks && r < h->ranks->n; r++) {
        if (h->ranks->host[r][0] == '+')
            launcher_die(STATUS_USAGE,
                         "The rank file %s places rank %u on %s of a host list: give -hosts or -hostfile.",
                         file, r, h->ranks->host[r]);
        add_host(h, h->ranks->host[r], 1, true);
    }
}

/* Lists every entry; `local` is set. */
static void hosts_list_entries(const struct options *o, struct hosts *out)
{
    for (unsigned i = 0; i < o->hosts.n; i++)
        hosts_add_entry(out, o->hosts.v[i], "-hosts", 0);
    if (o->hostfile)
        read_hostfile(out, o->hostfile);
    if (out->n == 0 && !o->vnodes && slurm_is_allocation()) {
        slurm_list_hosts(out);
        return;
    }
    if (out->n == 0 && !o->vnodes)
        batch_list_hosts(add_batch_host, out);
    if (out->n == 0)
        add_hosts_of_ranks(out, o->rankfile);
    if (out->n == 0) {
        char self[256] = "localhost";
        gethostname(self, sizeof(self) - 1);
        add_host(out, self, (long)topo_cores(), true);
        out->v[0].local = true;
        return;
    }
    for (uint32_t i = 0; i < out->n; i++)
        out->v[i].local = address_is_this_machine(out->v[i].name);
}

uint32_t hosts_find_local(const struct hosts *h)
{
    uint32_t i = 0;
    while (i < h->n && !h->v[i].local)
        i++;
    return i;
}

static void merge_local_hosts(struct hosts *h)
{
    const uint32_t first = hosts_find_local(h);
    uint32_t n = 0;
    h->listed = xcalloc(h->n, sizeof(*h->listed));
    h->nlisted = h->n;
    for (uint32_t i = 0; i < h->n; i++) {
        const bool merge = i > first && h->v[i].local;
        h->listed[i] = (struct listed_host){h->v[i].name, merge ? first : n};
        if (merge)
            h->v[first].slots += h->v[i].slots;
        else
            h->v[n++] = h->v[i];
    }
    h->n = n;
}

void hosts_list(const struct options *o, struct hosts *out)
{
    *out = (struct hosts){.ranks = o->rankfile ? rankfile_read(o->rankfile) : NULL};
    hosts_list_entries(o, out);
    merge_local_hosts(out);
}
