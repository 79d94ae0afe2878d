/* elf.h: what ELF files of this machine state about themselves: libraries, folders of libraries, undefined symbols.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_CLI_ELF_H
#define FP_CLI_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An open file. Its content is untrusted: every function checks the offsets that the file contains. */
struct elf {
    const char *bytes;
    size_t size;
};

/* Returns NULL, or an error message if the file cannot be read; the file is then not open. */
const char *elf_open(struct elf *f, const char *path);
void elf_close(struct elf *f);

/* Calls fn with the strings of the dynamic section that have this tag (DT_NEEDED, DT_RUNPATH ...) until fn
 * returns true. Returns true if fn did. */
bool elf_find_dynamic(const struct elf *f, int64_t tag, bool (*fn)(void *ctx, const char *text), void *ctx);

/* Calls fn with the name of each undefined symbol. Returns NULL or an error message. */
const char *elf_for_each_undefined(const struct elf *f, void (*fn)(void *ctx, const char *name), void *ctx);

/* Address at which the file expects to be mapped: 0 unless the program is not position-independent. */
uint64_t elf_base_address(const struct elf *f);

#endif
