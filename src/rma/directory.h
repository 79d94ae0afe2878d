/* directory.h: descriptions of the windows of a process, which other processes read without a message: one
 * entry per window, indexed by the window's context id. A process looks up a rank's entry at its first
 * access.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_RMA_DIRECTORY_H
#define FP_RMA_DIRECTORY_H

#include "rma/win.h"

struct rma;
struct win_peer;

#define DIRECTORY_ENTRIES 4096 /* one entry per context id */

struct win_entry {
    struct win_slot slot;
    struct win_target target;
    /* Local rank + 1 of the owner of the memory in which this rank is changing one element; 0: none
     * (change.h). In another cache line than the words of `slot`, which other ranks poll. */
    _Atomic uint32_t single;
};

/* Location of the directory of a process on another node. */
struct directory_known {
    uint32_t number; /* rank in the job, plus 1; 0: free */
    bool notified;   /* the address of this process's directory was sent to that process */
    bool found;      /* `base` and `key` are known */
    uint64_t base;   /* address of that process's directory */
    struct net_key key;
};

struct directory {
    struct win_entry *mine; /* by context id; NULL: not open */
    struct win_entry *node; /* directories of all ranks of this node, by local rank; NULL: no shared memory */
    size_t length;          /* bytes at `node` */
    struct mapping own;     /* memory of `mine` if there is no shared memory */
    struct net_mem registration;
    struct net_key key;
    struct transport *adapter; /* adapter that `mine` is registered with; NULL: none */
    struct directory_known *known;
    uint32_t known_size, known_used; /* size and entries of `known`, a hash table with open addressing */
};

/* Creates, in collective calls, an empty entry for the window and, once, this process's directory. */
int directory_add_window(struct win *w);
void directory_remove_window(struct win *w);
void directory_close(struct rma *r);
/* Registers the directory so that ranks of other nodes can read it and take locks in it. Returns false if
 * they must use frames. */
bool directory_register(struct rma *r, struct transport *adapter);

struct win_entry *directory_local_entry(const struct win *w, int rank);

/* Obtains the entry of a rank that this process has not accessed yet. Blocks until the entry is known. */
int peer_look_up_window(struct win_peer *p);
void directory_handle_query(struct win *w, struct win_peer *from);
void directory_handle_reply(struct win_peer *from, const void *payload, size_t len);
void directory_handle_announcement(struct win *w, const struct peer *peer, const struct frame_header *h,
                                   const void *payload, size_t len);
bool directory_is_settled(void *win); /* all queries of this process were answered */
/* Sends the address of the window's entry to processes of other nodes that already have a connection, once
 * per process. These processes then need not request the address. */
void directory_announce(struct win *w, const struct comm *parent);

#endif
