/* connect.h: an agent connects to mpiexec, or to the agent above it: to all its addresses at once. The first
 * one that proves that it knows the cookie is used.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_CONNECT_H
#define FP_LAUNCHER_CONNECT_H

#include "remote/proof.h"

struct connection {
    int fd;
    struct session session;
};

/* Addresses are separated by commas. Ends the process with a message if no process that knows the cookie
 * answers there. */
void connect_to_mpiexec(const char *addresses, const char *port, const char *cookie, const char *who,
                        struct connection *out);

#endif
