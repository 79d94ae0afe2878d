/* command.c: functions for every sub-command: usage text, and access to the library's table after a version
 * check.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/inside.h"
#include "cli/options.h"

const struct fishplate_inside *get_library_table(void)
{
    const struct fishplate_inside *in = fishplate_inside();
    if (strcmp(in->version, FISHPLATE_VERSION) == 0 && in->size == sizeof(*in))
        return in;
    fprintf(
        stderr,
        "fishplate: this tool is version %s but found libmpi_abi.so.1 of version %s. Use the tool that was "
        "installed with the library, or correct LD_LIBRARY_PATH.\n",
        FISHPLATE_VERSION, in->version);
    exit(2);
}

int command_usage(int result, const char *before, const struct cli_option *options, const char *after)
{
    if (result != CLI_HELP)
        return 2;
    cli_print_page(before, stdout);
    cli_print_options(options, stdout);
    cli_print_page(after, stdout);
    return 0;
}

static bool report_unwritable_file(const char *program, const char *path)
{
    fprintf(stderr, "%s: cannot write %s: %s.\n", program, path, strerror(errno));
    return false;
}

bool command_can_write(const char *program, const char *path)
{
    char folder[PATH_MAX];
    if (!path || strcmp(path, "-") == 0 || access(path, W_OK) == 0)
        return true;
    if (errno != ENOENT)
        return report_unwritable_file(program, path);
    snprintf(folder, sizeof(folder), "%s", path);
    char *slash = strrchr(folder, '/');
    snprintf(slash ? slash + 1 : folder, 2, ".");
    return access(folder, W_OK) == 0 || report_unwritable_file(program, path);
}

bool command_write_file(const char *program, const char *path, void (*write)(FILE *out, const void *arg),
                        const void *arg)
{
    FILE *out = fopen(path, "w");
    if (out)
        write(out, arg);
    return (out && fclose(out) == 0) || report_unwritable_file(program, path);
}

int command_run(const struct command *commands, const char *program, int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "help";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        name = "version";
    for (const struct command *c = commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c->run(argc > 1 ? argc - 1 : argc, argc > 1 ? argv + 1 : argv);
    fprintf(stderr, "%s: there is no command '%s'; `%s help` lists them.\n", program, name, program);
    return 2;
}

void command_list(const struct command *commands)
{
    for (const struct command *c = commands; c->name; c++)
        if (c->summary)
            cli_print_text(c->summary, printf("  %-7s", c->name), 12, stdout);
}
