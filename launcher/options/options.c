/* options.c: parses the command line and configuration files. Options may be written with one dash or two,
 * and as `--name value` or `--name=value`; the first word that is not an option is the program.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "options/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boot/launch_env.h"
#include "options/hcas.h"
#include "options/optdefs.h"
#include "cli/number.h"

void strings_add(struct strings *s, const char *text)
{
    if (s->n + 2 > s->room) {
        s->room = 2 * s->n + 8;
        s->v = xrealloc(s->v, s->room * sizeof(*s->v));
    }
    s->v[s->n++] = xstrdup(text);
    s->v[s->n] = NULL;
}

void strings_free(struct strings *s)
{
    for (unsigned i = 0; i < s->n; i++)
        free(s->v[i]);
    free(s->v);
    *s = (struct strings){0};
}

static void append_app(struct opt_parse *p)
{
    struct options *o = p->o;
    o->apps = xrealloc(o->apps, (o->napps + 1) * sizeof(*o->apps));
    p->app = &o->apps[o->napps++];
    *p->app = (struct app_spec){0};
}

static _Noreturn void unknown_option(const char *word, const char *name)
{
    const size_t letters = strcspn(name, "0123456789");
    char *head = xstrf("%.*s", (int)letters, name);
    const struct optdef *def = name[letters] ? optdef_find(head) : NULL;
    if (def && def->arg == ARG_ONE) /* a number without a space, as in -np4 */
        launcher_die(STATUS_USAGE, "There is no option %s. Did you mean -%s %s? All options: mpiexec --help.",
                     word, head, name + letters);
    const char *near = optdef_nearest(name);
    if (near)
        launcher_die(STATUS_USAGE, "There is no option %s. Did you mean -%s? All options: mpiexec --help.",
                     word, near);
    launcher_die(STATUS_USAGE, "There is no option %s. All options: mpiexec --help.", word);
}

/* Parses the options and the program of one part of the command line. Returns the number of words used. */
static int parse_program_part(struct opt_parse *p, int argc, char **argv)
{
    int i = 0;
    while (i < argc && argv[i][0] == '-' && argv[i][1]) {
        char *word = argv[i++], *name = word + (word[1] == '-' ? 2 : 1), *eq = NULL;
        if (!*name)
            break; /* `--` ends the options */
        char *bare = xstrdup(name);
        if (!optdef_find(bare) && (eq = strchr(bare, '=')))
            *eq++ = '\0';
        const struct optdef *def = optdef_find(bare);
        if (!def)
            unknown_option(word, bare);
        char *value = eq ? xstrdup(eq) : NULL; /* never freed: the options point to it */
        if (def->arg == ARG_NONE && eq)
            launcher_die(STATUS_USAGE, "-%s takes no value.", bare);
        if (def->arg != ARG_NONE && def->arg != ARG_MAYBE && !value) {
            if (i == argc)
                launcher_die(STATUS_USAGE, "-%s needs %s after it: %s.", bare, def->metavar, def->help);
            value = argv[i++];
        }
        if (def->arg == ARG_NAME_VALUE && !strchr(value, '=')) {
            if (i == argc)
                launcher_die(STATUS_USAGE, "-%s %s needs a value after it.", bare, value);
            value = xstrf("%s=%s", value, argv[i++]);
        }
        p->def = def;
        p->name = bare;
        p->value = value;
        def->apply(p);
        free(bare);
    }
    while (i < argc && strcmp(argv[i], ":") != 0)
        strings_add(&p->app->argv, argv[i++]);
    return i;
}

static void parse_words(struct opt_parse *p, int argc, char **argv)
{
    for (int i = 0; i <= argc; i++) {
        bool was_config = p->config;
        append_app(p);
        unsigned at = p->o->napps - 1;
        i += parse_program_part(p, argc - i, argv + i);
        bool empty = p->app->argv.n == 0;
        if (empty && p->config && !was_config) {
            /* `-configfile F` itself names no program; drop the empty part that precedes the file's
             * programs. */
            p->o->napps--;
            memmove(&p->o->apps[at], &p->o->apps[at + 1], (p->o->napps - at) * sizeof(*p->o->apps));
        } else if (empty) {
            launcher_die(STATUS_USAGE, "No program was named%s. For example: mpiexec -n 4 ./program",
                         i < argc          ? " before a colon"
                         : p->o->napps > 1 ? " after the last colon"
                                           : "");
        }
        if (i >= argc)
            break;
    }
}

/* Splits a line into words, with quotes and backslashes as in a shell. */
static void split_line(char *line, struct strings *out)
{
    char *p = line;
    for (;;) {
        while (isspace((unsigned char)*p))
            p++;
        if (!*p || *p == '#')
            return;
        char *word = p, *w = p, quote = 0;
        for (; *p && (quote || !isspace((unsigned char)*p)); p++) {
            if (quote ? *p == quote : *p == '"' || *p == '\'') {
                quote = quote ? 0 : *p;
            } else {
                if (*p == '\\' && quote != '\'' && p[1])
                    p++;
                *w++ = *p;
            }
        }
        bool last = !*p;
        *w = '\0';
        strings_add(out, word);
        if (last)
            return;
        p++;
    }
}

/* Adds the words of a line of a configuration file; programs are separated by colons. */
static void add_config_line(void *ctx, char *line, unsigned number)
{
    struct strings *words = ctx, more = {0};
    (void)number;
    split_line(line, &more);
    if (more.n && words->n && strcmp(more.v[0], ":") != 0 && strcmp(words->v[words->n - 1], ":") != 0)
        strings_add(words, ":");
    for (unsigned i = 0; i < more.n; i++)
        strings_add(words, more.v[i]);
    strings_free(&more);
}

void options_configfile(struct opt_parse *p)
{
    const char *value = p->value;
    struct strings words = {0};
    if (p->config)
        launcher_die(STATUS_USAGE, "-%s may be given once, and not inside such a file.", p->name);
    if (!file_for_each_line(value, add_config_line, &words))
        launcher_die(STATUS_USAGE, "The configuration file %s cannot be read: %s.", value, strerror(errno));
    if (words.n == 0)
        launcher_die(STATUS_USAGE, "The configuration file %s names no program.", value);
    p->config = true;
    unsigned at = p->o->napps - 1; /* parse_words may move the array */
    parse_words(p, (int)words.n, words.v);
    p->app = &p->o->apps[at];
}

static void options_read_environment(struct options *o)
{
    const char *text = getenv("MPIEXEC_TIMEOUT");
    if (text && !number_parse_integer(text, 1, 100000000, &o->timeout))
        launcher_die(STATUS_USAGE, "MPIEXEC_TIMEOUT is \"%s\", not a number of seconds.", text);
    text = getenv("MPIR_CVAR_ENABLE_FT"); /* variable of MPICH that enables fault tolerance */
    if (text && strcmp(text, "0") != 0)
        o->recovery = true;
    text = getenv("FISHPLATE_INIT_TIMEOUT");
    if (text)
        number_parse_integer(text, 1, 86400, &o->init_timeout); /* the library reports an invalid value */
}

/* Converts -hcas to SOFTIB_FABRIC, for all programs and for spawned jobs in the same fabric (spawned.c). */
static void add_hcas(struct options *o)
{
    char *words = hcas_build_fabric(o), *entry = xstrf(ENV_SOFTIB_FABRIC "=%s", words);
    strings_add(&o->genv, entry);
    setenv(ENV_SOFTIB_FABRIC, words, 1);
    free(entry);
    free(words);
}

void options_parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){.fanout = FANOUT_DEFAULT, .heartbeat = HEARTBEAT_DEFAULT, .init_timeout = 60};
    struct opt_parse p = {.o = o};
    options_read_environment(o);
    parse_words(&p, argc - 1, argv + 1);
    for (unsigned i = 0; i < o->genv.n; i++)
        if (strncmp(o->genv.v[i], "FISHPLATE_INIT_TIMEOUT=", 23) == 0)
            number_parse_integer(o->genv.v[i] + 23, 1, 86400, &o->init_timeout);
    if (o->rankfile &&
        (o->vnodes || o->ppn || o->ppr || o->map_by != MAP_BLOCK || o->rank_by_given || o->cpus_per_rank > 1))
        launcher_die(STATUS_USAGE, "-rankfile places every rank: -map-by, -rank-by, -ppn, -cpus-per-rank and "
                                   "-vnodes contradict it.");
    if (o->vnodes && (o->hosts.n || o->hostfile))
        launcher_die(STATUS_USAGE,
                     "-vnodes divides this machine and cannot be combined with a list of hosts.");
    if (o->hcas)
        add_hcas(o);
}
