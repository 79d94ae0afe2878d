/* slurm.c: reads Slurm's compressed lists. The text comes from the environment, so sizes are bounded.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "plan/slurm.h"

#include <stdlib.h>
#include <string.h>

#include "core/address.h"
#include "cli/number.h"

bool slurm_is_allocation(void)
{
    const char *list = getenv("SLURM_JOB_NODELIST");
    return getenv("SLURM_JOB_ID") && list && *list;
}

static bool expand_item(const char *head, size_t head_len, const char *rest, unsigned most,
                        struct strings *out);

/* Expands `01-03` or `7` inside brackets: each number with its original width, followed by the rest of the
 * text. */
static bool expand_range(const char *prefix, const char *range, size_t len, const char *rest, unsigned most,
                         struct strings *out)
{
    char *copy = xstrf("%.*s", (int)len, range), *dash = strchr(copy, '-');
    size_t width = dash ? (size_t)(dash - copy) : len;
    long first = 0, last = 0;
    if (dash)
        *dash = '\0';
    bool ok = number_parse_integer(copy, 0, 999999999, &first);
    last = first;
    if (ok && dash)
        ok = number_parse_integer(dash + 1, first, 999999999, &last) && last - first < (long)most;
    for (long i = first; ok && i <= last; i++) {
        char *name = xstrf("%s%0*ld", prefix, (int)width, i);
        ok = expand_item(name, strlen(name), rest, most, out);
        free(name);
    }
    free(copy);
    return ok;
}

/* Expands the brackets in `rest` and adds all names, each beginning with `head`. */
static bool expand_item(const char *head, size_t head_len, const char *rest, unsigned most,
                        struct strings *out)
{
    const char *open = strchr(rest, '['), *close = open ? strchr(open, ']') : NULL;
    if (!open) {
        char *name = xstrf("%.*s%s", (int)head_len, head, rest);
        bool ok = *name && *name != '-' && !strpbrk(name, "] \t/;&|$`\"'<>()") && out->n < most;
        if (ok)
            strings_add(out, name);
        free(name);
        return ok;
    }
    if (!close || close == open + 1)
        return false;
    char *prefix = xstrf("%.*s%.*s", (int)head_len, head, (int)(open - rest), rest);
    bool ok = true;
    for (const char *p = open + 1; ok && p < close;) {
        size_t len = strcspn(p, ",]");
        ok = expand_range(prefix, p, len, close + 1, most, out);
        p += len + 1;
    }
    free(prefix);
    return ok;
}

bool slurm_expand(const char *list, unsigned most, struct strings *out)
{
    while (*list) {
        size_t len = 0;
        for (bool inside = false; list[len] && (inside || list[len] != ','); len++)
            inside = list[len] == '[' || (inside && list[len] != ']');
        char *item = xstrf("%.*s", (int)len, list);
        bool ok = expand_item("", 0, item, most, out);
        free(item);
        if (!ok)
            return false;
        list += len + (list[len] == ',');
    }
    return out->n > 0;
}

/* Returns the slots of the next host from `8(x3),4`; *left: further hosts with the same number. The last
 * item repeats at the end of the text; an invalid item counts as 1. */
static uint32_t slurm_read_slots(const char **text, long *value, long *left)
{
    if (*left > 0) {
        (*left)--;
        return (uint32_t)*value;
    }
    size_t len = strcspn(*text, ",");
    char *item = xstrf("%.*s", (int)len, *text), *times = strstr(item, "(x");
    *left = 1;
    if (times) {
        *times = '\0';
        times[2 + strcspn(times + 2, ")")] = '\0';
        if (!number_parse_integer(times + 2, 1, SLURM_HOSTS_MAX, left))
            *left = 1;
    }
    if (!number_parse_integer(item, 1, 1 << 20, value))
        *value = 1;
    free(item);
    if ((*text)[len])
        *text += len + 1;
    (*left)--;
    return (uint32_t)*value;
}

void slurm_list_hosts(struct hosts *out)
{
    const char *list = getenv("SLURM_JOB_NODELIST"), *self = getenv("SLURMD_NODENAME");
    const char *counts = getenv(getenv("SLURM_NTASKS") ? "SLURM_TASKS_PER_NODE" : "SLURM_JOB_CPUS_PER_NODE");
    struct strings names = {0};
    if (!slurm_expand(list, SLURM_HOSTS_MAX, &names))
        launcher_die(
            1,
            "The list of hosts of this Slurm allocation, SLURM_JOB_NODELIST=%.200s, cannot be parsed. "
            "Name the hosts with -hosts.",
            list);
    *out = (struct hosts){.v = xcalloc(names.n, sizeof(*out->v)), .n = names.n};
    long value = 1, left = 0;
    for (uint32_t i = 0; i < names.n; i++)
        out->v[i] = (struct host){.name = names.v[i],
                                  .slots = counts ? slurm_read_slots(&counts, &value, &left) : 1,
                                  .counted = true,
                                  .local = self ? strcmp(self, names.v[i]) == 0
                                                : address_is_this_machine(names.v[i])};
}
