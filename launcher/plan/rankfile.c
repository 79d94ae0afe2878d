/* rankfile.c: parses rank files. Each line is split into words at blanks and "="; a # begins a comment.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "plan/rankfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/util.h"
#include "cli/number.h"

#define RANKS_MAX (1 << 20)

static _Noreturn void reject_line(const char *file, unsigned line, const char *why)
{
    launcher_die(STATUS_USAGE, "Line %u of the rank file %s: %s. A line is `rank N=host slot=LIST`.", line,
                 file, why);
}

static void set_place(struct rankfile *f, uint32_t rank, const char *host, const char *slots)
{
    if (rank >= f->n) {
        f->host = xrealloc(f->host, (rank + 1) * sizeof(*f->host));
        f->slots = xrealloc(f->slots, (rank + 1) * sizeof(*f->slots));
        for (; f->n <= rank; f->n++)
            f->host[f->n] = f->slots[f->n] = NULL;
    }
    f->host[rank] = xstrdup(host);
    f->slots[rank] = xstrdup(slots);
}

static void read_line(void *ctx, char *line, unsigned number)
{
    struct rankfile *f = ctx;
    const char *file = f->path;
    char *save = NULL, *word[5];
    unsigned n = 0;
    long rank;
    line[strcspn(line, "#")] = '\0';
    for (char *w = strtok_r(line, " \t\r\n=", &save); w; w = strtok_r(NULL, " \t\r\n=", &save)) {
        if (n < COUNT_OF(word))
            word[n++] = w;
        else
            reject_line(file, number, "there are more words than these");
    }
    if (n == 0)
        return;
    if (strcmp(word[0], "rank") != 0 || n < 3 || !number_parse_integer(word[1], 0, RANKS_MAX, &rank))
        reject_line(file, number, "it does not begin with `rank N=host`");
    if (n == 4 || (n == 5 && strcmp(word[3], "slot") != 0 && strcmp(word[3], "slots") != 0))
        reject_line(file, number, "`slot=LIST` should follow the host");
    if (strpbrk(word[2], "/;&|$`\"'<>()") || *word[2] == '-')
        reject_line(file, number, "this is not a host name");
    if ((uint32_t)rank < f->n && f->host[rank])
        reject_line(file, number, "the rank has a line already");
    set_place(f, (uint32_t)rank, word[2], n == 5 ? word[4] : "");
}

struct rankfile *rankfile_read(const char *file)
{
    struct rankfile *f = xcalloc(1, sizeof(*f));
    f->path = file;
    if (!file_for_each_line(file, read_line, f))
        launcher_die(STATUS_USAGE, "The rank file %s cannot be read: %s.", file, strerror(errno));
    if (f->n == 0)
        launcher_die(STATUS_USAGE, "The rank file %s names no rank.", file);
    for (uint32_t r = 0; r < f->n; r++)
        if (!f->host[r])
            launcher_die(STATUS_USAGE, "The rank file %s has no line for rank %u.", file, r);
    return f;
}
