/* address.h: addresses through which mpiexec and its agents connect: the addresses of this host, listening
 * sockets, and nonblocking connects.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_ADDRESS_H
#define FP_LAUNCHER_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADDRESS_LOOPBACK "127.0.0.1"

/* Lists this host's addresses, separated by commas. network: only the first address of that interface (its
 * name) or of that network (ADDRESS/BITS), or "" if there is none; NULL or "": all. */
void address_list_own(char *out, size_t size, const char *network);

/* Lists the addresses to which agents on these hosts connect: the source addresses of packets to these
 * hosts, and the loopback; separated by commas. False if a name server does not know a host, for example
 * an alias in ssh's configuration. */
bool address_find_route_source(char **hosts, uint32_t n, char *out, size_t size);

#define ADDRESS_SOCKETS_MAX 16

/* Opens listening sockets that share one free port. Writes the port's number to `port` and returns the
 * number of sockets. at: addresses to listen at, separated by commas; NULL: all addresses, by one socket. */
int address_listen(int fds[ADDRESS_SOCKETS_MAX], char *port, size_t size, const char *at);

/* Starts a nonblocking connect to a numeric address and port. Returns the socket, or -1. */
int address_start_connect(const char *address, const char *port);

/* True for a loopback address. */
bool address_is_loopback(const char *address);

/* True for a literal address of one of this host's interfaces. */
bool address_is_own(const char *address);

/* True if the host name or literal address is that of this machine; no name server is queried. */
bool address_is_this_machine(const char *name);

#endif
