/* test_shm_dead.c: a transfer to or from a process of the node that has died names its rank: the process that moves bytes may notice a
 * death before the launcher reports it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "node.h"

#include <sched.h>
#include <stdatomic.h>

#include "base/err.h"
#include "net/peer.h"

static int status;
static bool denied; /* processes may not read each other's memory here */

static void shm_dead_is_done(struct net_op *op, int rc)
{
    (void)op;
    status = rc;
}

static void expect_named(int rc)
{
    EXPECT_EQ(rc, MPIX_ERR_PROC_FAILED);
    EXPECT(strcmp(err_detail(rc), "rank 1 has died") == 0);
    err_clear();
}

static void shm_dead_rank_death(struct node *n)
{
    _Atomic int *known = (_Atomic int *)(void *)n->net->area; /* zero until rank 0 is connected */
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
    denied = peer && !peer->caps.get;
    if (!peer || denied)
        return;
    struct net_op op = {.done = shm_dead_is_done};
    const struct net_key key = {{0}};
    const struct net_piece piece = {.local = mine, .remote = (uintptr_t)mine, .length = sizeof(mine)};
    EXPECT_EQ(peer->ops->get(peer, mine, NULL, (uintptr_t)mine, &key, sizeof(mine), &op), 0);
    expect_named(status);
    EXPECT_EQ(peer->ops->put(peer, mine, NULL, (uintptr_t)mine, &key, sizeof(mine), &op), 0);
    expect_named(status);
    expect_named(peer->ops->move(peer, false, &piece, 1));
}

static void test_named(void)
{
    node_run(2, shm_dead_rank_death);
}

int main(void)
{
    TEST_RUN(test_named);
    if (denied)
        printf("processes may not read each other's memory here\n");
    return denied ? 77 : test_result();
}
