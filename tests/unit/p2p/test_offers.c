/* test_offers.c: the sender's table of offers (receive buffers that receivers announced).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/offer_policy.h"

#include "test.h"

static void test_crossed_offers_are_discarded(void)
{
    struct offers o = {0};
    struct offer a = {.env = {.context = 2, .source = 1, .tag = 3}, .cookie = 7}, got;
    EXPECT(!offers_add(&o, &a, 4, 5));
    EXPECT(!offers_add(&o, &a, UINT32_MAX, 0));
    EXPECT(!offers_remove_matching(&o, a.env, &got));
    EXPECT(offers_add(&o, &a, 5, 5));
    EXPECT_EQ(o.count, 1);
}

static void test_offer_is_taken_once(void)
{
    struct offers o = {0};
    struct offer got;
    for (int i = 0; i < OFFERS_MAX; i++) {
        struct offer a = {.env = {.context = 2, .source = 1, .tag = i}, .cookie = (uint64_t)(100 + i)};
        EXPECT(offers_add(&o, &a, 0, 0));
    }
    struct offer more = {.env = {.context = 4}};
    EXPECT(!offers_add(&o, &more, 0, 0));
    EXPECT(!offers_remove_matching(&o, (struct envelope){.context = 3, .source = 1, .tag = 1}, &got));
    EXPECT(!offers_remove_matching(&o, (struct envelope){.context = 2, .source = 0, .tag = 1}, &got));
    for (int n = 0; n < OFFERS_MAX; n++) {
        int tag = n * 5 % OFFERS_MAX; /* a permutation of the tags */
        struct envelope env = {.context = 2, .source = 1, .tag = tag};
        EXPECT(offers_remove_matching(&o, env, &got));
        EXPECT_EQ(got.cookie, 100 + tag);
        EXPECT(!offers_remove_matching(&o, env, &got));
    }
    EXPECT_EQ(o.count, 0);
}

static void test_envelopes_are_counted_separately(void)
{
    for (int tag = -3; tag < 100; tag++)
        for (uint64_t context = 0; context < 20; context++) {
            struct envelope env = {.context = context, .source = 1, .tag = tag}, other = env;
            other.source = 2; /* another peer: counted separately */
            EXPECT(envelope_class(env) < PEER_CLASSES);
            EXPECT_EQ(envelope_class(env), envelope_class(other));
        }
    struct envelope user = {.context = 2, .tag = 5}, barrier = {.context = 3, .tag = 5};
    EXPECT(envelope_class(user) != envelope_class(barrier));
}

int main(void)
{
    TEST_RUN(test_crossed_offers_are_discarded);
    TEST_RUN(test_offer_is_taken_once);
    TEST_RUN(test_envelopes_are_counted_separately);
    return test_result();
}
