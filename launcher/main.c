/* main.c: mpiexec. A hidden first option makes the same program the agent on other hosts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "remote/agent.h"
#include "boot/spawn_command.h"
#include "boot/keep.h"
#include "supervise.h"
#include "options/options.h"
#include "assemble.h"
#include "core/util.h"
#include "cli/number.h"

/* Opens /dev/null for closed descriptors 0 to 2, so that no pipe gets their numbers. */
static void fill_std_files(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= 2);
    if (fd > 2)
        close(fd);
}

/* Reads the command line from an inherited file, in an mpiexec that MPI_Comm_spawn started. */
static char **read_command(char **argv, int *argc)
{
    long fd = -1;
    char **words =
        number_parse_integer(argv[2], 3, 1 << 20, &fd) ? spawn_command_read((int)fd, argv[0], argc) : NULL;
    if (!words)
        launcher_die(STATUS_USAGE, COMMAND_OPTION " is for a mpiexec that MPI_Comm_spawn starts.");
    return words;
}

int main(int argc, char **argv)
{
    struct options o;
    fill_std_files();
    if (argc > 1 && strcmp(argv[1], AGENT_OPTION) == 0)
        launcher_exit(agent_main(argc, argv));
    if (argc == 2 && strcmp(argv[1], PRINT_OPTIONS_OPTION) == 0) {
        options_print_table();
        launcher_exit(0);
    }
    if (argc > 3 && strcmp(argv[1], KEEP_OPTION) == 0) {
        supervise_mpiexec(argv[2]);
        argv[2] = argv[0];
        argv += 2;
        argc -= 2;
    }
    if (argc == 3 && strcmp(argv[1], COMMAND_OPTION) == 0)
        argv = read_command(argv, &argc);
    options_parse(argc, argv, &o);
    launcher_exit(run_job(&o, argv));
}
