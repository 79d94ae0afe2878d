/* directory.h: descriptions of the windows of a process, which others read without a message: an entry for each window, by the
 * number of its communicator. No message is sent when a window is made; a process looks it up at its first access to a rank.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_RMA_DIRECTORY_H
#define FP_RMA_DIRECTORY_H

#include "rma/win.h"

struct rma;
struct win_peer;

#define DIRECTORY_ENTRIES 4096 /* context ids */

struct win_entry {
    struct win_slot slot;
    struct win_target target;
    /* The rank itself is changing one element of the memory of local rank `single` - 1 (change.h); in another cache line than the words
     * of `slot`, which other ranks poll. */
    _Atomic uint32_t single;
};

/* A process of this job on another node. */
struct directory_known {
    uint32_t number; /* in the job, plus 1; 0: free */
    bool notified;   /* the address of our directory was sent to it */
    bool found;      /* what follows is known */
    uint64_t base;
    struct net_key key;
};

struct directory {
    struct win_entry *mine; /* by context id; NULL: not open */
    struct win_entry *node; /* those of all ranks of this node, by local rank; NULL: they share no memory */
    size_t length;          /* of the node's */
    struct mapping own;     /* where they share none */
    struct net_mem registration;
    struct net_key key;
    struct transport *adapter; /* it is registered with; NULL: with none */
    struct directory_known *known;
    uint32_t known_size, known_used; /* open addressing */
};

/* Creates the directory of this process, once, and an empty entry for the window. Collective calls only. */
int directory_add_window(struct win *w);
void directory_remove_window(struct win *w);
void directory_close(struct rma *r);
/* Registers the directory so that ranks of other nodes can read it and take locks in it. Returns false if they must
 * use frames. */
bool directory_register(struct rma *r, struct transport *adapter);

/* The entry of a rank on this node, or NULL. */
struct win_entry *directory_local_entry(const struct win *w, int rank);

/* Obtains the entry of a rank that this process has not accessed yet. Waits. */
int peer_learn_window(struct win_peer *p);
void directory_handle_query(struct win *w, struct win_peer *from);
void directory_handle_reply(struct win_peer *from, const void *payload, size_t len);
void directory_announced(struct win *w, const struct peer *peer, const struct frame_header *h,
                         const void *payload, size_t len);
bool directory_is_settled(void *win); /* all queries of this process were answered */
/* Sends the address of the entry, once, to processes of other nodes that communicate with this one, which then need
 * not request it. */
void directory_announce(struct win *w, const struct comm *parent);

#endif
