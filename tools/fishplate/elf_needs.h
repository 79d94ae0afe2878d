/* elf_needs.h: which MPI functions a program, a shared library or an object file calls, read from its ELF symbols.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_ELF_NEEDS_H
#define FP_TOOLS_ELF_NEEDS_H

/* Calls `found` with the name of each undefined symbol, `what` passed on. Returns NULL, or a sentence about what is
 * wrong with the file, which is static. */
const char *elf_needs(const char *path, void (*found)(const char *symbol, void *what), void *what);

#endif
