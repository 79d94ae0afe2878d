/* rankfile.h: rank files as Open MPI's users write them: `rank N=host slot=LIST`, one line per rank.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_RANKFILE_H
#define FP_LAUNCHER_RANKFILE_H

#include <stdint.h>

struct rankfile {
    const char *path;
    uint32_t n;   /* ranks 0 to n - 1 are all named */
    char **host;  /* [n] a name, or "+n2": the third of the job's hosts */
    char **slots; /* [n] topo_parse_slots() reads them on the host; "": not bound */
};

/* Ends mpiexec with file and line if the file is not a rank file. */
struct rankfile *rankfile_read(const char *file);

#endif
