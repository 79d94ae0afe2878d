/* barrier_hosts.c: barriers of several processes through the switch, with a third of the packets lost: no
 * process leaves before all have arrived. The processes are spread over the fabric's nodes. With the
 * argument `wires` they use the device of the barrier network, which no other job can use meanwhile and
 * which is free again afterwards.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "softib/barrier.h"
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <signal.h>
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
    atomic_uint id, joined, count[ROUNDS], early_departures;
};

/* A common interface to the switch and the barrier network. */
struct barrier_interface {
    int (*get)(uint32_t *id);
    void *(*join)(uint32_t id);
    int (*enter)(void *b), (*test)(void *b);
    void (*leave)(void *b);
    int (*free)(uint32_t id);
};

static void *switch_join(uint32_t id)
{
    return softib_barrier_join(id);
}
static int switch_enter(void *b)
{
    return softib_barrier_enter(b);
}
static int switch_poll(void *b)
{
    return softib_barrier_test(b);
}
static void switch_leave(void *b)
{
    softib_barrier_leave(b);
}
static const struct barrier_interface by_switch = {softib_barrier_get_id, switch_join,  switch_enter,
                                                   switch_poll,           switch_leave, softib_barrier_free};

static struct ibv_context *ctx;

static int wires_get_id(uint32_t *id)
{
    return softib_wires_take(ctx, id);
}
static void *wires_join(uint32_t id)
{
    uint32_t other;
    if (wires_get_id(&other) == 0 || errno != EBUSY || softib_wires_plug(ctx, id + 1))
        return NULL;
    return softib_wires_plug(ctx, id);
}
static int wires_enter(void *b)
{
    return softib_wires_enter(b);
}
static int wires_poll(void *b)
{
    return softib_wires_test(b);
}
static void wires_leave(void *b)
{
    softib_wires_unplug(b);
}
static int wires_free(uint32_t id)
{
    uint32_t other; /* the device must be free: all processes have left */
    return wires_get_id(&other) || softib_wires_give_back(ctx, other) || softib_wires_plug(ctx, id);
}
static const struct barrier_interface by_wires = {wires_get_id, wires_join,  wires_enter,
                                                  wires_poll,   wires_leave, wires_free};

/* Opens the HCA, or the device of the barrier network. The HCA has no barrier network, and the barrier
 * network carries no data. */
static struct ibv_context *open_barrier_device(struct ibv_device **list, bool wires)
{
    for (int i = 0; list && list[i]; i++) {
        struct ibv_context *c = ibv_open_device(list[i]);
        struct ibv_device_attr a;
        uint32_t id;
        if (!c || ibv_query_device(c, &a))
            return NULL;
        const bool has = softib_wires_hosts(c) >= HOSTS;
        if (has ? a.phys_port_cnt || a.max_qp || ibv_alloc_pd(c) || ibv_create_cq(c, 1, NULL, NULL, 0)
                : !a.phys_port_cnt || softib_wires_take(c, &id) == 0 || errno != EOPNOTSUPP)
            return NULL;
        if (has == wires)
            return c;
        ibv_close_device(c);
    }
    return NULL;
}

static int pass_barrier(const struct barrier_interface *c, void *b)
{
    int r = c->enter(b);
    while (!r && !c->test(b))
        sched_yield();
    return r;
}

static int run_host(const struct barrier_interface *c, int rank, struct shared *s)
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
    uint32_t id;
    ctx = open_barrier_device(list, c == &by_wires);
    if (!ctx)
        return 1;
    if (rank == 0) {
        if (c->get(&id))
            return 2;
        atomic_store(&s->id, id + 1);
    }
    while (!(id = atomic_load(&s->id)))
        sched_yield();
    void *b = c->join(id - 1);
    if (!b)
        return 3;
    atomic_fetch_add(&s->joined, 1);
    while (atomic_load(&s->joined) < HOSTS) /* the software barrier in step 6 of the paper */
        sched_yield();
    for (int r = 0; r < ROUNDS; r++) {
        atomic_fetch_add(&s->count[r], 1);
        if (pass_barrier(c, b))
            return 4;
        if (atomic_load(&s->count[r]) != HOSTS)
            atomic_fetch_add(&s->early_departures, 1);
    }
    c->leave(b);
    atomic_fetch_sub(&s->joined, 1);
    while (rank == 0 && atomic_load(&s->joined)) /* frees the barrier after the last process has left */
        sched_yield();
    if (rank == 0 && c->free(id - 1))
        return 5;
    ibv_free_device_list(list);
    return ibv_close_device(ctx) ? 6 : 0;
}

/* ---- a process that dies with its wires plugged in ---- */

/* Runs a process that opens the barrier network and then `body`, and waits until its status byte arrives. */
static pid_t start_process(int (*body)(void), int *status)
{
    int ends[2];
    if (pipe(ends))
        exit(1);
    const pid_t pid = fork();
    if (pid == 0) {
        char byte = 1;
        alarm(120);
        if ((ctx = open_barrier_device(ibv_get_device_list(NULL), true)) != NULL)
            byte = (char)body();
        if (write(ends[1], &byte, 1) == 1)
            pause();
        _exit(1);
    }
    char byte = 1;
    close(ends[1]);
    if (pid < 0 || read(ends[0], &byte, 1) != 1)
        byte = 1;
    close(ends[0]);
    *status = byte;
    return pid;
}

static int return_after_open(void)
{
    return 0;
}

static int reserve_and_plug_wires(void)
{
    uint32_t id;
    return softib_wires_take(ctx, &id) || !softib_wires_plug(ctx, id) ? 2 : 0;
}

/* A process is killed while it uses the hub, and another one gets its slot: the hub is free. The first process
 * keeps the fabric alive. */
static bool test_hub_of_dead_process_is_free(void)
{
    int (*const body[])(void) = {return_after_open, reserve_and_plug_wires, reserve_and_plug_wires};
    pid_t pid[3] = {0};
    int status[3], ended;
    for (int i = 0; i < 3; i++) {
        pid[i] = start_process(body[i], &status[i]);
        if (i != 1)
            continue;
        kill(pid[i], SIGKILL);
        waitpid(pid[i], &ended, 0);
    }
    kill(pid[0], SIGKILL);
    kill(pid[2], SIGKILL);
    while (wait(&ended) > 0)
        ;
    if (status[0] || status[1] || status[2])
        printf("FAILED: statuses of the processes that use the hub in turn: %d, %d, %d, expected 0\n",
               status[0], status[1], status[2]);
    return !status[0] && !status[1] && !status[2];
}

int main(int argc, char **argv)
{
    const struct barrier_interface *c = argc > 1 && !strcmp(argv[1], "wires") ? &by_wires : &by_switch;
    struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int failed = 0, status;
    for (int i = 0; i < HOSTS; i++)
        if (!fork()) {
            alarm(120);
            _exit(run_host(c, i, s));
        }
    while (wait(&status) > 0)
        if (status) {
            printf("FAILED: a host ended with wait status %#x, expected 0\n", status);
            failed = 1;
        }
    if (atomic_load(&s->early_departures)) {
        printf("FAILED: hosts left a barrier %u times before all hosts had entered it\n",
               atomic_load(&s->early_departures));
        failed = 1;
    }
    return failed || (c == &by_wires && !test_hub_of_dead_process_is_free());
}
