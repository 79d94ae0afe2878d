/* main.c: the `fishplate` tool: the table of its sub-commands.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>

#include "command.h"
#include "lab.h"
#include "cli/options.h"

static int command_version(int argc, char **argv);
static int command_help(int argc, char **argv);

static const struct command commands[] = {
    {"info", "version, transports, settings, algorithms, MPI functions", command_info},
    {"bench", "benchmarks of this library: mpiexec -n 4 fishplate bench", command_bench},
    {"prof", "how a program uses MPI: fishplate prof -- mpiexec -n 4 ./program", command_prof},
    {"ps", "running jobs on this host, and the activity of every rank", command_ps},
    {"why", "why a running job makes no progress: which rank waits for which", command_why},
    {"check", "checks hosts before a job: adapters, limits, speed of every pair", command_check},
    {"tune", "finds the fastest collective algorithms: mpiexec fishplate tune", command_tune},
    {"lab", "simulator, figures of papers, studies of protocols: fishplate-lab", command_lab},
    {"version", "the version, and what it was built for", command_version},
    {"help", "this page", command_help},
    {"sim", NULL, command_forward_to_lab},
    {NULL, NULL, NULL},
};

static int command_version(int argc, char **argv)
{
    (void)argc, (void)argv;
    printf("fishplate %s\n", FISHPLATE_VERSION);
    printf("MPI %d.%d, standard ABI %d.%d\n", MPI_VERSION, MPI_SUBVERSION, MPI_ABI_VERSION,
           MPI_ABI_SUBVERSION);
    return 0;
}

static int command_help(int argc, char **argv)
{
    (void)argc, (void)argv;
    printf("Usage: fishplate <command> [options]\n\nCommands:\n");
    command_list(commands);
    cli_print_page("\n`fishplate <command> --help` explains one of them. To begin with:\n"
                   "  mpicc hello.c -o hello && mpiexec -n 4 ./hello    compile and run a program\n"
                   "  mpiexec -n 4 fishplate bench --short              how fast is it?\n"
                   "  mpiexec -n 2 fishplate bench rma                  one-sided operations\n"
                   "  fishplate prof -- mpiexec -n 4 ./hello            where time in MPI goes\n"
                   "  fishplate info                                    settings and their values\n"
                   "  fishplate info --api ./hello                      calls outside MPI 5.0\n",
                   stdout);
    return 0;
}

int main(int argc, char **argv)
{
    return command_run(commands, "fishplate", argc, argv);
}
