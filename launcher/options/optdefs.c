/* optdefs.c: the table of options, and the functions that store their values.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "options/optdefs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/number.h"

/* ---- Values of one kind, stored in the member of struct options that the definition names ---- */

static void *option_member(const struct opt_parse *p)
{
    return (char *)p->o + p->def->member;
}

static void store_flag(struct opt_parse *p)
{
    *(bool *)option_member(p) = true;
}

static void store_text(struct opt_parse *p)
{
    *(const char **)option_member(p) = p->value;
}

/* A name or prefix with %r and %h; another letter would be written as it is, and all ranks would share a file. */
static void store_pattern(struct opt_parse *p)
{
    for (const char *at = strchr(p->value, '%'); at; at = strchr(at + 2, '%'))
        if (!at[1] || !strchr("rh%", at[1]))
            launcher_die(STATUS_USAGE,
                         "-%s %s: after %% there is r (the rank), h (its host) or %%, not \"%s\".", p->name,
                         p->value, at + 1);
    store_text(p);
}

static void store_number(struct opt_parse *p)
{
    *(long *)option_member(p) = opt_number(p, p->value, p->def->min, p->def->max);
}

/* Adds the value to a list of strings. */
static void store_string(struct opt_parse *p)
{
    strings_add(option_member(p), p->value);
}

/* Adds the words of a comma-separated list. */
static void store_list(struct opt_parse *p)
{
    struct strings *list = option_member(p);
    char *copy = xstrdup(p->value), *save = NULL;
    for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save))
        strings_add(list, w);
    free(copy);
    if (list->n == 0)
        launcher_die(STATUS_USAGE, "-%s needs a list of names separated by commas.", p->name);
}

long opt_number(const struct opt_parse *p, const char *value, long min, long max)
{
    long v;
    if (!number_parse_integer(value, min, max, &v))
        launcher_die(STATUS_USAGE, "-%s needs a whole number from %ld to %ld, not \"%s\".", p->name, min, max,
                     value);
    return v;
}

/* Returns the index of `value` among `n` words; ends mpiexec with a message if it is none of them. */
static int opt_choice(const struct opt_parse *p, const char *value, const char *const *words, int n)
{
    struct buf all = {0};
    for (int i = 0; i < n; i++) {
        if (strcmp(words[i], value) == 0)
            return i;
        buf_add(&all, i ? ", " : "", i ? 2 : 0);
        buf_add(&all, words[i], strlen(words[i]));
    }
    buf_add(&all, "", 1);
    launcher_die(STATUS_USAGE, "-%s does not accept \"%s\"; it accepts %s.", p->name, value, all.data);
}

/* ---- Options with a function of their own ---- */

static void set_n(struct opt_parse *p)
{
    p->app->n = opt_number(p, p->value, 1, 1 << 24);
}

/* -memory-alloc-kinds has no effect: ranks always provide every kind of memory that they support. */
static void set_memory_kinds(struct opt_parse *p)
{
    (void)p;
}

/* Handles modifiers after the unit, as in -map-by core:PE=2:OVERSUBSCRIBE, in the form of other launchers. */
static void set_map_modifier(struct opt_parse *p, const char *word)
{
    if (strncasecmp(word, "PE=", 3) == 0)
        p->o->cpus_per_rank = opt_number(p, word + 3, 1, 1 << 16);
    else if (strcasecmp(word, "OVERSUBSCRIBE") == 0)
        p->o->oversubscribe = true;
    else if (strcasecmp(word, "NOOVERSUBSCRIBE") != 0 && strcasecmp(word, "SPAN") != 0)
        launcher_die(STATUS_USAGE,
                     "-%s accepts PE=N (cores for each rank) and OVERSUBSCRIBE after the colon, not \"%s\".",
                     p->name, word);
}

static void set_ppr(struct opt_parse *p, const char *count, const char *unit)
{
    static const char *const words[] = {"node", "socket", "numa", "l3", "l3cache", "core"};
    static const enum bind_to meaning[] = {BIND_NONE, BIND_SOCKET, BIND_NUMA, BIND_L3, BIND_L3, BIND_CORE};
    p->o->ppr = opt_number(p, count, 1, 1 << 12);
    p->o->ppr_unit = meaning[opt_choice(p, unit, words, COUNT_OF(words))];
    if (p->o->ppr_unit == BIND_NONE)
        p->o->ppn = p->o->ppr;
}

static void set_map_by(struct opt_parse *p)
{
    static const char *const words[] = {"core", "slot", "node", "socket"};
    static const enum map_by meaning[] = {MAP_BLOCK, MAP_BLOCK, MAP_NODE, MAP_SOCKET};
    char *copy = xstrdup(p->value), *save = NULL, *unit = strtok_r(copy, ":", &save), *word;
    if (unit && strcmp(unit, "ppr") == 0) {
        const char *count = strtok_r(NULL, ":", &save), *of = strtok_r(NULL, ":", &save);
        if (!count || !of)
            launcher_die(STATUS_USAGE,
                         "-%s %s: write ppr:N:WHAT, for N ranks on each node, socket, numa, l3 or core.",
                         p->name, p->value);
        set_ppr(p, count, of);
    } else if (p->value[0] != ':') { /* `:OVERSUBSCRIBE` alone is accepted as by other launchers */
        p->o->map_by = meaning[opt_choice(p, unit ? unit : "", words, COUNT_OF(words))];
    } else if (unit) {
        set_map_modifier(p, unit);
    }
    while ((word = strtok_r(NULL, ":", &save)))
        set_map_modifier(p, word);
    free(copy);
}

static void set_rank_by(struct opt_parse *p)
{
    static const char *const words[] = {"slot", "core", "fill", "node", "span"};
    static const enum map_by meaning[] = {MAP_BLOCK, MAP_BLOCK, MAP_BLOCK, MAP_NODE, MAP_NODE};
    p->o->rank_by = meaning[opt_choice(p, p->value, words, COUNT_OF(words))];
    p->o->rank_by_given = true;
}

static void set_bind_to(struct opt_parse *p)
{
    static const char *const words[] = {"none", "core", "socket", "numa", "l3", "l3cache", "hwthread"};
    static const enum bind_to meaning[] = {BIND_NONE, BIND_CORE, BIND_SOCKET,  BIND_NUMA,
                                           BIND_L3,   BIND_L3,   BIND_HWTHREAD};
    p->o->bind = meaning[opt_choice(p, p->value, words, COUNT_OF(words))];
}

static void set_env(struct opt_parse *p)
{
    strings_add(&p->app->env, p->value);
}

static void set_x(struct opt_parse *p)
{
    if (strchr(p->value, '=')) {
        strings_add(&p->o->genv, p->value);
        return;
    }
    const char *now = getenv(p->value);
    if (!now)
        launcher_die(STATUS_USAGE,
                     "-x %s: there is no such variable in the environment; write -x %s=value to set it.",
                     p->value, p->value);
    char *entry = xstrf("%s=%s", p->value, now);
    strings_add(&p->o->genv, entry);
    free(entry);
}

static void set_genvlist(struct opt_parse *p)
{
    store_list(p);
    p->o->env_pass = ENV_PASS_LIST;
}

static void set_genvnone(struct opt_parse *p)
{
    p->o->env_pass = ENV_PASS_NONE;
}

static void set_genvall(struct opt_parse *p)
{
    p->o->env_pass = ENV_PASS_ALL;
}

static void set_wdir(struct opt_parse *p)
{
    p->app->wdir = p->value;
}

static void set_prefix(struct opt_parse *p)
{
    p->o->prefix = "[%r] ";
}

static void set_no_cleanup(struct opt_parse *p)
{
    p->o->no_cleanup = p->o->recovery = true;
}

/* Handles --with-ft of Open MPI: ulfm or mpi, and no or none. */
static void set_with_ft(struct opt_parse *p)
{
    static const char *const words[] = {"ulfm", "mpi", "yes", "true", "1", "none", "no", "false", "0"};
    enum { ON = 5 };
    size_t i = 0;
    while (i < COUNT_OF(words) && strcmp(p->value, words[i]) != 0)
        i++;
    if (i == COUNT_OF(words))
        launcher_die(STATUS_USAGE, "-%s takes ulfm or none, not \"%s\".", p->name, p->value);
    p->o->recovery = p->o->recovery || i < ON;
}

static void set_gdb(struct opt_parse *p)
{
    p->o->debug = DEBUG_GDB;
    p->o->debug_ranks = p->value;
}

static void set_xterm(struct opt_parse *p)
{
    p->o->debug = DEBUG_XTERM;
    p->o->debug_ranks = strcmp(p->value, "all") == 0 ? NULL : p->value;
}

static void set_stdin(struct opt_parse *p)
{
    if (strcmp(p->value, "all") == 0)
        p->o->stdin_rank = STDIN_ALL;
    else if (strcmp(p->value, "none") == 0)
        p->o->stdin_rank = STDIN_NONE;
    else if (!number_parse_integer(p->value, 0, 1 << 24, &p->o->stdin_rank))
        launcher_die(STATUS_USAGE, "-%s is all, none or a rank, not \"%s\".", p->name, p->value);
}

static void set_launcher(struct opt_parse *p)
{
    static const char *const words[] = {"ssh", "rsh", "slurm"};
    p->o->launcher = words[opt_choice(p, p->value, words, COUNT_OF(words))];
}

/* Sets the initial error handler (MPI-5.0, 11.5). */
static void set_errhandler(struct opt_parse *p)
{
    static const char *const words[] = {"mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return"};
    char *entry =
        xstrf("FISHPLATE_INITIAL_ERRHANDLER=%s", words[opt_choice(p, p->value, words, COUNT_OF(words))]);
    strings_add(&p->o->genv, entry);
    free(entry);
}

/* Handles -report-fd, which mpiexec passes to the mpiexec of a spawned job (spawned.c). */
static void set_report_fd(struct opt_parse *p)
{
    store_number(p);
    fcntl((int)p->o->report_fd, F_SETFD, FD_CLOEXEC);
}

static void set_notices(struct opt_parse *p)
{
    char *words = xstrdup(p->value), *comma = strchr(words, ',');
    if (comma)
        *comma++ = '\0';
    p->o->notices_fd = opt_number(p, words, 3, 1 << 20);
    p->o->bell_fd = opt_number(p, comma ? comma : "", 3, 1 << 20);
    p->o->recovery = true;
    fcntl((int)p->o->notices_fd, F_SETFD, FD_CLOEXEC);
    fcntl((int)p->o->bell_fd, F_SETFD, FD_CLOEXEC);
    free(words);
}

static _Noreturn void show_help(struct opt_parse *p)
{
    (void)p;
    options_help();
    launcher_exit(0);
}

static _Noreturn void show_version(struct opt_parse *p)
{
    (void)p;
    printf("mpiexec (Fishplate) %s\n", FISHPLATE_VERSION);
    launcher_exit(0);
}

#define FLAG(name)    store_flag, .member = offsetof(struct options, name)
#define TEXT(name)    store_text, .member = offsetof(struct options, name)
#define PATTERN(name) store_pattern, .member = offsetof(struct options, name)
#define NUMBER(name, low, high) \
    store_number, .member = offsetof(struct options, name), .min = low, .max = high
#define STRING(name) store_string, .member = offsetof(struct options, name)

const struct optdef optdefs[] = {
    {"n|np|c", ARG_ONE, "N", "start N ranks of the program", set_n},
    {"ppn|perhost|npernode|N", ARG_ONE, "N", "put N ranks on each host before going on to the next",
     NUMBER(ppn, 1, 1 << 20)},
    {"hosts|host|H", ARG_ONE, "A,B:4", "run on these hosts; B:4 means that host B takes 4 ranks (slots)",
     store_list, .member = offsetof(struct options, hosts)},
    {"f|hostfile|machinefile", ARG_ONE, "FILE",
     "read the hosts from FILE, one per line: `name`, `name:4` or `name slots=4`", TEXT(hostfile),
     .values = "@file"},
    {"map-by", ARG_ONE, "WHAT",
     "core: fill each host before the next (default); node: one rank per host in turn; socket; ppr:N:WHAT: N "
     "ranks on each node, socket, numa, l3 or core; core:PE=2: 2 cores per rank",
     set_map_by, .values = "core node socket ppr:1:node ppr:1:socket ppr:1:numa core:PE=2"},
    {"rankfile|rf", ARG_ONE, "FILE",
     "host and processors of each rank, one line per rank: `rank 0=n1 slot=0-3` (cores), `slot=1:0,2` (cores "
     "of "
     "socket 1), `slot=1:*`",
     TEXT(rankfile), .values = "@file"},
    {"rank-by", ARG_ONE, "WHAT", "number the ranks slot by slot or node by node, however they were mapped",
     set_rank_by, .values = "slot node"},
    {"cpus-per-rank|cpus-per-proc", ARG_ONE, "N", "bind each rank to N cores; a host takes fewer ranks",
     NUMBER(cpus_per_rank, 1, 1 << 16)},
    {"bind-to", ARG_ONE, "WHAT",
     "core, l3, numa, socket, hwthread or none; core by default unless oversubscribed", set_bind_to,
     .values = "core l3 numa socket hwthread none"},
    {"show-map|report-bindings|display-map|print-rank-map", ARG_NONE, NULL,
     "print the host and the processors of each rank", FLAG(show_map)},
    {"vnodes", ARG_ONE, "N",
     "divide this machine into N virtual nodes that communicate through software adapters, not shared memory",
     NUMBER(vnodes, 1, 1 << 20)},
    {"memory-alloc-kinds", ARG_ONE, "KINDS",
     "kinds of memory that the program requests; MPI_Comm_get_info of MPI_COMM_WORLD returns those that it "
     "has, as "
     "mpi_memory_alloc_kinds",
     set_memory_kinds, .values = "system mpi cuda cuda:device"},
    {"hcas|hca", ARG_ONE, "LIST",
     "adapters of each virtual node: their number (2), their rates (1GB/s,250MB/s) or more "
     "(2x1GB/s,ports=2,lmc=1,latency=2us; also bus=1GB/s, high=3, pin=200ns); hub=1: a barrier network "
     "besides, the device softwire0",
     TEXT(hcas), .values = "2 2x1GB/s 1GB/s,250MB/s 2x1GB/s,ports=2 1x1GB/s,lmc=1 1,hub=1"},
    {"usize", ARG_ONE, "N", "value of MPI_UNIVERSE_SIZE: expected number of ranks, including spawned ones",
     NUMBER(universe, 1, 1 << 24)},
    {"genv", ARG_NAME_VALUE, "NAME VALUE", "set a variable for all programs (also NAME=VALUE)", STRING(genv)},
    {"env", ARG_NAME_VALUE, "NAME VALUE", "set a variable for this program only (also NAME=VALUE)", set_env},
    {"x", ARG_ONE, "NAME[=VALUE]", "set a variable for all programs, or pass its current value", set_x},
    {"genvlist", ARG_ONE, "A,B",
     "pass only these environment variables to the ranks; all are passed by default", set_genvlist,
     .member = offsetof(struct options, genvlist)},
    {"genvnone", ARG_NONE, NULL, "pass no environment variables to the ranks", set_genvnone},
    {"genvall|envall", ARG_NONE, NULL, NULL, set_genvall},
    {"wdir|wd|cwd", ARG_ONE, "DIR", "start this program in DIR", set_wdir, .values = "@dir"},
    {"configfile", ARG_ONE, "FILE", "read programs from FILE, one per line: options, program, arguments",
     options_configfile, .values = "@file"},
    {"stdin", ARG_ONE, "WHO", "who reads standard input: a rank (default 0), all or none", set_stdin,
     .values = "0 all none"},
    {"l|prepend-rank|tag-output", ARG_NONE, NULL, "begin each line of output with [rank]", set_prefix},
    {"prepend-pattern", ARG_ONE, "TEXT", "begin each line with this text; %r is the rank, %h its host",
     PATTERN(prefix)},
    {"outfile-pattern", ARG_ONE, "NAME", "write standard output to files; %r is the rank, %h its host",
     PATTERN(out_pattern), .values = "@file"},
    {"errfile-pattern", ARG_ONE, "NAME", "write standard error to files; %r is the rank, %h its host",
     PATTERN(err_pattern), .values = "@file"},
    {"keep-running", ARG_NONE, NULL,
     "continue when the reader of standard output has gone; by default the job ends, like a pipeline",
     FLAG(keep_running)},
    {"timeout", ARG_ONE, "S",
     "end the job after S seconds with exit status 124, and print what the ranks wait for",
     NUMBER(timeout, 1, 100000000)},
    {"hang-after", ARG_ONE, "S",
     "print what the ranks wait for when the job has made no progress for S seconds; the job continues",
     NUMBER(hang_after, 1, 100000000)},
    {"enable-recovery", ARG_NONE, NULL,
     "when a rank dies, notify the other ranks and let them continue; the exit status is that of the "
     "survivors (docs/fault-tolerance.md)",
     FLAG(recovery)},
    {"with-ft", ARG_ONE, "ulfm", "same as -enable-recovery (Open MPI's spelling)", set_with_ft,
     .values = "ulfm none"},
    {"disable-auto-cleanup", ARG_NONE, NULL,
     "same as -enable-recovery, but the exit status is that of the first rank that failed", set_no_cleanup},
    {"print-all-exitcodes", ARG_NONE, NULL, "print the exit status of every rank at the end",
     FLAG(exit_codes)},
    {"gdb", ARG_MAYBE, "RANK",
     "run all ranks under gdb and print a backtrace when one crashes; with RANK, debug that rank "
     "interactively",
     set_gdb},
    {"xterm", ARG_ONE, "RANKS", "run these ranks (0,3-5 or all) under gdb, each in a window of its own",
     set_xterm},
    {"launcher|bootstrap", ARG_ONE, "NAME",
     "how to reach other hosts: ssh (default), rsh or slurm (srun; default in an allocation)", set_launcher,
     .values = "ssh rsh slurm"},
    {"launcher-exec|bootstrap-exec", ARG_ONE, "CMD",
     "reach other hosts with this command, called as CMD host command...", TEXT(launcher_exec),
     .values = "@file"},
    {"iface|network-interface", ARG_ONE, "NAME",
     "connect mpiexec and its agents over this interface only, on every host (NAME, or ADDRESS/BITS: the "
     "network; any: all interfaces; default: those that lead to the other hosts); FISHPLATE_IB_DEVICES "
     "chooses the adapters for messages",
     TEXT(network)},
    {"fanout", ARG_ONE, "N",
     "number of hosts that each host connects to (default 16); 0: mpiexec connects to all",
     NUMBER(fanout, 0, 1 << 20)},
    {"heartbeat", ARG_ONE, "S",
     "a host that is silent for S seconds is lost (default 30); 0: only when its connection breaks",
     NUMBER(heartbeat, 0, 86400)},
    {"initial-errhandler", ARG_ONE, "NAME",
     "error handler in effect until the program sets one: mpi_errors_are_fatal, mpi_errors_abort or "
     "mpi_errors_return",
     set_errhandler, .values = "mpi_errors_are_fatal mpi_errors_abort mpi_errors_return"},
    {"v|verbose", ARG_NONE, NULL, "print what is started on which host", FLAG(verbose)},
    {"version|V", ARG_NONE, NULL, "print the version", show_version},
    {"report-fd", ARG_ONE, "FD", NULL, set_report_fd, .member = offsetof(struct options, report_fd), .min = 3,
     .max = 1 << 20},
    {"notices", ARG_ONE, "FD,FD", NULL, set_notices},
    {"preput", ARG_ONE, "KEY=VALUE", NULL, STRING(preputs)},
    {"help|h|?", ARG_NONE, NULL, "print this text", show_help},
    {"oversubscribe", ARG_NONE, NULL,
     "permit more ranks than slots or cores without a note, and with -bind-to core more ranks than cores",
     FLAG(oversubscribe)},
};
const unsigned noptdefs = COUNT_OF(optdefs);
