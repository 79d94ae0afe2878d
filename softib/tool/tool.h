/* tool.h: the commands of the softib tool. Each returns the exit status.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_TOOL_H
#define SOFTIB_TOOL_H

#include "fabric/fabric.h"
#include "fabric/shm.h"
#include <stdbool.h>

struct options {
    bool json;
    const char *fabric, *node; /* override SOFTIB_FABRIC and SOFTIB_NODE */
};

int cmd_run(const struct options *o, char **argv);
int cmd_ctl(const struct options *o, char **argv);
int cmd_stat(const struct options *o);
int cmd_key(char **argv);
int cmd_info(const struct options *o);

/* Reads SOFTIB_FABRIC and SOFTIB_NODE. On an error prints a message and returns false. */
bool tool_fabric(struct fabric *f);
/* Maps the registry of the running fabric; NULL: no process has joined the fabric. */
struct registry *tool_registry(const struct fabric *f, uint64_t *key);
void port_name(const struct fabric *f, uint32_t linear, char out[48]);

#endif
