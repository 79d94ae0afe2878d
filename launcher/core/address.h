/* address.h: how hosts find each other: all addresses of this host, a listening socket, and the first step of
 * a connection.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_ADDRESS_H
#define FP_LAUNCHER_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADDRESS_LOOPBACK "127.0.0.1"

/* This host's addresses, separated by commas. network: only the first address of that interface (its name) or of that network
 * (ADDRESS/BITS), or "" if there is none; NULL or "": all. */
void address_list_own(char *out, size_t size, const char *network);

/* The loopback, and the addresses from which the kernel would send to these hosts, separated by commas: what agents on these hosts call. False:
 * a host has no address in the name service, as an alias of ssh's configuration has none. */
bool address_find_route_source(char **hosts, uint32_t n, char *out, size_t size);

#define ADDRESS_SOCKETS_MAX 16

/* Listening sockets on one free port, whose number is written to port; their number is returned. at: of these addresses, separated by
 * commas; NULL: of all addresses, by one socket. */
int address_listen(int fds[ADDRESS_SOCKETS_MAX], char *port, size_t size, const char *at);

/* Starts to connect to a numeric address and port; -1 if that cannot even be tried. */
int address_start_connect(const char *address, const char *port);

/* True for a loopback address. */
bool address_is_loopback(const char *address);

/* True for a literal address of one of this host's interfaces. */
bool address_is_own(const char *address);

/* True if the name or literal address is that of this machine; never asks a name server. */
bool address_is_this_machine(const char *name);

#endif
