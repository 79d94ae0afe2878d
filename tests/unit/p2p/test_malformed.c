/* test_malformed.c: frames with random contents that no correct peer would send. The engine either accepts
 * a frame or aborts with an error message; it never crashes and never writes outside the receive buffer.
 * Each batch runs in a child process, whose exit status is checked.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot/boot.h"
#include "p2p/engine.h"
#include "random.h"
#include "test.h"

enum { BATCHES = 400, FRAMES_MAX = 12, ROOM = 4096, GUARD = 64 };

/* A job of one rank; `other` is a peer that sends random frames. */
struct world {
    uint32_t zero;
    struct boot boot;
    struct net *net;
    struct p2p *p2p;
    struct peer *peer;
    struct peer other;
    char guarded[GUARD + ROOM + GUARD];
};

static void world_open(struct world *w)
{
    memset(w->guarded, 0x5a, sizeof(w->guarded));
    w->zero = 0;
    w->boot = (struct boot){
        .size = 1, .nnodes = 1, .node_of = &w->zero, .nlocal = 1, .local_ranks = &w->zero, .node_fd = -1};
    EXPECT_EQ(net_open(&w->boot, &w->net), 0);
    EXPECT_EQ(p2p_open(w->net, &w->p2p), 0);
    EXPECT_EQ(net_peer(w->net, 0, &w->peer), 0);
    w->other = *w->peer;
    w->other.caps.get = w->other.caps.put = false; /* a put or get would access this process's own memory */
    list_init(&w->other.pending);
    list_init(&w->other.stalled_link);
}

/* Starts requests in every state, so that a frame with a valid cookie finds one. */
static void start_requests(struct world *w)
{
    struct dtype *byte = dtype_from_handle(MPI_BYTE);
    struct envelope env = {.context = 2, .source = 0};
    char *room = w->guarded + GUARD;
    struct request *r;
    for (int i = 0; i < 8; i++) {
        env.tag = i;
        p2p_irecv(w->p2p, room + i * 16, 16, byte, env, &r);
        env.tag = 100 + i;
        p2p_isend(w->p2p, room, 16, byte, w->peer, env, SEND_SYNCHRONOUS, &r);
        p2p_isend(w->p2p, room, ROOM, byte, w->peer, env, SEND_STANDARD, &r);
    }
    env = (struct envelope){.context = 2, .source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG};
    p2p_irecv(w->p2p, room + 1024, 1024, byte, env, &r);
}

static uint64_t random_word(void)
{
    switch (random_below(4)) {
    case 0:
        /* The low word is a slot: a small number may be a valid cookie. */
        return (uint64_t)(1 + random_below(2)) << 32 | random_below(40);
    case 1:
        return random_below(10000);
    case 2:
        return UINT64_MAX - random_below(3);
    default:
        return (uint64_t)random_below(1u << 24) << 40 | random_below(1u << 24);
    }
}

static void deliver_random_frame(struct world *w)
{
    uint64_t payload[256];
    struct frame_header h = {.kind =
                                 (uint8_t)(random_below(20) ? random_below(FRAME_KINDS) : random_below(256)),
                             .flags = (uint8_t)random_below(random_below(4) ? 3 : 64),
                             .aux = (uint16_t)random_below(1u << 16),
                             .context = random_below(4),
                             .source = (int32_t)random_below(4) - 2,
                             .tag = (int32_t)random_below(120) - 2,
                             .word = random_word()};
    static const size_t lengths[] = {0, 1, 8, 16, 24, 32, 40, 48, 64, 1000, 2048};
    size_t len = lengths[random_below(COUNT_OF(lengths))];
    if (h.kind == FRAME_RTS && random_below(4))
        len = sizeof(struct rts);
    if (h.kind == FRAME_CTS && random_below(4))
        len = sizeof(struct cts);
    if (h.kind == FRAME_CTS_WRITE && random_below(4))
        len = sizeof(struct cts_write);
    if (h.kind == FRAME_WRITTEN && random_below(4))
        len = sizeof(uint64_t);
    if (h.kind == FRAME_RTR && random_below(4))
        len = sizeof(struct rtr);
    for (size_t i = 0; i < COUNT_OF(payload); i++)
        payload[i] = random_word();
    w->net->deliver(w->p2p, random_below(2) ? w->peer : &w->other, &h, payload, len);
}

static void run_batch(uint32_t batch)
{
    static struct world w;
    random_seed = batch * 7919 + 1;
    world_open(&w);
    w.peer->caps.get = w.peer->caps.put = false;
    start_requests(&w);
    for (int left = 1 + (int)random_below(FRAMES_MAX); left > 0; left--) {
        deliver_random_frame(&w);
        if (random_below(8) == 0)
            net_progress(w.net);
    }
    for (int i = 0; i < GUARD; i++)
        if (w.guarded[i] != 0x5a || w.guarded[GUARD + ROOM + i] != 0x5a)
            _exit(3);
    _exit(0);
}

static void test_batches(void)
{
    int ended = 0;
    for (uint32_t b = 0; b < BATCHES; b++) {
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            if (!freopen("/dev/null", "w", stderr))
                _exit(4);
            run_batch(b);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        bool sentence = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
        bool through = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (!sentence && !through)
            printf("batch %u ended with status %#x\n", b, (unsigned)status);
        EXPECT(sentence || through);
        ended += sentence;
    }
    printf("%d of %d batches ended with an error message\n", ended, BATCHES);
}

int main(void)
{
    TEST_RUN(test_batches);
    return test_result();
}
