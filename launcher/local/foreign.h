/* foreign.h: programs that are linked with another MPI library. They do not know this mpiexec, or only
 * through PMI-1, and would run as many jobs of one rank each.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_FOREIGN_H
#define FP_LAUNCHER_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>

struct foreign {
    const char *library; /* "Open MPI" */
    const char *start;   /* the launcher for programs of that library */
    bool connects;       /* the program may contact this mpiexec by PMI-1, which shows only when it runs */
    char soname[64];
};

/* False if the program is not linked with a foreign MPI library, or cannot be read. */
bool foreign_program(const char *path, struct foreign *out);

/* One of these folders, separated by colons, contains the library. NULL: no folder. */
bool foreign_find_in_folders(const char *folders, const char *soname);

/* One of the folders that the program itself names (RUNPATH, RPATH) contains the library. */
bool foreign_program_finds_library(const char *path, const char *soname);

#endif
