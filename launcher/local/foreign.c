/* foreign.c: recognises other MPI libraries by the names of the libraries that a program needs, and searches
 * its library folders.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "local/foreign.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/elf.h"
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

bool foreign_detect_program(const char *path, struct foreign *out)
{
    struct elf f;
    if (elf_open(&f, path) != NULL)
        return false;
    const bool found = elf_find_dynamic(&f, DT_NEEDED, foreign_check_soname, out);
    elf_close(&f);
    return found;
}

/* Context of search_folders: the program and the library to find. */
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
    struct elf f;
    if (elf_open(&f, path) != NULL)
        return false;
    const bool found = elf_find_dynamic(&f, DT_RUNPATH, search_folders, &s) ||
                       elf_find_dynamic(&f, DT_RPATH, search_folders, &s);
    elf_close(&f);
    return found;
}
