/* shm.h: what the files of the shared-memory transport share.
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
    struct peer **peers;     /* by local rank: who a frame came from; NULL until the first one */
    uint32_t *local_rank_of; /* by job rank, nlocal when it is on another node */
    const uint32_t *job_rank_of;
    uint32_t nlocal, local_rank;
    uint64_t probe; /* peers try to read this */
    bool membarrier;
};

#endif
