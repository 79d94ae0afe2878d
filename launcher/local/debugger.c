/* debugger.c: which ranks run under a debugger, and how. Several ranks cannot share one keyboard: with more than
 * one rank, gdb only shows where a rank crashes, unless each rank has a window.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "local/debugger.h"

#include <stdlib.h>
#include <string.h>

#include "local/spawn.h"
#include "cli/number.h"

/* Parses the next range of a list such as "0,3-5"; false at the end. */
static bool parse_next_range(const char **text, long *first, long *last)
{
    size_t len = strcspn(*text, ",");
    char *word = xstrf("%.*s", (int)len, *text), *dash = strchr(word, '-');
    if (len == 0 && **text == '\0') {
        free(word);
        return false;
    }
    if (dash)
        *dash = '\0';
    bool ok = number_parse_integer(word, 0, 1 << 24, first);
    *last = *first;
    if (ok && dash)
        ok = number_parse_integer(dash + 1, *first, 1 << 24, last);
    if (!ok)
        launcher_die(STATUS_USAGE, "Ranks to debug are numbers and ranges, such as 0,3-5, not \"%s\".",
                     *text);
    free(word);
    *text += len + ((*text)[len] == ',');
    return true;
}

bool debug_is_selected(const struct options *o, uint32_t rank)
{
    long first, last;
    bool found = o->debug != DEBUG_NOT && !o->debug_ranks;
    for (const char *text = o->debug_ranks;
         o->debug != DEBUG_NOT && text && parse_next_range(&text, &first, &last);)
        found = found || (rank >= (uint32_t)first && rank <= (uint32_t)last);
    return found;
}

/* Returns the only debugged rank, which reads standard input; -1 if there are several. */
static long get_single_debug_rank(const struct options *o)
{
    long rank = -1;
    if (o->debug_ranks && !number_parse_integer(o->debug_ranks, 0, 1 << 24, &rank))
        rank = -1;
    return rank;
}

static void debug_require_program(const char *program, const char *option)
{
    char *path = spawn_find(program, getenv("PATH"), ".");
    if (!path)
        launcher_die(STATUS_USAGE, "%s needs the program %s, which is not installed or not in PATH.", option,
                     program);
    free(path);
}

void debug_check(struct options *o, uint32_t size)
{
    long first, last, one = get_single_debug_rank(o);
    if (o->debug == DEBUG_NOT)
        return;
    for (const char *text = o->debug_ranks; text && parse_next_range(&text, &first, &last);)
        if (last >= (long)size)
            launcher_die(STATUS_USAGE, "Rank %ld cannot be debugged: there is no such rank in a job of %u.",
                         last, size);
    debug_require_program("gdb", o->debug == DEBUG_GDB ? "-gdb" : "-xterm");
    if (o->debug == DEBUG_XTERM) {
        debug_require_program("xterm", "-xterm");
        if (!getenv("DISPLAY"))
            launcher_die(STATUS_USAGE,
                         "-xterm opens windows, and there is no display (DISPLAY is not set). -gdb=RANK "
                         "debugs one rank here.");
    } else if (one >= 0) {
        o->stdin_rank = one;
    }
}

/* Builds the debugger's command line. In batch mode gdb prints the backtraces of all threads: a plain
 * `backtrace` is an error if the program has already ended. */
char **debug_build_command(const struct options *o, char **argv)
{
    static const char *const batch[] = {"gdb",    "-q",  "-batch", "-return-child-result",
                                        "-ex",    "run", "-ex",    "thread apply all -s backtrace",
                                        "--args", NULL};
    static const char *const interactive[] = {"gdb", "-q", "--args", NULL};
    static const char *const window[] = {
        "sh", "-c", "exec xterm -T \"rank $PMI_RANK\" -e gdb -q --args \"$@\"", "sh", NULL};
    const char *const *words = o->debug == DEBUG_XTERM         ? window
                               : get_single_debug_rank(o) >= 0 ? interactive
                                                               : batch;
    struct strings all = {0};
    for (; *words; words++)
        strings_add(&all, *words);
    for (; *argv; argv++)
        strings_add(&all, *argv);
    return all.v;
}
