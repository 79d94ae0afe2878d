/* test_self.c: the contract of a transport, tested with the self transport: order, payload in place,
 * queues after ERR_AGAIN, put and get, and frames sent during a poll.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "boot/backend.h"
#include "node.h"

static struct node node;
static struct peer *self_peer;
static uint64_t next_word;
static int replies;

static void check_frame_and_reply(void *ctx, struct peer *from, const struct frame_header *h,
                                  const void *payload, size_t len)
{
    (void)ctx;
    EXPECT(from == self_peer);
    EXPECT_EQ(h->word, next_word++);
    size_t wrong = 0;
    for (size_t i = 0; i < len; i++)
        wrong += ((const unsigned char *)payload)[i] != (unsigned char)(h->word + i);
    EXPECT_EQ(wrong, 0);
    if (h->flags) { /* sends a reply from the delivery callback */
        struct frame_header answer = {.word = (uint64_t)h->aux};
        replies++;
        EXPECT_EQ(peer_send_now(self_peer, &answer, NULL, 0), 0);
    }
}

static void open_self_transport(void)
{
    node_init(&node, 0, 1, -1);
    EXPECT_EQ(net_open(&node.boot, &node.net), 0);
    node.net->deliver = check_frame_and_reply;
    EXPECT_EQ(net_peer(node.net, 0, &self_peer), 0);
    EXPECT(self_peer->self && self_peer->local);
}

static void poll_until_idle(void)
{
    for (int i = 0; i < 100000 && (net_progress(node.net) > 0 || !list_empty(&node.net->stalled)); i++)
        continue;
}

static void test_frames_in_order(void)
{
    unsigned char payload[300];
    next_word = 0;
    for (uint64_t n = 0; n < 100; n++) {
        struct frame_header h = {.word = n};
        for (size_t i = 0; i < sizeof(payload); i++)
            payload[i] = (unsigned char)(n + i);
        EXPECT_EQ(peer_send(self_peer, &h, payload, n * 3), 0);
    }
    EXPECT_EQ(next_word, 0); /* frames are delivered only during a poll */
    poll_until_idle();
    EXPECT_EQ(next_word, 100);
    EXPECT_EQ(net_progress(node.net), 0);
}

static void test_send_during_poll(void)
{
    struct frame_header h = {.flags = 1, .aux = 1, .word = 0};
    next_word = 0;
    replies = 0;
    EXPECT_EQ(peer_send(self_peer, &h, NULL, 0), 0);
    poll_until_idle();
    EXPECT_EQ(replies, 1);
    EXPECT_EQ(next_word, 2);
}

/* A pending operation that returns ERR_AGAIN `again` times, then sends a frame. */
struct deferred_send {
    struct net_pending pending;
    int again;
    uint64_t word;
};

static int resume_deferred_send(struct net_pending *item)
{
    struct deferred_send *s = container_of(item, struct deferred_send, pending);
    if (s->again-- > 0)
        return ERR_AGAIN;
    struct frame_header h = {.word = s->word};
    return peer_send_now(self_peer, &h, NULL, 0);
}

static void test_queue_keeps_order(void)
{
    struct deferred_send items[5];
    struct frame_header early = {.word = 99};
    next_word = 0;
    for (int i = 0; i < 5; i++) {
        items[i] = (struct deferred_send){
            .pending.resume = resume_deferred_send, .again = 3 - i % 3, .word = (uint64_t)i};
        peer_queue(self_peer, &items[i].pending);
    }
    /* A new frame must not overtake queued frames. */
    EXPECT_EQ(peer_send(self_peer, &early, NULL, 0), ERR_AGAIN);
    poll_until_idle();
    EXPECT_EQ(next_word, 5);
    EXPECT(!self_peer->stalled && list_empty(&node.net->stalled));
    peer_queue(self_peer, &items[0].pending); /* removed below, as by a cancelled send */
    list_remove(&items[0].pending.link);
    peer_remove_stalled(self_peer);
    EXPECT(!self_peer->stalled && list_empty(&node.net->stalled));
}

static int done_status = -1;

static void record_done_status(struct net_op *op, int status)
{
    (void)op;
    done_status = status;
}

static void test_put_and_get(void)
{
    char a[64] = "from here", b[64] = "";
    struct net_mem mem;
    struct net_key key;
    struct net_op op = {.done = record_done_status};
    EXPECT_EQ(self_peer->ops->mem_register(self_peer->transport, b, sizeof(b), &mem, &key), 0);
    EXPECT_EQ(self_peer->ops->put(self_peer, a, &mem, (uintptr_t)b, &key, sizeof(b), &op), 0);
    EXPECT_EQ(done_status, 0);
    EXPECT_STR(b, "from here");
    memset(a, 0, sizeof(a));
    done_status = -1;
    EXPECT_EQ(self_peer->ops->get(self_peer, a, &mem, (uintptr_t)b, &key, sizeof(b), &op), 0);
    EXPECT_EQ(done_status, 0);
    EXPECT_STR(a, "from here");
    self_peer->ops->mem_release(self_peer->transport, &mem);
}

/* A launcher that never delivers a key of the other rank. */
static int ignore_put(struct boot *b, const char *key, const void *val, size_t len)
{
    (void)b, (void)key, (void)val, (void)len;
    return 0;
}

static int ignore_fence(struct boot *b)
{
    (void)b;
    return 0;
}

static int fail_get(struct boot *b, uint32_t rank, const char *key, void **val, size_t *len)
{
    (void)b, (void)val, (void)len;
    return err_set(MPI_ERR_OTHER, "rank %u has not published %s", rank, key);
}

/* A second rank on another node that no transport reaches: the error is reported at once. */
static void test_unreachable(void)
{
    static const struct boot_backend silent = {.put = ignore_put, .fence = ignore_fence, .get = fail_get};
    struct node alone;
    node_init(&alone, 0, 1, -1);
    alone.boot.backend = &silent;
    alone.boot.size = 2;
    alone.boot.nnodes = 2;
    alone.node_of[1] = 1;
    EXPECT_EQ(net_open(&alone.boot, &alone.net), MPI_ERR_OTHER);
    EXPECT(err_detail(MPI_ERR_OTHER)[0] != '\0');
}

int main(void)
{
    open_self_transport();
    TEST_RUN(test_frames_in_order);
    TEST_RUN(test_send_during_poll);
    TEST_RUN(test_queue_keeps_order);
    TEST_RUN(test_put_and_get);
    TEST_RUN(test_unreachable);
    net_close(node.net);
    return test_result();
}
