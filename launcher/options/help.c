/* help.c: uses of the option table other than parsing: --help, the table as text, finding a name, and
 * suggestions for mistyped names.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/options.h"
#include "options/optdefs.h"
#include "options/options.h"

/* Calls fn for every name of an option, until fn returns true. */
static bool for_each_name(const struct optdef *d, bool (*fn)(const char *name, size_t len, void *ctx),
                          void *ctx)
{
    for (const char *p = d->names;; p++) {
        size_t len = strcspn(p, "|");
        if (fn(p, len, ctx))
            return true;
        p += len;
        if (!*p)
            return false;
    }
}

static bool is_name(const char *name, size_t len, void *ctx)
{
    return strlen(ctx) == len && strncmp(name, ctx, len) == 0;
}

const struct optdef *optdef_find(const char *name)
{
    for (unsigned i = 0; i < noptdefs; i++)
        if (for_each_name(&optdefs[i], is_name, (void *)name))
            return &optdefs[i];
    for (unsigned i = 0; i < nhabits; i++)
        if (for_each_name(&habits[i], is_name, (void *)name))
            return &habits[i];
    return NULL;
}

enum { SUGGESTION_SIZE = 32 };

struct suggestion {
    struct nearest nearest;
    char name[SUGGESTION_SIZE]; /* copy of the name to which nearest.word points */
};

static bool suggestion_compare_name(const char *name, size_t len, void *ctx)
{
    struct suggestion *s = ctx;
    char word[SUGGESTION_SIZE];
    const size_t typed = strlen(s->nearest.typed);
    if (len < 3 || len >= SUGGESTION_SIZE)
        return false;
    memcpy(word, name, len);
    word[len] = '\0';
    /* A prefix of a name counts as similar: -prepend for -prepend-rank. */
    if (typed >= 3 && strncmp(word, s->nearest.typed, typed) == 0 && s->nearest.distance > 2) {
        s->nearest.distance = 2;
        s->nearest.word = word;
    }
    nearest_compare_candidate(&s->nearest, word);
    if (s->nearest.word == word) {
        strcpy(s->name, word);
        s->nearest.word = s->name;
    }
    return false;
}

const char *optdef_nearest(const char *name)
{
    static struct suggestion s;
    s = (struct suggestion){.nearest = nearest_start_search(name)};
    for (unsigned i = 0; i < noptdefs; i++)
        for_each_name(&optdefs[i], suggestion_compare_name, &s);
    return s.nearest.word;
}

static void print_option(const struct optdef *d)
{
    char left[96];
    size_t used = 0;
    for (const char *p = d->names; *p && used + 34 < sizeof(left);) {
        size_t len = strcspn(p, "|");
        used += (size_t)snprintf(left + used, sizeof(left) - used, "%s-%.*s", used ? ", " : "", (int)len, p);
        p += len + (p[len] == '|');
    }
    if (d->metavar)
        snprintf(left + used, sizeof(left) - used, d->arg == ARG_MAYBE ? "[=%s]" : " %s", d->metavar);
    cli_print_text(d->help, printf("  %s", left), 24, stdout);
}

void options_print_table(void)
{
    for (unsigned i = 0; i < noptdefs; i++) {
        const struct optdef *d = &optdefs[i];
        if (d->help)
            printf(d->arg == ARG_MAYBE ? "%s\t[=%s]\t%s\t%s\n" : "%s\t%s\t%s\t%s\n", d->names,
                   d->metavar ? d->metavar : "", d->values ? d->values : "", d->help);
    }
}

void options_help(void)
{
    cli_print_page(
        "mpiexec starts an MPI program as several processes, its ranks.\n"
        "\n"
        "  mpiexec -n 4 ./program arguments          four ranks on this machine\n"
        "  mpiexec -n 8 -hosts n1,n2 ./program       on two hosts, reached through ssh\n"
        "  mpiexec -n 1 ./master : -n 7 ./worker     two programs in one job\n"
        "  mpiexec -n 8 -vnodes 4 ./program          this machine as four virtual nodes\n"
        "  mpiexec -n 2 -vnodes 2 -hcas 1GB/s,250MB/s ./program\n"
        "                                            each with two adapters (rails) of these rates\n"
        "  mpiexec -l -n 4 ./program                 each line of output begins with its rank\n"
        "\n"
        "Without -n there is one rank per slot of the hosts, or per core of this machine.\n"
        "\n"
        "Options (one dash or two):\n",
        stdout);
    for (unsigned i = 0; i < noptdefs; i++)
        if (optdefs[i].help)
            print_option(&optdefs[i]);
    cli_print_page(
        "\n"
        "The exit status is that of the first rank that failed, 128 plus the signal when it was killed by "
        "one, and 124 after -timeout. A rank that fails before MPI_Finalize ends the job. Signals to "
        "mpiexec go to all ranks; INT, TERM and HUP also end the job: the signal itself first, then TERM, "
        "then KILL. QUIT (Ctrl-\\) prints what the ranks wait for, and the job goes on.\n"
        "\n"
        "Each rank finds its number and the number of ranks in its environment: FISHPLATE_WORLD_RANK and "
        "FISHPLATE_WORLD_SIZE in the job, FISHPLATE_LOCAL_RANK and FISHPLATE_LOCAL_SIZE on its node.\n",
        stdout);
}
