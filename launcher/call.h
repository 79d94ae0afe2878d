/*
 * An agent calls mpiexec, or the agent above it: at all addresses at once, and whoever proves first that it knows the
 * cookie is the one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FP_LAUNCHER_CALL_H
#define FP_LAUNCHER_CALL_H

#include "proof.h"

struct call {
    int fd;
    struct session session;
};

/* Addresses are separated by commas. Ends the process with a sentence when nobody there knows the cookie. */
void call_mpiexec(const char *addresses, const char *port, const char *cookie, const char *who,
                  struct call *out);

#endif
