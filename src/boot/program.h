/* program.h: functions of back ends that start programs themselves: info keys of a program, and the
 * environment variable that contains the parents' port.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_PROGRAM_H
#define FP_BOOT_PROGRAM_H

#include "boot/boot.h"

/* The value of a key of the program's info; NULL: it has no such key. */
const char *program_get_info(const struct boot_program *program, const char *key);

/* Returns the path of the command in the folders of the info key path (separated by colons), or the command
 * itself if no folder contains it. The caller frees it; NULL: out of memory. */
char *program_find_command(const struct boot_program *program);

/* Sets boot->parent and boot->several in a process that was spawned. MPI_ERR_NO_MEM, or 0. */
int program_read_parent_port(struct boot *b);

#endif
