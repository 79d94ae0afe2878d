/*
 * Parses the command line and configuration files. Options may be written with one dash or two, and as
 * `--name value` or `--name=value`; the first word that is not an option is the program.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boot/launch_env.h"
#include "optdefs.h"
#include "tree.h"

struct opt_parse {
    struct options *o;
    struct app_spec *app;
    bool config; /* -configfile was given */
};

void strings_add(struct strings *s, const char *text)
{
    s->v = xrealloc(s->v, (s->n + 2) * sizeof *s->v);
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

static long number(const char *name, const char *value, long min, long max)
{
    long v;
    if (!parse_number(value, min, max, &v))
        die(STATUS_USAGE, "-%s needs a whole number from %ld to %ld, not \"%s\".", name, min, max, value);
    return v;
}

static void add_list(struct strings *s, const char *name, const char *value)
{
    char *copy = xstrdup(value), *save = NULL;
    for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save))
        strings_add(s, w);
    free(copy);
    if (s->n == 0)
        die(STATUS_USAGE, "-%s needs a list of names separated by commas.", name);
}

/* One of several words; the index. */
static int choice(const char *name, const char *value, const char *const *words, int n)
{
    struct buf all = {0};
    for (int i = 0; i < n; i++) {
        if (strcmp(words[i], value) == 0)
            return i;
        buf_add(&all, i ? ", " : "", i ? 2 : 0);
        buf_add(&all, words[i], strlen(words[i]));
    }
    buf_add(&all, "", 1);
    die(STATUS_USAGE, "-%s knows no \"%s\"; it is one of %s.", name, value, all.data);
}

static void set_n(struct opt_parse *p, const char *name, const char *value)
{
    p->app->n = number(name, value, 1, 1 << 24);
}

static void set_ppn(struct opt_parse *p, const char *name, const char *value)
{
    p->o->ppn = number(name, value, 1, 1 << 20);
}

static void set_hosts(struct opt_parse *p, const char *name, const char *value)
{
    add_list(&p->o->hosts, name, value);
}

static void set_hostfile(struct opt_parse *p, const char *name, const char *value)
{
    (void)name;
    p->o->hostfile = value;
}

static void set_vnodes(struct opt_parse *p, const char *name, const char *value)
{
    p->o->vnodes = number(name, value, 1, 1 << 20);
}

static void set_map_by(struct opt_parse *p, const char *name, const char *value)
{
    static const char *const words[] = {"core", "slot", "node", "socket"};
    static const enum map_by meaning[] = {MAP_BLOCK, MAP_BLOCK, MAP_NODE, MAP_SOCKET};
    long ppr;
    char unit[16];
    if (sscanf(value, "ppr:%ld:%15s", &ppr, unit) == 2 && strcmp(unit, "node") == 0 && ppr > 0) {
        p->o->ppn = ppr;
        return;
    }
    p->o->map_by = meaning[choice(name, value, words, COUNT_OF(words))];
}

static void set_bind_to(struct opt_parse *p, const char *name, const char *value)
{
    static const char *const words[] = {"none", "core", "socket", "numa", "hwthread"};
    static const enum bind_to meaning[] = {BIND_NONE, BIND_CORE, BIND_SOCKET, BIND_NUMA, BIND_HWTHREAD};
    p->o->bind = meaning[choice(name, value, words, COUNT_OF(words))];
}

static void set_genv(struct opt_parse *p, const char *name, const char *value)
{
    (void)name;
    strings_add(&p->o->genv, value);
}

static void set_env(struct opt_parse *p, const char *name, const char *value)
{
    (void)name;
    strings_add(&p->app->env, value);
}

static void set_x(struct opt_parse *p, const char *name, const char *value)
{
    (void)name;
    if (strchr(value, '=')) {
        strings_add(&p->o->genv, value);
        return;
    }
    const char *now = getenv(value);
    if (!now)
        die(STATUS_USAGE, "-x %s: there is no such variable in the environment; write -x %s=value to set it.",
            value, value);
    char *entry = xstrf("%s=%s", value, now);
    strings_add(&p->o->genv, entry);
    free(entry);
}

static void set_genvlist(struct opt_parse *p, const char *name, const char *value)
{
    add_list(&p->o->genvlist, name, value);
    p->o->env_pass = ENV_PASS_LIST;
}

static void set_genvnone(struct opt_parse *p, const char *name, const char *value)
{
    (void)name;
    (void)value;
    p->o->env_pass = ENV_PASS_NONE;
}

static void set_genvall(struct opt_parse *p, const char *name, const char *value)
{
    (void)name;
    (void)value;
    p->o->env_pass = ENV_PASS_ALL;
}

static void set_wdir(struct opt_parse *p, const char *name, const char *value)
{
    (void)name;
    p->app->wdir = value;
}

static void set_prefix(struct opt_parse *p, const char *name, const char *value)
{
    (void)name;
    (void)value;
    p->o->prefix = true;
}

static void set_keep_running(struct opt_parse *p, const char *name, const char *value)
{
    (void)name;
    (void)value;
    p->o->keep_running = true;
}

static void set_oversubscribe(struct opt_parse *p, const char *name, const char *value)
{
    (void)name;
    (void)value;
    p->o->oversubscribe = true;
}

static void set_outfile(struct opt_parse *p, const char *name, const char *value)
{
    (void)name;
    p->o->out_pattern = value;
}

static void set_errfile(struct opt_parse *p, const char *name, const char *value)
{
    (void)name;
    p->o->err_pattern = value;
}

static void set_stdin(struct opt_parse *p, const char *name, const char *value)
{
    if (strcmp(value, "all") == 0)
        p->o->stdin_rank = STDIN_ALL;
    else if (strcmp(value, "none") == 0)
        p->o->stdin_rank = STDIN_NONE;
    else if (!parse_number(value, 0, 1 << 24, &p->o->stdin_rank))
        die(STATUS_USAGE, "-%s is all, none or a rank, not \"%s\".", name, value);
}

static void set_launcher(struct opt_parse *p, const char *name, const char *value)
{
    static const char *const words[] = {"ssh", "rsh", "slurm"};
    p->o->launcher = words[choice(name, value, words, COUNT_OF(words))];
}

static void set_launcher_exec(struct opt_parse *p, const char *name, const char *value)
{
    (void)name;
    p->o->launcher_exec = value;
}

static void set_fanout(struct opt_parse *p, const char *name, const char *value)
{
    p->o->fanout = number(name, value, 0, 1 << 20);
}

static void set_timeout(struct opt_parse *p, const char *name, const char *value)
{
    p->o->timeout = number(name, value, 1, 100000000);
}

/* MPI-5.0, 11.5: which error handler objects begin with. */
static void set_errhandler(struct opt_parse *p, const char *name, const char *value)
{
    static const char *const words[] = {"mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return"};
    char *entry =
        xstrf("FISHPLATE_INITIAL_ERRHANDLER=%s", words[choice(name, value, words, COUNT_OF(words))]);
    strings_add(&p->o->genv, entry);
    free(entry);
}

static void set_verbose(struct opt_parse *p, const char *name, const char *value)
{
    (void)name;
    (void)value;
    p->o->verbose = true;
}

static void show_help(struct opt_parse *p, const char *name, const char *value)
{
    (void)p;
    (void)name;
    (void)value;
    options_help();
    quit(0);
}

static void show_version(struct opt_parse *p, const char *name, const char *value)
{
    (void)p;
    (void)name;
    (void)value;
    printf("mpiexec (Fishplate) %s\n", FISHPLATE_VERSION);
    quit(0);
}

static void ignore(struct opt_parse *p, const char *name, const char *value)
{
    (void)p;
    (void)name;
    (void)value;
}

static void read_configfile(struct opt_parse *p, const char *name, const char *value);

const struct optdef optdefs[] = {
    {"n|np|c", ARG_ONE, "N", "start N ranks of the program", set_n},
    {"ppn|perhost|npernode", ARG_ONE, "N", "put N ranks on each host before going on to the next", set_ppn},
    {"hosts|host|H", ARG_ONE, "A,B:4", "run on these hosts; a number is how many ranks a host takes",
     set_hosts},
    {"f|hostfile|machinefile", ARG_ONE, "FILE",
     "the same from a file: `name`, `name:4` or `name slots=4` a line", set_hostfile},
    {"map-by", ARG_ONE, "WHAT",
     "core: fill hosts in turn (default); node: deal ranks out; socket; ppr:N:node", set_map_by},
    {"bind-to", ARG_ONE, "WHAT",
     "core, socket, numa, hwthread or none; core by default unless oversubscribed", set_bind_to},
    {"vnodes", ARG_ONE, "N", "let this machine look like N nodes without shared memory between them",
     set_vnodes},
    {"genv", ARG_NAME_VALUE, "NAME VALUE", "set a variable for all programs (also NAME=VALUE)", set_genv},
    {"env", ARG_NAME_VALUE, "NAME VALUE", "set a variable for this program only (also NAME=VALUE)", set_env},
    {"x", ARG_ONE, "NAME[=VALUE]", "set a variable for all programs, or pass its present value", set_x},
    {"genvlist", ARG_ONE, "A,B", "pass on only these variables; everything is passed on by default",
     set_genvlist},
    {"genvnone", ARG_NONE, NULL, "pass on no variables", set_genvnone},
    {"genvall", ARG_NONE, NULL, NULL, set_genvall},
    {"wdir|wd|cwd", ARG_ONE, "DIR", "start this program in DIR", set_wdir},
    {"configfile", ARG_ONE, "FILE", "read programs from FILE, one a line: options, program, arguments",
     read_configfile},
    {"stdin", ARG_ONE, "WHO", "who reads standard input: a rank (default 0), all or none", set_stdin},
    {"l|prepend-rank|tag-output", ARG_NONE, NULL, "begin each line of output with [rank]", set_prefix},
    {"outfile-pattern", ARG_ONE, "NAME", "write output to files; %r is the rank, %h its host", set_outfile},
    {"errfile-pattern", ARG_ONE, "NAME", "the same for standard error", set_errfile},
    {"keep-running", ARG_NONE, NULL,
     "go on when nobody reads standard output any more; by default the job ends as a pipeline does",
     set_keep_running},
    {"timeout", ARG_ONE, "S", "end the job after S seconds, with exit status 124", set_timeout},
    {"launcher", ARG_ONE, "NAME",
     "how to reach other hosts: ssh (default), rsh or slurm (srun; default in an allocation)", set_launcher},
    {"launcher-exec", ARG_ONE, "CMD", "use this command instead, called as CMD host command...",
     set_launcher_exec},
    {"fanout", ARG_ONE, "N", "hosts that are reached from one host (default 16); 0: all from here",
     set_fanout},
    {"initial-errhandler", ARG_ONE, "NAME",
     "what errors do unless the program says: mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return",
     set_errhandler},
    {"v|verbose", ARG_NONE, NULL, "say what is started where", set_verbose},
    {"version|V", ARG_NONE, NULL, "print the version", show_version},
    {"help|h|?", ARG_NONE, NULL, "print this text", show_help},
    {"oversubscribe", ARG_NONE, NULL, "say nothing when there are more ranks than slots", set_oversubscribe},
    /* Written in many scripts; here they are always so. */
    {"allow-run-as-root", ARG_NONE, NULL, NULL, ignore},
};
const unsigned noptdefs = COUNT_OF(optdefs);

static void new_app(struct opt_parse *p)
{
    struct options *o = p->o;
    o->apps = xrealloc(o->apps, (o->napps + 1) * sizeof *o->apps);
    p->app = &o->apps[o->napps++];
    *p->app = (struct app_spec){0};
}

static _Noreturn void unknown_option(const char *word, const char *name)
{
    const char *near = optdef_nearest(name);
    if (near)
        die(STATUS_USAGE, "There is no option %s. Did you mean -%s? All options: mpiexec --help.", word,
            near);
    die(STATUS_USAGE, "There is no option %s. All options: mpiexec --help.", word);
}

/* Options and program of one part. Returns how many words were used, up to a colon or the end. */
static int parse_part(struct opt_parse *p, int argc, char **argv)
{
    int i = 0;
    while (i < argc && argv[i][0] == '-' && argv[i][1]) {
        char *word = argv[i++], *name = word + (word[1] == '-' ? 2 : 1), *eq = NULL;
        if (!*name)
            break; /* `--` ends the options */
        char *bare = xstrdup(name);
        if (optdef_find(bare) < 0 && (eq = strchr(bare, '=')))
            *eq++ = '\0';
        int found = optdef_find(bare);
        if (found < 0)
            unknown_option(word, bare);
        const struct optdef *def = &optdefs[found];
        char *value = eq;
        if (def->arg == ARG_NONE && eq)
            die(STATUS_USAGE, "-%s takes no value.", bare);
        if (def->arg != ARG_NONE && !value) {
            if (i == argc)
                die(STATUS_USAGE, "-%s needs %s after it: %s.", bare, def->metavar, def->help);
            value = argv[i++];
        }
        if (def->arg == ARG_NAME_VALUE && !strchr(value, '=')) {
            if (i == argc)
                die(STATUS_USAGE, "-%s %s needs a value after it.", bare, value);
            value = xstrf("%s=%s", value, argv[i++]);
        }
        def->apply(p, bare, value);
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
        new_app(p);
        unsigned at = p->o->napps - 1;
        i += parse_part(p, argc - i, argv + i);
        bool empty = p->app->argv.n == 0;
        if (empty && p->config && !was_config) {
            /* `-configfile F` itself names no program; drop the empty part, the file's came after it. */
            p->o->napps--;
            memmove(&p->o->apps[at], &p->o->apps[at + 1], (p->o->napps - at) * sizeof *p->o->apps);
        } else if (empty) {
            die(STATUS_USAGE, "No program was named%s. For example: mpiexec -n 4 ./program",
                p->o->napps > 1 ? " between two colons" : "");
        }
        if (i >= argc)
            break;
    }
}

/* Words of one line, with quotes and backslashes as in a shell. */
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

static void read_configfile(struct opt_parse *p, const char *name, const char *value)
{
    FILE *f = fopen(value, "re");
    char *line = NULL;
    size_t cap = 0;
    struct strings words = {0};
    if (p->config)
        die(STATUS_USAGE, "-%s may be given once, and not inside such a file.", name);
    if (!f)
        die(STATUS_USAGE, "The configuration file %s cannot be read: %s.", value, strerror(errno));
    while (getline(&line, &cap, f) >= 0) {
        struct strings more = {0};
        split_line(line, &more);
        if (more.n && words.n && strcmp(more.v[0], ":") != 0 && strcmp(words.v[words.n - 1], ":") != 0)
            strings_add(&words, ":");
        for (unsigned i = 0; i < more.n; i++)
            strings_add(&words, more.v[i]);
    }
    free(line);
    fclose(f);
    if (words.n == 0)
        die(STATUS_USAGE, "The configuration file %s names no program.", value);
    p->config = true;
    unsigned at = p->o->napps - 1; /* parsing may move the array */
    parse_words(p, (int)words.n, words.v);
    p->app = &p->o->apps[at];
}

static void from_environment(struct options *o)
{
    const char *text = getenv("MPIEXEC_TIMEOUT");
    if (text && !parse_number(text, 1, 100000000, &o->timeout))
        die(STATUS_USAGE, "MPIEXEC_TIMEOUT is \"%s\", not a number of seconds.", text);
    text = getenv("FISHPLATE_INIT_TIMEOUT");
    if (text)
        parse_number(text, 1, 86400, &o->init_timeout); /* the library complains about a bad one */
}

void options_parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){.fanout = FANOUT_DEFAULT, .init_timeout = 60};
    struct opt_parse p = {.o = o};
    from_environment(o);
    parse_words(&p, argc - 1, argv + 1);
    for (unsigned i = 0; i < o->genv.n; i++)
        if (strncmp(o->genv.v[i], "FISHPLATE_INIT_TIMEOUT=", 23) == 0)
            parse_number(o->genv.v[i] + 23, 1, 86400, &o->init_timeout);
    if (o->vnodes && (o->hosts.n || o->hostfile))
        die(STATUS_USAGE, "-vnodes divides this machine and cannot be combined with a list of hosts.");
}
