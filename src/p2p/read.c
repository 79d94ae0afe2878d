/* read.c: executes and repeats the read of a rendezvous protocol.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/read.h"

static void read_done(struct net_op *op, int status)
{
    struct read *read = container_of(op, struct read, op);
    read->done(read, status);
}

bool read_is_op(const struct net_op *op, bool *seen)
{
    if (op->done != read_done)
        return false;
    const struct read *read = container_of(op, struct read, op);
    *seen = read->seen && read->seen(read);
    return true;
}

static int read_post_get(struct read *read)
{
    int rc = read->peer->ops->get(read->peer, read->to, read->mem, read->remote, &read->key, read->bytes,
                                  &read->op);
    if (rc != 0 && rc != ERR_AGAIN)
        read->done(read, rc);
    return rc;
}

static int read_resume(struct net_pending *item)
{
    return read_post_get(container_of(item, struct read, pending)) == ERR_AGAIN ? ERR_AGAIN : 0;
}

void read_start(struct read *read)
{
    read->op = (struct net_op){.done = read_done};
    read->pending.resume = read_resume;
    if (read_post_get(read) == ERR_AGAIN)
        peer_queue(read->peer, &read->pending);
}
