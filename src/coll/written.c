/* written.c: n-way dissemination by RDMA writes [Hoefler05 4.1.3]. Every rank has a few bytes of registered memory, one for
 * each partner of each round; the partner writes the number of the barrier there, and the rank looks at it. No message, no
 * matching, no receive: a write is taken into the request (inline), and nobody is told when it is done.
 *
 * A flag is one byte, so no adapter can be seen in the middle of writing it. Its number is that of the barrier modulo 256. A
 * partner is at most one barrier ahead of a rank that waits for it, since it cannot leave a barrier that the rank has not
 * entered. So a flag is set when it is not behind.
 *
 * The first barrier of a communicator is done by messages, which carry where to write: everyone sends its address against
 * the direction of the writes, that is, to those who will write to it. The same messages carry whether all ranks heard of so
 * far can do it this way. After the last round every rank knows of every other, as in any dissemination, so all agree.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "coll/written.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/counter.h"

#define PARTNERS_MAX 64   /* of all rounds */
#define PAGE         4096 /* registered as a whole */
/* Registering memory takes as long as hundreds of barriers, and many communicators live for one or two only. */
#define BARRIERS_BEFORE 8

static COUNTER(runs, "coll_written", "Barriers done by RDMA writes.");

COLL_ALGORITHM(
    barrier_rdma, .name = "rdma", .kind = COLL_BARRIER, .needs = NEED_APART | NEED_TWO,
    .parameter = {{"n", 1, 8, 1}},
    .doc = "dissemination with n partners in each round, by RDMA writes into memory that is looked at");

/* Where this rank writes, and whose write it waits for, by place: flag i is written by partner i of its writer. */
struct partner {
    struct peer *to;
    uint64_t address;
    struct net_key key;
    int to_rank, from_rank;
    int round;
};

struct written {
    struct transport *transport;
    _Atomic uint8_t *flags; /* PARTNERS_MAX of them */
    struct net_mem mem;
    struct net_key key;
    uint8_t turn; /* of the last barrier */
    int partners;
    struct partner partner[PARTNERS_MAX];
};

/* What a rank tells those who will write to it. */
struct invitation {
    uint64_t address;
    struct net_key key;
    uint64_t all_can;
};

/* The flags that a rank waits for in one round. */
struct awaited {
    struct written *w;
    int first, end;
};

static bool round_over(void *arg)
{
    const struct awaited *a = arg;
    for (int i = a->first; i < a->end; i++) {
        uint8_t flag = atomic_load_explicit(&a->w->flags[i], memory_order_acquire);
        if ((int8_t)(flag - a->w->turn) < 0)
            return false;
    }
    return true;
}

static int partners_find(struct written *w, int rank, int size, int n)
{
    int64_t step = 1;
    for (int round = 0; step < size; step *= n + 1, round++)
        for (int64_t distance = step; distance <= n * step && distance < size; distance += step) {
            if (w->partners == PARTNERS_MAX)
                return -1;
            w->partner[w->partners++] = (struct partner){.to_rank = (int)((rank + distance) % size),
                                                         .from_rank = (int)((rank - distance + size) % size),
                                                         .round = round};
        }
    return 0;
}

/* The partners of the round that begins at place `first`. */
static int round_end(const struct written *w, int first)
{
    int end = first;
    while (end < w->partners && w->partner[end].round == w->partner[first].round)
        end++;
    return end;
}

/* A shared mapping: a fork leaves it where it is, and an adapter in software stores into it directly. */
static void *flags_map(void)
{
    int fd = memfd_create("fishplate-barrier", MFD_CLOEXEC);
    void *page = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, PAGE) == 0)
        page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return page == MAP_FAILED ? NULL : page;
}

/* This rank's side: its partners can be written to without being told, and its memory can be. */
static bool can(struct comm *c, struct written *w)
{
    for (int i = 0; i < w->partners; i++) {
        struct partner *p = &w->partner[i];
        if (comm_peer(c, p->to_rank, &p->to) != 0 || !p->to->caps.put || p->to->caps.put_silent == 0)
            return false;
        if (!w->transport)
            w->transport = p->to->transport;
        if (w->transport != p->to->transport)
            return false;
    }
    w->flags = flags_map();
    if (!w->flags)
        return false;
    /* Ranks that take turns on a processor are better woken by a message than left looking at memory. */
    return (!c->proc->net->oversubscribed || coll_is_forced(COLL_BARRIER)) &&
           w->transport->ops->mem_register(w->transport, (const void *)w->flags, PAGE, &w->mem, &w->key) == 0;
}

static void written_free(struct written *w)
{
    if (w->mem.length)
        w->transport->ops->mem_release(w->transport, &w->mem);
    if (w->flags)
        munmap((void *)w->flags, PAGE);
    free(w);
}

/* One round of the first barrier; *all_can becomes false when somebody heard of cannot. */
static int invite_round(struct comm *c, struct written *w, int tag, int first, int end, bool *all_can)
{
    struct p2p *p2p = c->proc->p2p;
    struct invitation mine = {(uintptr_t)w->flags, w->key, *all_can}, theirs;
    int rc = 0;
    for (int i = first; !rc && i < end; i++) {
        struct peer *peer;
        rc = comm_peer(c, w->partner[i].from_rank, &peer);
        if (!rc)
            rc = p2p_send(p2p, &mine, sizeof(mine), byte_type(), peer, comm_coll_envelope(c, c->rank, tag),
                          SEND_STANDARD);
    }
    for (int i = first; !rc && i < end; i++) {
        struct partner *p = &w->partner[i];
        rc =
            p2p_recv(p2p, &theirs, sizeof(theirs), byte_type(), comm_coll_envelope(c, p->to_rank, tag), NULL);
        p->address = theirs.address + (uint64_t)i;
        p->key = theirs.key;
        *all_can = *all_can && theirs.all_can;
    }
    return rc;
}

/* The first barrier. state->written stays NULL when they cannot all do it. */
static int invite(struct coll_state *state, int n, uint32_t number)
{
    struct comm *c = state->comm;
    struct written *w = calloc(1, sizeof(*w));
    state->written_tried = true;
    if (!w)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the barrier of a communicator");
    bool all_can = partners_find(w, c->rank, c->size, n) == 0 && can(c, w);
    int rc = 0;
    for (int first = 0, end; !rc && first < w->partners; first = end) {
        end = round_end(w, first);
        rc = invite_round(c, w, coll_tag_of(COLL_BARRIER, 0, number), first, end, &all_can);
    }
    if (rc || !all_can)
        written_free(w);
    else
        state->written = w;
    return rc;
}

/* Nobody else may wait for room in the send queue for long: completions make it. */
static int write_flag(struct net *net, struct written *w, int i)
{
    const struct partner *p = &w->partner[i];
    int rc;
    while ((rc = p->to->ops->put(p->to, &w->turn, NULL, p->address, &p->key, 1, NULL)) == ERR_AGAIN)
        net_progress(net);
    return rc;
}

static int barrier(struct comm *c, struct written *w)
{
    struct net *net = c->proc->net;
    w->turn++;
    for (int first = 0, end; first < w->partners; first = end) {
        end = round_end(w, first);
        for (int i = first; i < end; i++) {
            int rc = write_flag(net, w, i);
            if (rc)
                return rc;
        }
        struct awaited a = {w, first, end};
        struct net_waiter waiter = {.ready = round_over, .arg = &a, .what = NET_MEMBERS, .of = c};
        if (round_over(&a))
            continue;
        net->unrung++;
        while (!round_over(&a))
            net_wait_step(net, &waiter);
        net_wait_end(net, &waiter);
        net->unrung--;
    }
    counter_add(&runs, 1);
    return 0;
}

bool written_run(const struct coll_args *args, struct coll_state *state, const struct coll_choice *choice,
                 int *rc)
{
    if (state->written) {
        coll_number(state, args, FORM_BLOCKING);
        *rc = barrier(state->comm, state->written);
        return true;
    }
    if (state->written_tried || (!coll_is_forced(COLL_BARRIER) && state->barriers_before++ < BARRIERS_BEFORE))
        return false;
    int n = choice->parameter[0] ? choice->parameter[0] : choice->algorithm->parameter[0].preset;
    *rc = invite(state, n, coll_number(state, args, FORM_BLOCKING));
    return true; /* by messages, this once */
}

void written_close(struct coll_state *state)
{
    if (state->written)
        written_free(state->written);
    state->written = NULL;
}
