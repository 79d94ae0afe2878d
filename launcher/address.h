/*
 * How hosts find each other: every address of this one, a socket to be called on, and a call to whichever
 * address of several answers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FP_LAUNCHER_ADDRESS_H
#define FP_LAUNCHER_ADDRESS_H

#include <stddef.h>

/* This host's addresses, separated by commas. */
void address_own(char *out, size_t size);

/* A listening socket on a free port of all addresses, whose number is written to port. */
int address_listen(char *port, size_t size);

/* The first of the addresses (changed by this call) that can be reached, or -1. */
int address_connect(char *addresses, const char *port);

#endif
