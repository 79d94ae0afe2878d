/* spawn_command.h: the command line of an mpiexec that the library or another mpiexec starts. Every user of a
 * machine can read the arguments of a process (/proc/PID/cmdline), and such a command contains variables
 * of the user and the key of the parents' port. Therefore the words are passed in a memory file, which
 * only the new process inherits. Depends on libc alone: the launcher compiles it, too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_SPAWN_COMMAND_H
#define FP_BOOT_SPAWN_COMMAND_H

/* An option of mpiexec, whose value is the descriptor of the file. */
#define COMMAND_OPTION "--fishplate-command"

/* Writes the words up to NULL (without argv[0]) to a memory file. Returns a close-on-exec descriptor, or
 * -1 with errno. */
int spawn_command_write(char *const *words);

/* Reads and closes the file. Returns an allocated vector: program, the words, NULL. NULL with errno, for
 * example if fd is not a file of spawn_command_write. */
char **spawn_command_read(int fd, char *program, int *count);

#endif
