/* test_shm_dead.c: a transfer to or from a dead process of the node fails with the rank of that process,
 * since the process that copies bytes may detect a death before the launcher reports it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "node.h"

#include <sched.h>
#include <stdatomic.h>

#include "base/err.h"
#include "net/peer.h"

static int status;
static bool access_denied; /* processes may not read each other's memory here */

static void record_status(struct net_op *op, int rc)
{
    (void)op;
    status = rc;
}

static void expect_error_names_rank(int rc)
{
    EXPECT_EQ(rc, MPIX_ERR_PROC_FAILED);
    EXPECT(strcmp(err_detail(rc), "rank 1 has died") == 0);
    err_clear();
}

static void transfer_with_dead_rank(struct node *n)
{
    _Atomic int *known = (_Atomic int *)(void *)n->net->area; /* 0 until rank 0 has connected */
    char mine[64];
    if (n->boot.rank == 1) {
        while (atomic_load(known) == 0)
            sched_yield();
        return;
    }
    struct peer *peer = NULL;
    EXPECT_EQ(net_peer(n->net, 1, &peer), 0);
    atomic_store(known, 1);
    siginfo_t info;
    EXPECT_EQ(waitid(P_PID, (id_t)n->children[1], &info, WEXITED | WNOWAIT), 0);
    access_denied = peer && !peer->caps.get;
    if (!peer || access_denied)
        return;
    struct net_op op = {.done = record_status};
    const struct net_key key = {{0}};
    const struct net_piece piece = {.local = mine, .remote = (uintptr_t)mine, .length = sizeof(mine)};
    EXPECT_EQ(peer->ops->get(peer, mine, NULL, (uintptr_t)mine, &key, sizeof(mine), &op), 0);
    expect_error_names_rank(status);
    EXPECT_EQ(peer->ops->put(peer, mine, NULL, (uintptr_t)mine, &key, sizeof(mine), &op), 0);
    expect_error_names_rank(status);
    expect_error_names_rank(peer->ops->move(peer, false, &piece, 1));
}

static void test_dead_rank_is_named(void)
{
    node_run(2, transfer_with_dead_rank);
}

int main(void)
{
    TEST_RUN(test_dead_rank_is_named);
    if (access_denied)
        printf("skipped: processes cannot read each other's memory here\n");
    return access_denied ? 77 : test_result();
}
