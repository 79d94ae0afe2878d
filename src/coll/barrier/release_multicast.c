/* release_multicast.c: METHOD_MULTICAST of the inter-node barrier: leaders report to their parents in a tree,
 * by RDMA writes if all leaders support them, else by messages, and the first leader then multicasts one byte
 * [Liu04 figure 3.2]. The multicast group retransmits lost packets (net/mcast_group.h). Its acknowledgements are
 * sent in the background, one for several barriers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "coll/multicast/multicast_internal.h"
#include "coll/barrier/barrier_internal.h"

#define WINDOW    32 /* multicasts of barriers that may be unacknowledged */
#define AGGREGATE 8

enum { TREE_FAN, TREE_TIMEOUT };

COLL_ALGORITHM(barrier_multicast, .name = "multicast", .kind = COLL_BARRIER, .needs = NEED_NODES | NEED_TWO,
               .parameter = {[TREE_FAN] = {"n", 1, 64, 8}, [TREE_TIMEOUT] = {"timeout", 100, 10000000, 1000}},
               .doc = "flags in shared memory within a node; nodes report up a tree with n children, and one "
                      "multicast releases all, where the network has that, else as rdma; a packet that is "
                      "not acknowledged is sent again after timeout us");

bool hbarrier_is_multicast(const struct coll_choice *choice)
{
    return choice->algorithm == &barrier_multicast;
}

static int release_parameter(const struct hbarrier *w, int which)
{
    const int value = w->choice.parameter[which];
    return value ? value : barrier_multicast.parameter[which].preset;
}

int hbarrier_tree_fan(const struct hbarrier *w)
{
    return release_parameter(w, TREE_FAN);
}

int hbarrier_open_multicast(struct hbarrier *w)
{
    const struct multicast_terms terms = {.otherwise = "Barriers are done by RDMA writes or messages",
                                          .window = WINDOW,
                                          .collectors = 1,
                                          .aggregate = AGGREGATE,
                                          .timeout_us = (uint64_t)release_parameter(w, TREE_TIMEOUT)};
    struct multicast *m = NULL;
    w->opened_multicast = true;
    int rc = multicast_open(w->comm, &terms, &m);
    if (!rc && m->failed) {
        multicast_free(m);
        m = NULL;
    }
    w->multicast = m;
    return rc;
}

void hbarrier_close_multicast(struct hbarrier *w)
{
    if (w->multicast)
        multicast_free(w->multicast);
    w->multicast = NULL;
}

/* Starts a round of the tree. The partners of its rounds follow those of the dissemination in w->partner. */
void hbarrier_tree_round(struct hbarrier_run *r, int round)
{
    struct hbarrier *w = r->w;
    const bool by_writes = w->method == METHOD_WRITE;
    const int first = w->leader * w->fan + 1;
    r->byte = (char)w->lane[r->lane].machine.turn;
    if (round == 0) {
        for (int child = first; !by_writes && child < first + w->fan && child < w->leaders; child++)
            hbarrier_recv(r, w->leader_rank[child], NULL, 0);
    } else if (w->leader > 0) {
        r->want = (struct net_group_want){.channel = (uint32_t)r->lane, .message = &r->byte, .length = 1};
        net_group_post_receive(w->multicast->group, &r->want);
        if (by_writes)
            hbarrier_write_round(r, w->rounds[METHOD_WRITE] + 1);
        else
            hbarrier_send(r, w->leader_rank[(w->leader - 1) / w->fan], NULL, 0);
    }
}

/* True if the round is complete. The group reports completion once: r->crossed records it. */
bool hbarrier_is_tree_round_complete(struct hbarrier_run *r, int round)
{
    struct hbarrier *w = r->w;
    struct net_group *group = w->multicast->group;
    if (round == 0)
        return w->method != METHOD_WRITE || hbarrier_round_written(r, w->rounds[METHOD_WRITE]);
    if (r->crossed)
        return true;
    if (w->leader == 0)
        r->crossed = net_group_send(group, (uint32_t)r->lane, &r->byte, 0, 1) == 1;
    else
        r->crossed = r->want.complete;
    if (r->crossed)
        CHECK(r->byte == (char)w->lane[r->lane].machine.turn, "the multicast of another barrier");
    return r->crossed;
}
