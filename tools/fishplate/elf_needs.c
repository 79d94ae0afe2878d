/* elf_needs.c: reads the symbol table of an ELF file of this machine's word size and byte order. Every offset comes
 * from the file, so each is checked against its length before it is used.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "elf_needs.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct image {
    const char *bytes;
    size_t size;
};

/* count elements of `each` bytes at `offset`, or NULL when they are not all inside the file or not aligned. */
static const void *elf_section(const struct image *f, uint64_t offset, uint64_t count, size_t each)
{
    if (offset > f->size || count > (f->size - offset) / each || offset % _Alignof(uint64_t) != 0)
        return NULL;
    return f->bytes + offset;
}

static bool is_native_elf(const Elf64_Ehdr *head)
{
    const uint16_t one = 1;
    const unsigned char order = *(const unsigned char *)&one == 1 ? ELFDATA2LSB : ELFDATA2MSB;
    return head && memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_ident[EI_CLASS] == ELFCLASS64 &&
           head->e_ident[EI_DATA] == order && head->e_shentsize == sizeof(Elf64_Shdr);
}

/* The dynamic symbols; of an object file, which has none, the others. */
static const Elf64_Shdr *symbol_section(const Elf64_Shdr *sections, size_t n)
{
    static const uint32_t types[] = {SHT_DYNSYM, SHT_SYMTAB};
    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0; i < n; i++)
            if (sections[i].sh_type == types[t])
                return &sections[i];
    return NULL;
}

/* The string at `name` of a table that ends with a zero byte, or NULL. */
static const char *elf_string(const struct image *f, const Elf64_Shdr *text, uint64_t name)
{
    if (text->sh_offset > f->size || text->sh_size > f->size - text->sh_offset || name >= text->sh_size ||
        f->bytes[text->sh_offset + text->sh_size - 1] != '\0')
        return NULL;
    return f->bytes + text->sh_offset + name;
}

static void walk_libraries(const struct image *f, const Elf64_Shdr *sections, size_t n,
                           const struct elf_found *found)
{
    for (size_t i = 0; i < n; i++) {
        if (sections[i].sh_type != SHT_DYNAMIC || sections[i].sh_link >= n)
            continue;
        const size_t count = sections[i].sh_size / sizeof(Elf64_Dyn);
        const Elf64_Dyn *entries = elf_section(f, sections[i].sh_offset, count, sizeof(*entries));
        for (size_t k = 0; entries && k < count; k++) {
            const char *name = entries[k].d_tag == DT_NEEDED
                                   ? elf_string(f, &sections[sections[i].sh_link], entries[k].d_un.d_val)
                                   : NULL;
            if (name)
                found->library(name, found->arg);
        }
    }
}

static const char *elf_walk_symbols(const struct image *f, const struct elf_found *found)
{
    const Elf64_Ehdr *head = elf_section(f, 0, 1, sizeof(*head));
    if (!is_native_elf(head))
        return "it is not a 64-bit ELF program, library or object of this machine";
    const Elf64_Shdr *sections = elf_section(f, head->e_shoff, head->e_shnum, sizeof(*sections));
    const Elf64_Shdr *table = sections ? symbol_section(sections, head->e_shnum) : NULL;
    if (!table || table->sh_link >= head->e_shnum)
        return "it has no table of symbols (a static program, or stripped of its sections)";
    const Elf64_Shdr *text = &sections[table->sh_link];
    const size_t n = table->sh_size / sizeof(Elf64_Sym);
    const Elf64_Sym *symbols = elf_section(f, table->sh_offset, n, sizeof(*symbols));
    if (!symbols || !elf_string(f, text, 0))
        return "its table of symbols is damaged";
    for (size_t i = 0; i < n; i++)
        if (symbols[i].st_shndx == SHN_UNDEF && symbols[i].st_name > 0 && symbols[i].st_name < text->sh_size)
            found->symbol(f->bytes + text->sh_offset + symbols[i].st_name, found->arg);
    walk_libraries(f, sections, head->e_shnum, found);
    return NULL;
}

const char *elf_needs(const char *path, const struct elf_found *found)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return strerror(errno);
    void *bytes = MAP_FAILED;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0)
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (bytes == MAP_FAILED)
        return "it is not a file with anything in it";
    const struct image f = {bytes, (size_t)status.st_size};
    const char *problem = elf_walk_symbols(&f, found);
    munmap(bytes, f.size);
    return problem;
}
