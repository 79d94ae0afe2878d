/* rankfile.h: parses rank files in the format of Open MPI: `rank N=host slot=LIST`, one line per rank.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_RANKFILE_H
#define FP_LAUNCHER_RANKFILE_H

#include <stdint.h>

struct rankfile {
    const char *path;
    uint32_t n;   /* ranks 0 to n - 1 are all named */
    char **host;  /* [n] a host name, or "+n2": the host with index 2 in the host list */
    char **slots; /* [n] processors, which the host parses by topo_parse_slots(); "": not bound */
};

/* Reads a rank file; ends mpiexec with a message that names file and line if it is invalid. */
struct rankfile *rankfile_read(const char *file);

#endif
