/* program.h: what back ends that start programs by themselves share: the info keys of a program, and the environment variable
 * by which its processes learn of their parents.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_PROGRAM_H
#define FP_BOOT_PROGRAM_H

#include "boot/boot.h"

/* The value of a key of the program's info; NULL: it has no such key. */
const char *program_info(const struct boot_program *program, const char *key);

/* The command itself, or where it is in the folders of the info key path, separated by colons. The caller's to free; NULL
 * without memory. */
char *program_command(const struct boot_program *program);

/* Sets boot->parent and boot->several in a process that was spawned. MPI_ERR_NO_MEM, or 0. */
int program_parent(struct boot *b);

#endif
