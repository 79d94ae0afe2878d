/* test_self.c: the contract of a transport on the smallest one: order, payload in place, queues behind
 * ERR_AGAIN, put and get, and what a poll may send.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "boot/backend.h"
#include "node.h"

static struct node node;
static struct peer *me;
static uint64_t next_word;
static int replies;

static void on_frame(void *ctx, struct peer *from, const struct frame_header *h, const void *payload,
                     size_t len)
{
    (void)ctx;
    EXPECT(from == me);
    EXPECT_EQ(h->word, next_word++);
    size_t wrong = 0;
    for (size_t i = 0; i < len; i++)
        wrong += ((const unsigned char *)payload)[i] != (unsigned char)(h->word + i);
    EXPECT_EQ(wrong, 0);
    if (h->flags) { /* an answer from inside the delivery */
        struct frame_header answer = {.word = (uint64_t)h->aux};
        replies++;
        EXPECT_EQ(peer_send_now(me, &answer, NULL, 0), 0);
    }
}

static void open_self(void)
{
    node_describe(&node, 0, 1, -1);
    EXPECT_EQ(net_open(&node.boot, &node.net), 0);
    node.net->deliver = on_frame;
    EXPECT_EQ(net_peer(node.net, 0, &me), 0);
    EXPECT(me->self && me->local);
}

static void self_drain(void)
{
    for (int i = 0; i < 100000 && (net_progress(node.net) > 0 || !list_empty(&node.net->stalled)); i++)
        continue;
}

static void in_order(void)
{
    unsigned char payload[300];
    next_word = 0;
    for (uint64_t n = 0; n < 100; n++) {
        struct frame_header h = {.word = n};
        for (size_t i = 0; i < sizeof(payload); i++)
            payload[i] = (unsigned char)(n + i);
        EXPECT_EQ(peer_send(me, &h, payload, n * 3), 0);
    }
    EXPECT_EQ(next_word, 0); /* nothing is delivered but by a poll */
    self_drain();
    EXPECT_EQ(next_word, 100);
    EXPECT_EQ(net_progress(node.net), 0);
}

static void test_answers(void)
{
    struct frame_header h = {.flags = 1, .aux = 1, .word = 0};
    next_word = 0;
    replies = 0;
    EXPECT_EQ(peer_send(me, &h, NULL, 0), 0);
    self_drain();
    EXPECT_EQ(replies, 1);
    EXPECT_EQ(next_word, 2);
}

/* Work that returns "again" three times, then sends. */
struct slow {
    struct net_pending pending;
    int again;
    uint64_t word;
};

static int slow_resume(struct net_pending *item)
{
    struct slow *s = container_of(item, struct slow, pending);
    if (s->again-- > 0)
        return ERR_AGAIN;
    struct frame_header h = {.word = s->word};
    return peer_send_now(me, &h, NULL, 0);
}

static void queue_keeps_order(void)
{
    struct slow items[5];
    struct frame_header early = {.word = 99};
    next_word = 0;
    for (int i = 0; i < 5; i++) {
        items[i] = (struct slow){.pending.resume = slow_resume, .again = 3 - i % 3, .word = (uint64_t)i};
        peer_queue(me, &items[i].pending);
    }
    EXPECT_EQ(peer_send(me, &early, NULL, 0), ERR_AGAIN); /* nothing overtakes */
    self_drain();
    EXPECT_EQ(next_word, 5);
    EXPECT(!me->stalled && list_empty(&node.net->stalled));
    peer_queue(me, &items[0].pending); /* taken out by hand, as a cancelled send is */
    list_remove(&items[0].pending.link);
    peer_remove_stalled(me);
    EXPECT(!me->stalled && list_empty(&node.net->stalled));
}

static int done_status = -1;

static void on_done(struct net_op *op, int status)
{
    (void)op;
    done_status = status;
}

static void put_and_get(void)
{
    char a[64] = "from here", b[64] = "";
    struct net_mem mem;
    struct net_key key;
    struct net_op op = {.done = on_done};
    EXPECT_EQ(me->ops->mem_register(me->transport, b, sizeof(b), &mem, &key), 0);
    EXPECT_EQ(me->ops->put(me, a, &mem, (uintptr_t)b, &key, sizeof(b), &op), 0);
    EXPECT_EQ(done_status, 0);
    EXPECT_STR(b, "from here");
    memset(a, 0, sizeof(a));
    done_status = -1;
    EXPECT_EQ(me->ops->get(me, a, &mem, (uintptr_t)b, &key, sizeof(b), &op), 0);
    EXPECT_EQ(done_status, 0);
    EXPECT_STR(a, "from here");
    me->ops->mem_release(me->transport, &mem);
}

/* A launcher that never delivers a key of the other rank. */
static int silent_put(struct boot *b, const char *key, const void *val, size_t len)
{
    (void)b, (void)key, (void)val, (void)len;
    return 0;
}

static int silent_fence(struct boot *b)
{
    (void)b;
    return 0;
}

static int silent_get(struct boot *b, uint32_t rank, const char *key, void **val, size_t *len)
{
    (void)b, (void)val, (void)len;
    return err_set(MPI_ERR_OTHER, "rank %u has not published %s", rank, key);
}

/* A second rank on another node, and nothing that reaches it: known at once, and said. */
static void test_unreachable(void)
{
    static const struct boot_backend silent = {.put = silent_put, .fence = silent_fence, .get = silent_get};
    struct node alone;
    node_describe(&alone, 0, 1, -1);
    alone.boot.backend = &silent;
    alone.boot.size = 2;
    alone.boot.nnodes = 2;
    alone.node_of[1] = 1;
    EXPECT_EQ(net_open(&alone.boot, &alone.net), MPI_ERR_OTHER);
    EXPECT(err_detail(MPI_ERR_OTHER)[0] != '\0');
}

int main(void)
{
    open_self();
    TEST_RUN(in_order);
    TEST_RUN(test_answers);
    TEST_RUN(queue_keeps_order);
    TEST_RUN(put_and_get);
    TEST_RUN(test_unreachable);
    net_close(node.net);
    return test_result();
}
