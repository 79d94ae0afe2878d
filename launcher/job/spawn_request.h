/* spawn_request.h: parses the PMI-1 lines of an MPI_Comm_spawn request.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_SPAWN_REQUEST_H
#define FP_LAUNCHER_SPAWN_REQUEST_H

#include "options/options.h"

struct spawn_program {
    const char *command, *host, *wdir, *path; /* pointers into the parsed lines; NULL: not given */
    long n;
    struct strings args, env;
};

struct spawn_request {
    struct spawn_program *programs;
    unsigned n;
    struct strings preputs; /* key=value */
};

/* Parses the lines between mcmd=spawn and endcmd, of all programs. The lines are modified, and the request
 * points into them. Returns NULL, or a sentence if the request is invalid. spawn_request_free in both
 * cases. */
const char *spawn_request_parse(char *lines, struct spawn_request *out);
void spawn_request_free(struct spawn_request *r);

long spawn_request_ranks(const struct spawn_request *r);

#endif
