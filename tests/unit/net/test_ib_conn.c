/* test_ib_conn.c: opens and closes a connection in scripted message sequences; test_ib_conn_all.c explores
 * all others.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/conn.h"

#include "base/util.h"
#include "test.h"

enum { TRIES = 3 };

static void test_one_side_opens(void)
{
    struct conn a = {0}, b = {0};
    EXPECT_EQ(conn_request_open(&a), CONN_DO_CREATE | CONN_DO_HELLO);
    EXPECT_EQ(conn_request_open(&a), 0);
    EXPECT_EQ(a.mine, 1);
    EXPECT_EQ(a.yours, 0);
    EXPECT(!conn_has_no_pending_hello(&a) && !conn_is_open(&a));
    EXPECT_EQ(conn_hello_received(&b, 1, 0, false), CONN_DO_CREATE | CONN_DO_CONNECT | CONN_DO_HELLO);
    EXPECT_EQ(b.state, CONN_HALF);
    /* The same request arrives again: the answer may have been lost, so it is repeated. */
    EXPECT_EQ(conn_hello_received(&b, 1, 0, false), CONN_DO_HELLO);
    EXPECT_EQ(conn_hello_received(&a, b.mine, b.yours, false),
              CONN_DO_CONNECT | CONN_DO_HELLO | CONN_DO_OPENED);
    EXPECT(conn_has_no_pending_hello(&a) && conn_is_open(&a));
    EXPECT_EQ(conn_hello_received(&b, a.mine, a.yours, true), CONN_DO_OPENED);
    EXPECT_EQ(b.state, CONN_OPEN);
    EXPECT_EQ(conn_hello_received(&b, a.mine, a.yours, true), 0); /* a duplicate HELLO */
    EXPECT_EQ(conn_hello_received(&b, 1, 0, false), 0);           /* a HELLO of an old generation */
    EXPECT_EQ(conn_timer_expired(&a, TRIES), 0);
}

static void test_both_sides_open_at_once(void)
{
    struct conn a = {0}, b = {0};
    conn_request_open(&a);
    conn_request_open(&b);
    EXPECT_EQ(conn_hello_received(&a, 1, 0, false), CONN_DO_CONNECT | CONN_DO_HELLO);
    EXPECT_EQ(conn_hello_received(&b, 1, 0, false), CONN_DO_CONNECT | CONN_DO_HELLO);
    EXPECT_EQ(conn_hello_received(&a, 1, 1, false), CONN_DO_OPENED);
    /* a's second HELLO was lost: b repeats its HELLO, and a answers. */
    EXPECT_EQ(conn_timer_expired(&b, TRIES), CONN_DO_HELLO);
    EXPECT_EQ(conn_hello_received(&a, b.mine, b.yours, conn_is_open(&b)), CONN_DO_HELLO);
    EXPECT_EQ(conn_hello_received(&b, a.mine, a.yours, conn_is_open(&a)), CONN_DO_OPENED);
}

static void test_frame_opens_connection(void)
{
    struct conn b = {0};
    conn_hello_received(&b, 1, 0, false);
    EXPECT_EQ(conn_frame_received(&b), CONN_DO_OPENED);
    EXPECT_EQ(conn_frame_received(&b), 0);
    b = (struct conn){0};
    conn_hello_received(&b, 1, 0, false);
    EXPECT_EQ(conn_close_received(&b, true), CONN_DO_OPENED | CONN_DO_KEEP);
    b = (struct conn){0};
    conn_hello_received(&b, 1, 0, false);
    EXPECT_EQ(conn_close_received(&b, false), CONN_DO_OPENED | CONN_DO_AGREE);
}

static void test_open_fails_without_answer(void)
{
    struct conn a = {0};
    conn_request_open(&a);
    for (int i = 0; i < TRIES; i++)
        EXPECT_EQ(conn_timer_expired(&a, TRIES), CONN_DO_HELLO);
    EXPECT_EQ(conn_timer_expired(&a, TRIES), CONN_DO_FAIL);
    EXPECT_EQ(a.state, CONN_FAILED);
    EXPECT_EQ(conn_timer_expired(&a, TRIES) | conn_request_open(&a) | conn_hello_received(&a, 1, 1, false),
              0);
    /* A received HELLO restarts the count of tries. */
    a = (struct conn){0};
    conn_request_open(&a);
    conn_timer_expired(&a, TRIES);
    conn_timer_expired(&a, TRIES);
    conn_hello_received(&a, 1, 0, false);
    for (int i = 0; i < TRIES; i++)
        EXPECT_EQ(conn_timer_expired(&a, TRIES), CONN_DO_HELLO);
    EXPECT_EQ(conn_timer_expired(&a, TRIES), CONN_DO_FAIL);
}

static void open_both_sides(struct conn *a, struct conn *b)
{
    conn_request_open(a);
    conn_hello_received(b, a->mine, 0, false);
    conn_hello_received(a, b->mine, b->yours, false);
    conn_hello_received(b, a->mine, a->yours, true);
    EXPECT(a->state == CONN_OPEN && b->state == CONN_OPEN);
}

static void test_close_is_refused_and_accepted(void)
{
    struct conn a = {0}, b = {0};
    EXPECT_EQ(conn_request_close(&a), 0);
    open_both_sides(&a, &b);
    EXPECT_EQ(conn_request_close(&a), CONN_DO_CLOSE);
    EXPECT_EQ(conn_close_received(&b, true), CONN_DO_KEEP);
    EXPECT_EQ(conn_close_refused(&a), CONN_DO_RESUME);
    EXPECT_EQ(conn_request_close(&a), CONN_DO_CLOSE);
    EXPECT_EQ(conn_request_open(&a), 0);
    EXPECT_EQ(conn_close_received(&b, false), CONN_DO_AGREE);
    EXPECT_EQ(conn_request_open(&b), 0);
    EXPECT_EQ(conn_close_accepted(&a), CONN_DO_DESTROY);
    EXPECT_EQ(conn_peer_disconnected(&b), CONN_DO_DESTROY);
    EXPECT_EQ(conn_peer_disconnected(&b), 0);
    EXPECT_EQ(conn_hello_received(&b, 1, 0, false) | conn_hello_received(&b, 1, 1, false) |
                  conn_hello_received(&a, 1, 1, true),
              0);
    open_both_sides(&b, &a);
    EXPECT_EQ(a.mine, 2);
    EXPECT_EQ(b.yours, 2);
}

/* A generation that replaces a connected one: MPI_Finalize waits until it is open (endpoint_may_end). */
static void test_broken_connection_resumes(void)
{
    struct conn a = {0}, b = {0};
    conn_request_open(&a);
    EXPECT(!a.resumes);
    conn_queue_pair_failed(&a); /* the peer had not answered yet */
    EXPECT(!a.resumes);
    conn_hello_received(&b, a.mine, 0, false);
    EXPECT(b.state == CONN_HALF && !b.resumes);
    conn_queue_pair_failed(&b);
    EXPECT(b.state == CONN_ASKING && b.resumes);
    conn_queue_pair_failed(&b);
    EXPECT(b.resumes);
    conn_hello_received(&b, a.mine + 1, 0, false);
    EXPECT(b.state == CONN_HALF && b.resumes);
    conn_hello_received(&b, a.mine + 1, b.mine, true);
    EXPECT(b.state == CONN_OPEN);
}

static void test_crossing_closes(void)
{
    struct conn a = {0}, b = {0};
    open_both_sides(&a, &b);
    conn_request_close(&a);
    conn_request_close(&b);
    EXPECT_EQ(conn_close_received(&a, true), 0); /* no action yet: the CLOSE of `a` must be sent first */
    EXPECT_EQ(a.state, CONN_AGREED);
    EXPECT_EQ(conn_close_received(&b, false), 0);
    EXPECT_EQ(conn_peer_disconnected(&a), CONN_DO_DESTROY);
    EXPECT_EQ(conn_request_open(&a), CONN_DO_CREATE | CONN_DO_HELLO);
    EXPECT_EQ(conn_hello_received(&b, 2, 0, false),
              CONN_DO_DESTROY | CONN_DO_CREATE | CONN_DO_CONNECT | CONN_DO_HELLO);
    EXPECT_EQ(conn_peer_disconnected(&b), 0);
    EXPECT_EQ(conn_hello_received(&a, 2, 2, false), CONN_DO_CONNECT | CONN_DO_HELLO | CONN_DO_OPENED);
}

static void test_peer_is_gone(void)
{
    struct conn a = {0}, b = {0};
    open_both_sides(&a, &b);
    EXPECT_EQ(conn_peer_died(&a), 0);
    EXPECT_EQ(a.state, CONN_FAILED);
    EXPECT_EQ(conn_request_open(&a) | conn_request_close(&a) | conn_frame_received(&a) |
                  conn_close_received(&a, false) | conn_peer_disconnected(&a),
              0);
}

int main(void)
{
    TEST_RUN(test_one_side_opens);
    TEST_RUN(test_both_sides_open_at_once);
    TEST_RUN(test_frame_opens_connection);
    TEST_RUN(test_open_fails_without_answer);
    TEST_RUN(test_close_is_refused_and_accepted);
    TEST_RUN(test_broken_connection_resumes);
    TEST_RUN(test_crossing_closes);
    TEST_RUN(test_peer_is_gone);
    return test_result();
}
