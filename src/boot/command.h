/* command.h: the command line of a mpiexec that the library or another mpiexec starts. Every user of a machine can read the
 * arguments of a process (/proc/PID/cmdline), and such a command contains variables of the user and the key of the
 * parents' port. The words go through a file in memory instead, which only the new process inherits. Depends on libc alone:
 * the launcher compiles it, too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_COMMAND_H
#define FP_BOOT_COMMAND_H

/* The only argument of an mpiexec that a singleton starts; its value is the descriptor of the file. */
#define COMMAND_OPTION "--fishplate-command"

/* Writes the words up to NULL (without the program's own name) to an anonymous file, close-on-exec; a descriptor, or
 * -1 with errno. */
int command_write(char *const *words);

/* Reads and closes the file: the name of the program, the arguments, NULL, in allocated memory. NULL with
 * errno if it is no such file. */
char **command_read(int fd, char *program, int *count);

#endif
