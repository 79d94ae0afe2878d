/* foreign.c: reads the names of the libraries that an ELF program needs. The file may contain anything, so
 * every offset is checked against the file size. Files of the other byte order or of 32 bits are ignored.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "foreign.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util.h"

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

static bool get(const struct file *f, uint64_t at, void *out, size_t len)
{
    if (at > f->size || len > f->size - at)
        return false;
    memcpy(out, f->data + at, len);
    return true;
}

/* Where an address of the running program lies in the file; UINT64_MAX: nowhere. */
static uint64_t offset_of(const struct file *f, const Elf64_Ehdr *e, uint64_t address)
{
    Elf64_Phdr p;
    for (unsigned i = 0; i < e->e_phnum; i++)
        if (get(f, e->e_phoff + (uint64_t)i * sizeof(p), &p, sizeof(p)) && p.p_type == PT_LOAD &&
            address >= p.p_vaddr && address - p.p_vaddr < p.p_filesz)
            return address - p.p_vaddr + p.p_offset;
    return UINT64_MAX;
}

static bool judge(const struct file *f, uint64_t at, struct foreign *out)
{
    size_t len = at < f->size ? strnlen((const char *)f->data + at, f->size - at) : 0;
    if (len == 0 || len >= sizeof(out->soname))
        return false;
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (strncmp((const char *)f->data + at, known[i].soname, strlen(known[i].soname)) == 0) {
            *out = (struct foreign){known[i].library, known[i].start, known[i].connects, ""};
            memcpy(out->soname, f->data + at, len);
            return true;
        }
    return false;
}

static bool look_into_dynamic(const struct file *f, const Elf64_Ehdr *e, const Elf64_Phdr *dynamic,
                              struct foreign *out)
{
    uint64_t n = dynamic->p_filesz / sizeof(Elf64_Dyn), names = UINT64_MAX;
    Elf64_Dyn d;
    for (uint64_t i = 0;
         i < n && get(f, dynamic->p_offset + i * sizeof(d), &d, sizeof(d)) && d.d_tag != DT_NULL; i++)
        if (d.d_tag == DT_STRTAB)
            names = offset_of(f, e, d.d_un.d_ptr);
    if (names > f->size)
        return false;
    for (uint64_t i = 0;
         i < n && get(f, dynamic->p_offset + i * sizeof(d), &d, sizeof(d)) && d.d_tag != DT_NULL; i++)
        if (d.d_tag == DT_NEEDED && d.d_un.d_val < f->size && judge(f, names + d.d_un.d_val, out))
            return true;
    return false;
}

bool foreign_bytes(const unsigned char *data, size_t size, struct foreign *out)
{
    struct file f = {data, size};
    Elf64_Ehdr e;
    Elf64_Phdr p;
    const uint16_t one = 1;
    const unsigned order = *(const unsigned char *)&one ? ELFDATA2LSB : ELFDATA2MSB;
    if (!get(&f, 0, &e, sizeof(e)) || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
        e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_ident[EI_DATA] != order)
        return false;
    for (unsigned i = 0; i < e.e_phnum; i++)
        if (get(&f, e.e_phoff + (uint64_t)i * sizeof(p), &p, sizeof(p)) && p.p_type == PT_DYNAMIC)
            return look_into_dynamic(&f, &e, &p, out);
    return false;
}

bool foreign_program(const char *path, struct foreign *out)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool found = false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data != MAP_FAILED) {
            found = foreign_bytes(data, (size_t)st.st_size, out);
            munmap(data, (size_t)st.st_size);
        }
    }
    close(fd);
    return found;
}
