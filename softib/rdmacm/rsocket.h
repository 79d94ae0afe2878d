/* rsocket.h: an rsocket: an identifier, its event channel and a byte stream. Its descriptor is that of the
 * channel.
 *
 * One thread at a time, the leader, sleeps on the descriptors of an rsocket and reads the events of its
 * completion queue: an event that another thread reads is lost for a thread that is about to sleep. Other
 * threads wait until the leader wakes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_RDMACM_RSOCKET_H
#define SOFTIB_RDMACM_RSOCKET_H

#include "cm.h"
#include "stream.h"
#include <rdma/rsocket.h>

enum rsocket_state {
    RSOCKET_NEW,
    RSOCKET_BOUND,
    RSOCKET_LISTENING,
    RSOCKET_CONNECTING,
    RSOCKET_OPEN,
    RSOCKET_CLOSED, /* the peer has closed the connection, or the attempt to connect has failed */
};

struct rsocket {
    pthread_mutex_t lock;
    struct rdma_event_channel *channel; /* never blocks */
    struct rdma_cm_id *id;
    enum rsocket_state state;
    int error; /* value of SO_ERROR */
    bool nonblocking, shut_in;
    struct rdma_cm_id *request; /* of a listener: the next connection request */
    struct stream stream;
    bool has_leader;
    pthread_cond_t leader_woke;
    int reuse_addr;
};

/* defined in rsocket.c */
struct rsocket *rsocket_find(int fd);
struct rsocket *rsocket_get(int fd); /* locked; NULL with errno */
/* True if a call does not have to wait; the lock is held. */
typedef bool rsocket_condition(struct rsocket *s);
rsocket_condition rsocket_can_accept, rsocket_is_connected, rsocket_can_read, rsocket_can_write,
    rsocket_can_write_map;
/* Handles events and completions until the condition is true. Returns 0 or EAGAIN. */
int rsocket_wait(struct rsocket *s, rsocket_condition *condition, bool nonblocking);
/* Handles events and completions without waiting. */
bool rsocket_check(struct rsocket *s, rsocket_condition *condition);
bool rsocket_lead(struct rsocket *s); /* the caller becomes leader and may sleep after one more check */
void rsocket_stop_leading(struct rsocket *s);

#endif
