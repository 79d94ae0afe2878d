/* foreign.c: reads the names of the libraries that an ELF program needs. The file may contain anything, so
 * every offset is checked against the file size. Files of the other byte order or of 32 bits are ignored.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "local/foreign.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/util.h"

static const struct {
    const char *soname, *library, *start;
    bool connects;
} known[] = {
    {"libmpi.so.40", "Open MPI", "Open MPI's mpiexec (orterun)", false},
    {"libmpi.so.20", "Open MPI", "Open MPI's mpiexec (orterun)", false},
    {"libopen-rte.so", "Open MPI", "Open MPI's mpiexec (orterun)", false},
    {"libmpich.so", "MPICH", "MPICH's mpiexec (mpiexec.hydra)", true},
    {"libmpi.so.12", "MPICH or Intel MPI", "its own mpiexec (mpiexec.hydra)", true},
    {"libmpi.so.0", "MPICH", "its own mpiexec (mpiexec.hydra)", true},
};

struct file {
    const unsigned char *data;
    size_t size;
};

static bool elf_read(const struct file *f, uint64_t at, void *out, size_t len)
{
    if (at > f->size || len > f->size - at)
        return false;
    memcpy(out, f->data + at, len);
    return true;
}

/* File offset of an address of the running program; UINT64_MAX: not in the file. */
static uint64_t elf_file_offset(const struct file *f, const Elf64_Ehdr *e, uint64_t address)
{
    Elf64_Phdr p;
    for (unsigned i = 0; i < e->e_phnum; i++)
        if (elf_read(f, e->e_phoff + (uint64_t)i * sizeof(p), &p, sizeof(p)) && p.p_type == PT_LOAD &&
            address >= p.p_vaddr && address - p.p_vaddr < p.p_filesz)
            return address - p.p_vaddr + p.p_offset;
    return UINT64_MAX;
}

static bool foreign_check_soname(void *ctx, const char *soname)
{
    struct foreign *out = ctx;
    if (strlen(soname) >= sizeof(out->soname))
        return false;
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (strncmp(soname, known[i].soname, strlen(known[i].soname)) == 0) {
            *out = (struct foreign){known[i].library, known[i].start, known[i].connects, ""};
            strcpy(out->soname, soname);
            return true;
        }
    return false;
}

typedef bool string_fn(void *ctx, const char *text);

/* Calls fn with the strings that have this tag until it returns true. */
static bool find_string(const struct file *f, const Elf64_Ehdr *e, const Elf64_Phdr *dynamic, int64_t tag,
                        string_fn *fn, void *ctx)
{
    uint64_t n = dynamic->p_filesz / sizeof(Elf64_Dyn), names = UINT64_MAX;
    Elf64_Dyn d;
    for (uint64_t i = 0;
         i < n && elf_read(f, dynamic->p_offset + i * sizeof(d), &d, sizeof(d)) && d.d_tag != DT_NULL; i++)
        if (d.d_tag == DT_STRTAB)
            names = elf_file_offset(f, e, d.d_un.d_ptr);
    if (names > f->size)
        return false;
    for (uint64_t i = 0;
         i < n && elf_read(f, dynamic->p_offset + i * sizeof(d), &d, sizeof(d)) && d.d_tag != DT_NULL; i++) {
        if (d.d_tag != tag || d.d_un.d_val >= f->size - names)
            continue;
        const char *text = (const char *)f->data + names + d.d_un.d_val;
        const size_t room = f->size - names - d.d_un.d_val;
        if (*text && strnlen(text, room) < room && fn(ctx, text))
            return true;
    }
    return false;
}

static bool find_in_bytes(const unsigned char *data, size_t size, int64_t tag, string_fn *fn, void *ctx)
{
    struct file f = {data, size};
    Elf64_Ehdr e;
    Elf64_Phdr p;
    const uint16_t one = 1;
    const unsigned order = *(const unsigned char *)&one ? ELFDATA2LSB : ELFDATA2MSB;
    if (!elf_read(&f, 0, &e, sizeof(e)) || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
        e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_ident[EI_DATA] != order)
        return false;
    for (unsigned i = 0; i < e.e_phnum; i++)
        if (elf_read(&f, e.e_phoff + (uint64_t)i * sizeof(p), &p, sizeof(p)) && p.p_type == PT_DYNAMIC)
            return find_string(&f, &e, &p, tag, fn, ctx);
    return false;
}

static bool find_in_file(const char *path, int64_t tag, string_fn *fn, void *ctx)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool found = false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data != MAP_FAILED) {
            found = find_in_bytes(data, (size_t)st.st_size, tag, fn, ctx);
            munmap(data, (size_t)st.st_size);
        }
    }
    close(fd);
    return found;
}

bool foreign_program(const char *path, struct foreign *out)
{
    return find_in_file(path, DT_NEEDED, foreign_check_soname, out);
}

/* The folders in which the loader searches a program's libraries. */
struct search {
    const char *program, *soname;
};

static bool has_library(const char *folder, size_t len, const char *soname)
{
    char *path = xstrf("%.*s/%s", (int)len, folder, soname);
    const bool found = len > 0 && access(path, R_OK) == 0;
    free(path);
    return found;
}

bool foreign_find_in_folders(const char *folders, const char *soname)
{
    while (folders && *folders) {
        const size_t len = strcspn(folders, ":");
        if (has_library(folders, len, soname))
            return true;
        folders += len + (folders[len] == ':');
    }
    return false;
}

/* Folders of DT_RUNPATH; only $ORIGIN of the loader's variables is supported. */
static bool search_folders(void *ctx, const char *folders)
{
    static const char *const origins[] = {"$ORIGIN", "${ORIGIN}"};
    const struct search *s = ctx;
    const char *slash = strrchr(s->program, '/');
    char *text = xstrdup(folders);
    for (size_t i = 0; i < COUNT_OF(origins); i++)
        for (char *at; slash && (at = strstr(text, origins[i]));) {
            char *longer = xstrf("%.*s%.*s%s", (int)(at - text), text, (int)(slash - s->program), s->program,
                                 at + strlen(origins[i]));
            free(text);
            text = longer;
        }
    const bool found = foreign_find_in_folders(text, s->soname);
    free(text);
    return found;
}

bool foreign_program_finds_library(const char *path, const char *soname)
{
    struct search s = {path, soname};
    return find_in_file(path, DT_RUNPATH, search_folders, &s) ||
           find_in_file(path, DT_RPATH, search_folders, &s);
}
