/* net.h: the TCP/UDP wire between machines. RC and UC requests use one TCP connection per pair of processes,
 * datagrams use UDP. The port number of a process is its node's base port plus its member slot, so that a QP
 * number and a LID identify its address.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_NET_H
#define SOFTIB_NET_H

#include "hca/wire.h"

extern const struct wire net_wire;
extern const struct attendant net_attendant;

bool net_read_key(void);        /* reads the key of the fabric; false after a message */
bool net_listen(uint32_t slot); /* binds the sockets; false: the port numbers are in use */
bool net_start(void);
void net_reset_after_fork(void); /* in a forked child */

#endif
