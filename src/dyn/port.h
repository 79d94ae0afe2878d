/* port.h: the ports that MPI_Open_port opens: a listening socket and a key. The name of a port contains both,
 * so that only a process that knows the name can connect.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DYN_PORT_H
#define FP_DYN_PORT_H

#include "base/list.h"
#include "dyn/channel.h"

/* What this process has open; hangs from struct proc. */
struct dyn {
    struct list ports;
    struct list names; /* published: names.c */
};

/* Made when first needed; NULL: no memory. Closed with the process. */
struct dyn *dyn_of(struct proc *p);

struct port;

/* name has room for MPI_MAX_PORT_NAME characters. */
int port_open(struct proc *p, char *name);
int port_close(struct proc *p, const char *name);
void ports_close(struct dyn *d);

/* Waits for someone who connects to a port of this process and knows its key. */
int port_accept(struct proc *p, const char *name, const struct channel_watch *watch, struct channel *out);

/* Connects to a port of any process. */
int port_connect(struct proc *p, const char *name, struct channel *out);

#endif
