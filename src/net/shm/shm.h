/* shm.h: internal declarations of the shared-memory transport.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_SHM_SHM_H
#define FP_NET_SHM_SHM_H

#include "net/net.h"
#include "net/shm/segment.h"

struct shm_endpoint {
    struct ring_sender sender;
    struct doorbell *doorbell;
    struct segment_rank *rank;
    struct ring_slot *reserved; /* between reserve and commit */
    uint32_t reserved_position;
    int32_t pid;
    bool fence;
};

struct shm {
    struct transport base;
    struct ring_receiver receiver;
    struct segment segment;
    struct peer **peers;     /* by local rank; NULL: no frame from that rank yet */
    uint32_t *local_rank_of; /* by job rank; nlocal: the rank is on another node */
    const uint32_t *job_rank_of;
    uint32_t nlocal, local_rank;
    uint64_t probe; /* peers test cross-memory reads with this word */
    bool membarrier;
    bool naps; /* the process sleeps only for short times; see shm_skip_dead_slot */
};

/* Called after a death: skips the next slot if its sender died before it published its frame; returns the
 * number of slots skipped (0 or 1). While the owner of the slot is uncertain, the process sleeps only for
 * short times (*naps, net->unrung). Used by shm.c and inbox.c. */
int shm_skip_dead_slot(struct net *net, struct ring_receiver *r, uint32_t senders,
                       bool (*is_dead)(void *arg, uint32_t sender), void *arg, bool *naps);

/* Watches a guest on this machine: its end is reported to net_lost_process_ended, unless it has finished MPI
 * before. NULL: it cannot be watched, and the user was warned. Used by guest.c. */
struct inbox_watch;
struct inbox_watch *inbox_watch_process(struct transport *t, const struct net_card *card, uint32_t number);
void inbox_unwatch(struct transport *t, struct inbox_watch *w);
bool inbox_watch_has_ended(const struct inbox_watch *w);

/* Frees the sender's places of a guest that is being removed. Used by guest.c. */
void inbox_remove_sender(struct transport *t, const struct net_card *card);

/* Shared with inbox.c, where peer->endpoint also begins with a struct shm_endpoint. */
bool shm_cma_is_enabled(void);
void shm_fill_caps(struct transport_caps *caps, bool cma);
int shm_send(struct peer *peer, uint64_t head, uint64_t from, uint64_t word, const void *payload, size_t len);
int shm_reserve(struct peer *peer, size_t len, void **payload);
void shm_commit(struct peer *peer, const struct frame_header *header, size_t len);
int shm_put(struct peer *peer, const void *local, const struct net_mem *mem, uint64_t remote,
            const struct net_key *key, size_t len, struct net_op *op);
int shm_get(struct peer *peer, void *local, const struct net_mem *mem, uint64_t remote,
            const struct net_key *key, size_t len, struct net_op *op);

#endif
