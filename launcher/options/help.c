/* help.c: uses of the option table other than parsing: --help, finding a name, and suggestions for mistyped
 * names.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "options/optdefs.h"
#include "options/options.h"

/* Calls fn for every name of a definition, until it returns true. */
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

struct nearest {
    const char *wanted;
    unsigned best;
    char name[32];
};

static bool help_compare_option(const char *name, size_t len, void *ctx)
{
    struct nearest *n = ctx;
    char word[32];
    if (len < 3 || len >= sizeof(word))
        return false;
    memcpy(word, name, len);
    word[len] = '\0';
    unsigned d = word_distance(n->wanted, word);
    /* A beginning that was cut short counts as near: -prepend for -prepend-rank. */
    if (strlen(n->wanted) >= 3 && strncmp(word, n->wanted, strlen(n->wanted)) == 0)
        d = d > 2 ? 2 : d;
    if (d < n->best) {
        n->best = d;
        strcpy(n->name, word);
    }
    return false;
}

const char *optdef_nearest(const char *name)
{
    static struct nearest n;
    size_t len = strlen(name);
    n = (struct nearest){.wanted = name, .best = len < 5 ? 2 : 3};
    for (unsigned i = 0; i < noptdefs; i++)
        for_each_name(&optdefs[i], help_compare_option, &n);
    return n.name[0] ? n.name : NULL;
}

/* Prints the text to the right of an option, in lines of at most HELP_WIDTH characters. */
static void print_wrapped(const char *text)
{
    enum { HELP_WIDTH = 76 };
    for (;;) {
        size_t len = strlen(text);
        if (len > HELP_WIDTH)
            for (len = HELP_WIDTH; len > 1 && text[len] != ' ';)
                len--;
        printf("  %.*s\n", (int)len, text);
        text += len;
        if (!*text)
            return;
        text += *text == ' ';
        printf("  %-32s", "");
    }
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
    if (strlen(left) > 32)
        printf("  %s\n  %-32s", left, "");
    else
        printf("  %-32s", left);
    print_wrapped(d->help);
}

void options_help(void)
{
    puts("mpiexec starts an MPI program as several processes, its ranks.\n"
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
         "Options (one dash or two):");
    for (unsigned i = 0; i < noptdefs; i++)
        if (optdefs[i].help)
            print_option(&optdefs[i]);
    puts("\n"
         "The exit status is that of the first rank that failed, 128 plus the signal when it was killed by "
         "one,\n"
         "and 124 after -timeout. A rank that fails before MPI_Finalize ends the job. Signals to mpiexec go "
         "to all\n"
         "ranks; INT, TERM and HUP also end the job: the signal itself first, then TERM, then KILL. QUIT "
         "(Ctrl-\\) prints\n"
         "what the ranks wait for, and the job goes on.\n"
         "\n"
         "Each rank finds its number and the number of ranks in its environment: FISHPLATE_WORLD_RANK "
         "and\nFISHPLATE_WORLD_SIZE in the job, FISHPLATE_LOCAL_RANK and FISHPLATE_LOCAL_SIZE on its node.");
}
