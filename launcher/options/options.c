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
#include "options/optdefs.h"
#include "cli/number.h"

/* The adapters of virtual nodes. -hcas, the adapters of each virtual node: number, rate, ports and paths. The
 * option is converted to the syntax of SOFTIB_FABRIC; rankenv.c adds the number of nodes. */

#define HCAS_MAX 16 /* largest number of adapters of a softib node */

struct hcas {
    const char *option; /* name of the option, for messages */
    unsigned n;
    char *rate[HCAS_MAX]; /* NULL: no limit of the rate */
    long ports, lmc, hub;
    long high; /* lowest service level of the high-priority virtual lane; 0: ports have one lane */
    char *latency, *bus, *pin;
};

/* True for a positive number with one of the units. */
static bool hcas_is_quantity(const char *text, const char *const *units)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || !(v > 0) || v > 1e9)
        return false;
    for (; *units; units++)
        if (strcmp(end, *units) == 0)
            return true;
    return false;
}

static bool is_rate(const char *text)
{
    static const char *const units[] = {"KB/s", "MB/s", "GB/s", "Mbit/s", "Gbit/s", NULL};
    return hcas_is_quantity(text, units);
}

static bool is_time(const char *text)
{
    static const char *const units[] = {"ns", "us", "ms", "s", NULL};
    return hcas_is_quantity(text, units);
}

static void set_quantity(const struct hcas *h, const char *key, const char *value, bool ok,
                         const char *example, char **out)
{
    if (!ok)
        launcher_die(STATUS_USAGE, "-%s: %s=%s: write a number and its unit, for example %s=%s.", h->option,
                     key, value, key, example);
    free(*out);
    *out = xstrdup(value);
}

static long set_count(const struct hcas *h, const char *key, const char *value, long min, long max)
{
    long v;
    if (!number_parse_integer(value, min, max, &v))
        launcher_die(STATUS_USAGE, "-%s: %s=%s: write a whole number from %ld to %ld.", h->option, key, value,
                     min, max);
    return v;
}

static void hcas_parse_setting(struct hcas *h, const char *key, const char *value)
{
    if (strcmp(key, "ports") == 0)
        h->ports = set_count(h, key, value, 1, 8);
    else if (strcmp(key, "lmc") == 0)
        h->lmc = set_count(h, key, value, 0, 7);
    else if (strcmp(key, "latency") == 0)
        set_quantity(h, key, value, is_time(value), "2us", &h->latency);
    else if (strcmp(key, "bus") == 0)
        set_quantity(h, key, value, is_rate(value), "1GB/s", &h->bus);
    else if (strcmp(key, "pin") == 0)
        set_quantity(h, key, value, is_time(value), "200ns", &h->pin);
    else if (strcmp(key, "hub") == 0)
        h->hub = set_count(h, key, value, 0, 1);
    else if (strcmp(key, "high") == 0)
        h->high = set_count(h, key, value, 1, 15);
    else
        launcher_die(STATUS_USAGE,
                     "-%s: there is no setting %s=; there are ports=, lmc=, latency=, bus=, high=, pin= and "
                     "hub=.",
                     h->option, key);
}

/* Parses "2", "1GB/s" or "2x1GB/s". */
static void hcas_parse_adapter(struct hcas *h, const char *word)
{
    char *end;
    unsigned long n = strtoul(word, &end, 10);
    const char *rate = *end == 'x' ? end + 1 : *end ? word : NULL;
    if (rate == word)
        n = 1;
    if (end == word || word[0] == '-' || word[0] == '+' || (rate && !is_rate(rate)))
        launcher_die(
            STATUS_USAGE,
            "-%s: \"%s\" is not a number of adapters (2), a rate (1GB/s, 10Gbit/s) or both (2x1GB/s).",
            h->option, word);
    if (n < 1 || n > HCAS_MAX - h->n)
        launcher_die(STATUS_USAGE, "-%s: a virtual node has 1 to %d adapters.", h->option, HCAS_MAX);
    while (n-- > 0)
        h->rate[h->n++] = rate ? xstrdup(rate) : NULL;
}

static void hcas_parse(struct hcas *h, const char *text)
{
    char *copy = xstrdup(text), *save = NULL;
    for (char *w = strtok_r(copy, ", ", &save); w; w = strtok_r(NULL, ", ", &save)) {
        char *value = strchr(w, '=');
        if (value) {
            *value++ = '\0';
            hcas_parse_setting(h, w, value);
        } else {
            hcas_parse_adapter(h, w);
        }
    }
    free(copy);
    if (h->n == 0)
        h->n = 1;
}

/* Returns the user's own SOFTIB_FABRIC, to which -hcas is added; NULL if it is not set. */
static const char *hcas_get_text(const struct options *o)
{
    const size_t len = strlen(ENV_SOFTIB_FABRIC "=");
    const char *text = o->env_pass == ENV_PASS_NONE ? NULL : getenv(ENV_SOFTIB_FABRIC);
    for (unsigned i = 0; i < o->genv.n; i++)
        if (strncmp(o->genv.v[i], ENV_SOFTIB_FABRIC "=", len) == 0)
            text = o->genv.v[i] + len;
    for (unsigned a = 0; a < o->napps; a++)
        for (unsigned i = 0; i < o->apps[a].env.n; i++)
            if (strncmp(o->apps[a].env.v[i], ENV_SOFTIB_FABRIC "=", len) == 0)
                launcher_die(STATUS_USAGE, "-hcas describes the adapters of all programs; leave out -env %s.",
                             ENV_SOFTIB_FABRIC);
    return text;
}

static void check_fabric_text(const char *text)
{
    static const char *const sizes[] = {"nodes=", "hcas=", "ports=", "lmc="};
    if (*text == '/' || *text == '.')
        launcher_die(STATUS_USAGE,
                     "-hcas and the file %s (SOFTIB_FABRIC) describe the same adapters: use one of them.",
                     text);
    for (unsigned i = 0; i < COUNT_OF(sizes); i++)
        if (strstr(text, sizes[i]))
            launcher_die(STATUS_USAGE,
                         "-hcas and SOFTIB_FABRIC (%s...) describe the same adapters: use one of them.",
                         sizes[i]);
}

static bool is_rate_uniform(const struct hcas *h)
{
    for (unsigned i = 1; i < h->n; i++)
        if (strcmp(h->rate[i] ? h->rate[i] : "", h->rate[0] ? h->rate[0] : "") != 0)
            return false;
    return true;
}

/* Order of the text: sizes, the user's own description, then settings of single adapters. */
static char *build_fabric_text(const struct hcas *h, const char *user)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    if (!f)
        launcher_die(1, "Out of memory.");
    fprintf(f, "hcas=%u ports=%ld lmc=%ld", h->n, h->ports, h->lmc);
    if (h->latency)
        fprintf(f, " latency=%s", h->latency);
    if (h->bus)
        fprintf(f, " bus=%s", h->bus);
    if (h->pin)
        fprintf(f, " pin=%s", h->pin);
    if (h->high)
        fprintf(f, " high=%ld", h->high);
    if (h->hub)
        fprintf(f, " hub=1");
    if (is_rate_uniform(h) && h->rate[0])
        fprintf(f, " rate=%s", h->rate[0]);
    if (user && *user)
        fprintf(f, " %s", user);
    for (unsigned i = 0; i < h->n && !is_rate_uniform(h); i++)
        if (h->rate[i])
            fprintf(f, " hca%u: rate=%s", i, h->rate[i]);
    if (fclose(f) != 0)
        launcher_die(1, "Out of memory.");
    return text;
}

/* Combines -hcas and the user's own description into a value of SOFTIB_FABRIC; to be freed. Ends mpiexec with
 * a message on invalid input. */
static char *hcas_build_fabric(const struct options *o)
{
    struct hcas h = {.option = "hcas", .ports = 1};
    if (!o->vnodes)
        launcher_die(
            STATUS_USAGE,
            "-hcas describes the adapters of virtual nodes: set the number of nodes with -vnodes N.");
    const char *user = hcas_get_text(o);
    if (user)
        check_fabric_text(user);
    hcas_parse(&h, o->hcas);
    char *words = build_fabric_text(&h, user);
    for (unsigned i = 0; i < h.n; i++)
        free(h.rate[i]);
    free(h.latency);
    free(h.bus);
    free(h.pin);
    return words;
}

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
            if (i == argc || (argv[i][0] == '-' && optdef_find(argv[i] + 1)))
                launcher_die(STATUS_USAGE,
                             "-%s %s needs a value after it (%s=VALUE if the value begins with a dash).",
                             bare, value, value);
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
