/* tree.h: the agents of other hosts, seen from the process that starts them: mpiexec, or an agent further up
 * the tree. The process starts up to `fanout` agents; each is responsible for a range of the hosts and starts
 * the agents of the others in its range in the same way. Frames are routed by the host's number; this layer
 * does not interpret them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_TREE_H
#define FP_LAUNCHER_TREE_H

#include "remote/link.h"
#include "remote/shell.h"

/* The hosts, by number (ascending) and name, and how to reach them. */
struct tree_spec {
    struct shell shell;
    uint32_t fanout, timeout; /* seconds within which an agent must connect */
    uint32_t heartbeat;       /* seconds of silence after which a host is lost; 0: no heartbeats */
    bool verbose;
    char *network; /* network for the connections between mpiexec and agents (address_list_own); "": all */
    uint32_t n;
    uint32_t *numbers;
    char **names;
};

void tree_encode(const struct tree_spec *s, uint32_t from, uint32_t n, struct buf *out);

/* Returns NULL if the bytes are not a valid list of hosts. */
struct tree_spec *tree_decode(const char *data, size_t len);

/* Frees a list from tree_decode; NULL is permitted. */
void tree_free(struct tree_spec *s);

struct tree_events {
    /* A frame from any host below. Each host reports exactly one of FRAME_LOST and FRAME_DONE. */
    void (*frame)(void *ctx, const struct frame_head *head, const char *data);
    void (*drained)(void *ctx); /* may be NULL */
};

struct tree;

/* `spec` must stay valid. */
struct tree *tree_new(struct loop *l, const struct tree_spec *spec, const struct tree_events *ev, void *ctx);

/* Starts the agents without waiting for them. */
void tree_run(struct tree *t);

/* Sends a frame to the host in `head`, or queues it until that host's agent has connected. */
void tree_send(struct tree *t, const struct frame_head *head, const void *data);

/* Makes all agents below pause or resume output. */
void tree_pause(struct tree *t, bool pause);

/* Handles the end of a child process, which may be one of the remote shells. */
void tree_child_ended(struct tree *t, pid_t pid, int status);

/* Returns the number of hosts that are neither done nor lost. */
uint32_t tree_count_unsettled(const struct tree *t);

#endif
