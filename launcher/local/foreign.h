/* foreign.h: programs that are linked with another MPI library. They do not connect to this mpiexec, or only
 * by PMI-1, and each rank would be a job of its own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_FOREIGN_H
#define FP_LAUNCHER_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>

struct foreign {
    const char *library; /* "Open MPI" */
    const char *start;   /* the launcher for programs of that library */
    bool connects;       /* the program may contact this mpiexec by PMI-1; only known once it runs */
    char soname[64];
};

/* Detects another MPI library; false if the program is not linked with one, or cannot be read. */
bool foreign_detect_program(const char *path, struct foreign *out);

/* True if one of these folders (separated by colons; NULL: none) contains the library. */
bool foreign_find_in_folders(const char *folders, const char *soname);

/* True if a folder in the program's RUNPATH or RPATH contains the library. */
bool foreign_program_finds_library(const char *path, const char *soname);

#endif
