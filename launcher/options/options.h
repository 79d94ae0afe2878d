/* options.h: the command line as data. options.c fills it in; no other file reads argv.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_OPTIONS_H
#define FP_LAUNCHER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/util.h"

struct strings {
    char **v; /* [n], then NULL once a string was added */
    unsigned n, room;
};

void strings_add(struct strings *s, const char *text);
void strings_free(struct strings *s);

/* One part of the command line between colons: a program of an MPMD job. */
struct app_spec {
    long n; /* 0: not given */
    struct strings argv;
    struct strings env; /* NAME=value */
    const char *wdir;
};

enum env_pass { ENV_PASS_ALL, ENV_PASS_NONE, ENV_PASS_LIST };
enum map_by { MAP_BLOCK, MAP_NODE, MAP_SOCKET };
enum bind_to { BIND_DEFAULT, BIND_NONE, BIND_HWTHREAD, BIND_CORE, BIND_L3, BIND_NUMA, BIND_SOCKET };
enum debug { DEBUG_NOT, DEBUG_GDB, DEBUG_XTERM };

#define FANOUT_DEFAULT    16
#define HEARTBEAT_DEFAULT 30

#define STDIN_ALL  (-1)
#define STDIN_NONE (-2)

struct options {
    struct app_spec *apps;
    unsigned napps;
    struct strings hosts; /* "name" or "name:slots" */
    const char *hostfile, *rankfile;
    long ppn, vnodes;
    const char *hcas; /* adapters of a virtual node; NULL: not given */
    long universe;    /* MPI_UNIVERSE_SIZE; 0: as many as there are slots */
    enum map_by map_by, rank_by;
    bool rank_by_given;
    long cpus_per_rank;    /* 0: not given */
    long ppr;              /* ranks on each `ppr_unit` (-map-by ppr:N:UNIT); 0: not given */
    enum bind_to ppr_unit; /* unit of `ppr`; BIND_NONE: the node */
    enum bind_to bind;
    struct strings genv, genvlist; /* genv: NAME=value; genvlist: NAME */
    enum env_pass env_pass;
    const char *prefix; /* prefix of each line of output, with %r and %h; NULL: none */
    bool verbose, show_map, exit_codes;
    bool no_cleanup; /* a failed rank does not end the others; the exit status is that of the failed rank */
    bool recovery;   /* the other ranks are notified of a dead rank and continue */
    enum debug debug;
    const char *debug_ranks; /* NULL: all ranks */
    bool keep_running;       /* do not end the job when the reader of standard output closes it */
    bool oversubscribe;      /* ranks may share cores, and no note is printed */
    const char *out_pattern, *err_pattern;
    const char *launcher; /* NULL: not given */
    const char *launcher_exec;
    const char *network; /* NULL: all networks */
    long fanout;         /* agents that a process starts itself (tree.h); 0: mpiexec starts all agents */
    long heartbeat;      /* seconds of silence after which a host is lost; 0: no heartbeats */
    long timeout;        /* seconds; 0: none */
    long hang_after;     /* seconds; 0: none */
    long stdin_rank;     /* rank that reads standard input; or STDIN_ALL, STDIN_NONE */
    long init_timeout;   /* seconds */
    long report_fd;  /* pipe to the mpiexec that started this one for a spawned job (spawned.h); 0: none */
    long notices_fd; /* file of the notices of that mpiexec; 0: none */
    long bell_fd;    /* eventfd that is written to after each notice */
    struct strings preputs; /* key=value pairs that are in the PMI key-value space from the start */
    const char *
        /* a program of another MPI library that may not contact this mpiexec, for messages; NULL: none */
        foreign;
};

/* Parses the command line. Ends mpiexec with a message on invalid input, and after --help and --version. */
void options_parse(int argc, char **argv, struct options *out);

/* Prints the text of --help. */
void options_help(void);

/* The table of options, for tools/options-to-texts: completion and the manual page are made from it. */
#define PRINT_OPTIONS_OPTION "--fishplate-print"
void options_print_table(void);

/* Prints one line about variables of other MPI libraries that are set and have no effect here (habits.c). */
void options_notice_foreign(const struct options *o, char *const *environment);

#endif
