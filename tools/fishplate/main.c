/* main.c: the `fishplate` tool: finds the sub-command and runs it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/inside.h"
#include "command.h"

static int command_version(int argc, char **argv);
static int command_help(int argc, char **argv);

static const struct command commands[] = {
    {"info", "what this library is made of: tunables, transports, collectives, functions", command_info},
    {"bench", "how fast it is here; an MPI program: mpiexec -n 4 fishplate bench", command_bench},
    {"prof", "how a program uses MPI: fishplate prof -- mpiexec -n 4 ./program", command_prof},
    {"sim", "collectives on a machine of any size: fishplate sim allreduce --nodes 10000", command_sim},
    {"ps", "the jobs that run here, and what every rank does", command_ps},
    {"why", "why a running job does not go on: who waits for whom", command_why},
    {"check", "are these hosts fit for a job? adapters, limits, speed of every pair", command_check},
    {"tune", "which collective algorithms are fastest on these hosts: mpiexec -n 16 fishplate tune",
     command_tune},
    {"version", "the version, and what it was built for", command_version},
    {"help", "this page", command_help},
};
enum { NCOMMANDS = sizeof(commands) / sizeof(commands[0]) };

const struct fishplate_inside *inside_of_library(void)
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
    for (int i = 0; i < NCOMMANDS; i++)
        printf("  %-9s %s\n", commands[i].name, commands[i].summary);
    printf("\n`fishplate <command> --help` explains one of them. To begin with:\n"
           "  mpicc hello.c -o hello && mpiexec -n 4 ./hello    compile and run a program\n"
           "  mpiexec -n 4 fishplate bench --short              is it fast, and over which transport?\n"
           "  fishplate bench ib --help                         what each design of InfiniBand gains\n"
           "  fishplate bench rails --help                      what several adapters gain\n"
           "  mpiexec -n 4 fishplate bench kernels              kernels of scientific programs, verified\n"
           "  mpiexec -n 2 fishplate bench rma                  one-sided operations: time, rate, bandwidth\n"
           "  fishplate prof -- mpiexec -n 4 ./hello            where a program's time in MPI goes\n"
           "  fishplate info                                    the tunables and what they are set to\n"
           "  fishplate info --api ./hello                      does it call what is not in MPI 5.0?\n");
    return 0;
}

int command_usage(int option, const char *usage)
{
    fputs(usage, option == 'h' ? stdout : stderr);
    return option == 'h' ? 0 : 2;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "help";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        name = "version";
    for (int i = 0; i < NCOMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return commands[i].run(argc > 1 ? argc - 1 : argc, argc > 1 ? argv + 1 : argv);
    fprintf(stderr, "fishplate: there is no command '%s'; `fishplate help` lists them.\n", name);
    return 2;
}
