/* elf_needs.h: which MPI functions a program, a shared library or an object file calls, read from its ELF symbols.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_ELF_NEEDS_H
#define FP_TOOLS_ELF_NEEDS_H

struct elf_found {
    void (*symbol)(const char *name, void *arg);  /* each undefined symbol */
    void (*library)(const char *name, void *arg); /* each library that the file is linked with */
    void *arg;
};

/* Returns NULL, or a static sentence that describes the defect of the file. */
const char *elf_needs(const char *path, const struct elf_found *found);

#endif
