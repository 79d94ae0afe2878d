/* port.h: the ports that MPI_Open_port opens: listening sockets and a key. The name of a port (port_name.h)
 * contains both, so that only a process that knows the name can connect.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DYN_PORT_H
#define FP_DYN_PORT_H

#include "base/list.h"
#include "dyn/channel.h"

/* Open ports and published names of this process; owned by struct proc. */
struct dyn {
    struct list ports;
    struct list names; /* names published by names.c */
};

/* Returns the state, which is created by the first call; NULL: out of memory. Closed with the process. */
struct dyn *dyn_get_state(struct proc *p);

/* Who can connect: processes of this machine and user, or processes of any machine in a network of this
 * one. */
enum port_scope { PORT_MACHINE, PORT_NETWORK };

/* Opens a port and writes its name, which needs MPI_MAX_PORT_NAME characters. */
int port_open(struct proc *p, enum port_scope scope, char *name);
int port_close(struct proc *p, const char *name);
void ports_close(struct dyn *d);

/* Callback that port_accept() calls while it waits; an error class ends the wait. */
struct port_watch {
    int (*check)(void *arg);
    void *arg;
};

/* Waits for a process that connects to a port of this process and proves that it knows the key of the
 * port. watch may be NULL. */
int port_accept(struct proc *p, const char *name, const struct port_watch *watch, struct channel *out);

#define PORT_CONNECT_SECONDS 300

/* Connects to a port of any process, which may accept later. Fails after `seconds`, or at once if no
 * process listens there. */
int port_connect(struct proc *p, const char *name, unsigned seconds, struct channel *out);

#endif
