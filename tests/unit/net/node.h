/* node.h: a node of several processes for tests of src/net, without a launcher: the parent is local rank
 * 0, which forks the others. Each process opens its own struct net over one shared memfd, as under
 * mpiexec.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_NODE_H
#define FP_TESTS_NODE_H

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/shared_memory.h"
#include "boot/boot.h"
#include "net/net.h"
#include "test.h"

enum { NODE_MAX = 16 };

struct node {
    uint32_t node_of[NODE_MAX], ranks[NODE_MAX];
    struct boot boot;
    struct net *net;
    pid_t children[NODE_MAX];
};

static inline void node_init(struct node *n, uint32_t rank, uint32_t size, int fd)
{
    for (uint32_t i = 0; i < size; i++) {
        n->node_of[i] = 0;
        n->ranks[i] = i;
    }
    n->boot = (struct boot){.rank = rank,
                            .size = size,
                            .nnodes = 1,
                            .node_of = n->node_of,
                            .nlocal = size,
                            .local_rank = rank,
                            .local_ranks = n->ranks,
                            .vnode = -1,
                            .host = "here",
                            .job = "unit-test",
                            .node_fd = fd};
}

/* Forks a process for each rank; returns this one's rank. */
static inline uint32_t node_fork(struct node *n, uint32_t size)
{
    uint32_t rank = 0;
    fflush(stdout);
    for (uint32_t i = 1; i < size && rank == 0; i++)
        if ((n->children[i] = fork()) == 0)
            rank = i;
    alarm(90); /* ends a rank that waits forever */
    return rank;
}

/* Rank 0 waits for the other ranks and counts their failures; the other ranks exit here. */
static inline void node_join(const struct node *n, uint32_t rank, uint32_t size)
{
    if (rank != 0) {
        fflush(stdout);
        _exit(test_result());
    }
    alarm(0);
    for (uint32_t i = 1; i < size; i++) {
        int status = 1;
        waitpid(n->children[i], &status, 0);
        EXPECT_EQ(status, 0);
    }
}

/* Forks size - 1 ranks; every rank runs `body`, the parent as rank 0. */
static inline void node_run(uint32_t size, void (*body)(struct node *n))
{
    static struct node n;
    int fd = shared_memory_create_empty(SHARED_MEMORY_NODE);
    const uint32_t rank = node_fork(&n, size);
    node_init(&n, rank, size, fd);
    int rc = net_open(&n.boot, &n.net);
    EXPECT_EQ(rc, 0);
    if (rc == 0) {
        body(&n);
        net_close(n.net);
    }
    node_join(&n, rank, size);
}

#endif
