/* barrier_hosts.c: barriers through the switch between processes, with a third of the packets lost: nobody
 * leaves before all arrived. The processes are spread over the fabric's nodes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "softib/barrier.h"
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOSTS  5
#define ROUNDS 200

struct shared {
    atomic_uint id, joined, count[ROUNDS], bad;
};

static int host(int rank, struct shared *s)
{
    const char *nodes = getenv("VERBS_NODES");
    char node[16];
    int n;
    snprintf(node, sizeof(node), "%d", rank % (nodes ? atoi(nodes) : 1));
    setenv("SOFTIB_NODE", node, 1);
    if (strcmp(node, "0") && getenv("VERBS_NETNS1")) {
        int fd = open(getenv("VERBS_NETNS1"), O_RDONLY | O_CLOEXEC);
        if (fd < 0 || setns(fd, CLONE_NEWNET))
            return 7;
        close(fd);
    }
    struct ibv_device **list = ibv_get_device_list(&n);
    struct ibv_context *ctx = list && n ? ibv_open_device(list[0]) : NULL;
    uint32_t id;
    if (!ctx)
        return 1;
    if (rank == 0) {
        if (softib_barrier_get_id(&id))
            return 2;
        atomic_store(&s->id, id + 1);
    }
    while (!(id = atomic_load(&s->id)))
        sched_yield();
    struct softib_barrier *b = softib_barrier_join(id - 1);
    if (!b)
        return 3;
    atomic_fetch_add(&s->joined, 1);
    while (atomic_load(&s->joined) < HOSTS) /* the software barrier of the paper's step 6 */
        sched_yield();
    for (int r = 0; r < ROUNDS; r++) {
        atomic_fetch_add(&s->count[r], 1);
        if (softib_barrier_wait(b))
            return 4;
        if (atomic_load(&s->count[r]) != HOSTS)
            atomic_fetch_add(&s->bad, 1);
    }
    softib_barrier_leave(b);
    atomic_fetch_sub(&s->joined, 1);
    while (rank == 0 && atomic_load(&s->joined)) /* free it when the last is out */
        sched_yield();
    if (rank == 0 && softib_barrier_free(id - 1))
        return 5;
    ibv_free_device_list(list);
    return ibv_close_device(ctx) ? 6 : 0;
}

int main(void)
{
    struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int failed = 0, status;
    for (int i = 0; i < HOSTS; i++)
        if (!fork()) {
            alarm(120);
            _exit(host(i, s));
        }
    while (wait(&status) > 0)
        if (status) {
            printf("FAILED: a host ended with %x\n", status);
            failed = 1;
        }
    if (atomic_load(&s->bad)) {
        printf("FAILED: a host left a barrier %u times before all were in it\n", atomic_load(&s->bad));
        failed = 1;
    }
    return failed;
}
