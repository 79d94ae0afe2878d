/* elf.c: reads ELF files without trusting their offsets and sizes (elf.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool elf_read(const struct elf *f, uint64_t at, void *out, size_t length)
{
    if (at > f->size || length > f->size - at)
        return false;
    memcpy(out, f->bytes + at, length);
    return true;
}

/* Returns false if word size or byte order differ from this machine's. */
static bool elf_read_header(const struct elf *f, Elf64_Ehdr *out)
{
    const uint16_t one = 1;
    const unsigned char order = *(const unsigned char *)&one ? ELFDATA2LSB : ELFDATA2MSB;
    return elf_read(f, 0, out, sizeof(*out)) && memcmp(out->e_ident, ELFMAG, SELFMAG) == 0 &&
           out->e_ident[EI_CLASS] == ELFCLASS64 && out->e_ident[EI_DATA] == order;
}

/* The string at `index` of a table of `size` bytes; NULL if it is not entirely inside the file. */
static const char *elf_string(const struct elf *f, uint64_t table, uint64_t size, uint64_t index)
{
    if (table > f->size || size > f->size - table || index >= size ||
        !memchr(f->bytes + table + index, '\0', size - index))
        return NULL;
    return f->bytes + table + index;
}

const char *elf_open(struct elf *f, const char *path)
{
    struct stat status;
    Elf64_Ehdr header;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return strerror(errno);
    void *bytes = MAP_FAILED;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0)
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (bytes == MAP_FAILED)
        return "it is not a file with anything in it";
    *f = (struct elf){bytes, (size_t)status.st_size};
    if (elf_read_header(f, &header))
        return NULL;
    elf_close(f);
    return "it is not a 64-bit ELF program, library or object of this machine";
}

void elf_close(struct elf *f)
{
    munmap((void *)f->bytes, f->size);
}

/* The i-th program header of this type. */
static bool elf_find_segment(const struct elf *f, uint32_t type, unsigned i, Elf64_Phdr *out)
{
    Elf64_Ehdr header;
    if (!elf_read_header(f, &header) || header.e_phentsize != sizeof(*out))
        return false;
    for (unsigned k = 0; k < header.e_phnum; k++)
        if (elf_read(f, header.e_phoff + k * sizeof(*out), out, sizeof(*out)) && out->p_type == type &&
            i-- == 0)
            return true;
    return false;
}

/* File offset of an address of the running program; UINT64_MAX: not in the file. */
static uint64_t elf_file_offset(const struct elf *f, uint64_t address)
{
    Elf64_Phdr p;
    for (unsigned i = 0; elf_find_segment(f, PT_LOAD, i, &p); i++)
        if (address >= p.p_vaddr && address - p.p_vaddr < p.p_filesz)
            return address - p.p_vaddr + p.p_offset;
    return UINT64_MAX;
}

/* The i-th entry of the dynamic section; false after the last. */
static bool elf_read_dynamic(const struct elf *f, const Elf64_Phdr *section, uint64_t i, Elf64_Dyn *out)
{
    return i < section->p_filesz / sizeof(*out) &&
           elf_read(f, section->p_offset + i * sizeof(*out), out, sizeof(*out)) && out->d_tag != DT_NULL;
}

bool elf_find_dynamic(const struct elf *f, int64_t tag, bool (*fn)(void *ctx, const char *text), void *ctx)
{
    Elf64_Phdr section;
    Elf64_Dyn d;
    uint64_t names = UINT64_MAX;
    if (!elf_find_segment(f, PT_DYNAMIC, 0, &section))
        return false;
    for (uint64_t i = 0; elf_read_dynamic(f, &section, i, &d); i++)
        if (d.d_tag == DT_STRTAB)
            names = elf_file_offset(f, d.d_un.d_ptr);
    for (uint64_t i = 0; names <= f->size && elf_read_dynamic(f, &section, i, &d); i++) {
        const char *text = d.d_tag == tag ? elf_string(f, names, f->size - names, d.d_un.d_val) : NULL;
        if (text && *text && fn(ctx, text))
            return true;
    }
    return false;
}

static bool elf_read_section(const struct elf *f, const Elf64_Ehdr *header, unsigned i, Elf64_Shdr *out)
{
    return i < header->e_shnum && header->e_shentsize == sizeof(*out) &&
           elf_read(f, header->e_shoff + i * sizeof(*out), out, sizeof(*out));
}

/* Finds the table of dynamic symbols or, in an object file, which has none, the full symbol table. */
static bool elf_find_symbols(const struct elf *f, const Elf64_Ehdr *header, Elf64_Shdr *out)
{
    static const uint32_t types[] = {SHT_DYNSYM, SHT_SYMTAB};
    for (unsigned t = 0; t < 2; t++)
        for (unsigned i = 0; elf_read_section(f, header, i, out); i++)
            if (out->sh_type == types[t])
                return true;
    return false;
}

const char *elf_for_each_undefined(const struct elf *f, void (*fn)(void *ctx, const char *name), void *ctx)
{
    Elf64_Ehdr header;
    Elf64_Shdr table, names;
    Elf64_Sym symbol;
    /* The last section header is read first: a file that was cut off there may lack symbols too. */
    if (!elf_read_header(f, &header) || !elf_read_section(f, &header, header.e_shnum - 1u, &names) ||
        !elf_find_symbols(f, &header, &table) || !elf_read_section(f, &header, table.sh_link, &names))
        return "it has no table of symbols (a static program, or stripped of its sections)";
    for (uint64_t i = 0; i < table.sh_size / sizeof(symbol); i++) {
        const char *name = elf_read(f, table.sh_offset + i * sizeof(symbol), &symbol, sizeof(symbol))
                               ? elf_string(f, names.sh_offset, names.sh_size, symbol.st_name)
                               : NULL;
        if (!name)
            return "its table of symbols is damaged";
        if (symbol.st_shndx == SHN_UNDEF && *name)
            fn(ctx, name);
    }
    return NULL;
}

uint64_t elf_base_address(const struct elf *f)
{
    Elf64_Phdr first;
    return elf_find_segment(f, PT_LOAD, 0, &first) ? first.p_vaddr & ~(uint64_t)0xfff : 0;
}
