/* test_interval.c: the tree of ranges against an array that is searched from end to end, under random
 * insertions and removals; and its balance, when ranges come in order.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/interval.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/util.h"
#include "test.h"

enum { MANY = 300, ROUNDS = 20000 };

static struct interval nodes[MANY];
static bool in_tree[MANY];
static uint64_t seed = 1;

static unsigned interval_pick(unsigned n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

/* Height of the subtree when order, reach and balance hold everywhere, else -1. */
static int interval_is_consistent(const struct interval *n)
{
    if (!n)
        return 0;
    int l = interval_is_consistent(n->left), r = interval_is_consistent(n->right);
    uintptr_t reach = n->end;
    if (n->left)
        reach = MAX(reach, n->left->reach);
    if (n->right)
        reach = MAX(reach, n->right->reach);
    bool ordered = (!n->left || n->left->start <= n->start) && (!n->right || n->right->start >= n->start);
    if (l < 0 || r < 0 || abs(l - r) > 1 || reach != n->reach || !ordered)
        return -1;
    return 1 + MAX(l, r);
}

static void interval_compare(const struct interval_tree *t, uintptr_t start, uintptr_t end)
{
    int overlap = 0, found = 0;
    bool cover = false;
    for (int i = 0; i < MANY; i++) {
        if (!in_tree[i])
            continue;
        overlap += nodes[i].start < end && start < nodes[i].end;
        cover |= nodes[i].start <= start && end <= nodes[i].end;
    }
    const struct interval *c = interval_find_covering(t, start, end);
    EXPECT_EQ(c != NULL, cover);
    EXPECT(!c || (c->start <= start && end <= c->end && in_tree[c - nodes]));

    uintptr_t last = 0;
    for (struct interval *n = interval_overlap(t, start, end); n && found <= overlap;
         n = interval_overlap_next(t, n, start, end)) {
        EXPECT(in_tree[n - nodes] && n->start < end && start < n->end && n->start >= last);
        last = n->start;
        found++;
    }
    EXPECT_EQ(found, overlap);
}

/* Few distinct ranges, so that equal ones are common; short ones and long ones. */
static void random_ranges(void)
{
    struct interval_tree t = {NULL};
    for (int round = 0; round < ROUNDS; round++) {
        unsigned i = interval_pick(MANY);
        if (in_tree[i]) {
            interval_remove(&t, &nodes[i]);
        } else {
            nodes[i].start = interval_pick(200);
            nodes[i].end = nodes[i].start + 1 + interval_pick(interval_pick(4) ? 5 : 120);
            interval_insert(&t, &nodes[i]);
        }
        in_tree[i] = !in_tree[i];
        if (round % 16 == 0)
            EXPECT(interval_is_consistent(t.root) >= 0);
        uintptr_t start = interval_pick(220);
        interval_compare(&t, start, start + 1 + interval_pick(interval_pick(2) ? 4 : 100));
    }
    for (int i = 0; i < MANY; i++) {
        if (in_tree[i])
            interval_remove(&t, &nodes[i]);
        in_tree[i] = false;
        EXPECT(interval_is_consistent(t.root) >= 0);
    }
    EXPECT(t.root == NULL);
}

static void in_order(void)
{
    struct interval_tree t = {NULL};
    for (int i = 0; i < MANY; i++) {
        nodes[i].start = (uintptr_t)i * 2;
        nodes[i].end = (uintptr_t)i * 2 + 1;
        interval_insert(&t, &nodes[i]);
    }
    int depth = interval_is_consistent(t.root);
    EXPECT(depth >= 9 && depth <= 11); /* log2(300) is 8.2 */
    EXPECT(interval_find_covering(&t, 2 * MANY - 2, 2 * MANY - 1) == &nodes[MANY - 1]);
    EXPECT(interval_overlap(&t, 1, 2) == NULL); /* between two */
    EXPECT(interval_overlap(&t, 2 * MANY, 2 * MANY + 9) == NULL);
    for (int i = 0; i < MANY; i += 2) /* from the middle outwards */
        interval_remove(&t, &nodes[i]);
    EXPECT(interval_is_consistent(t.root) >= 8);
}

int main(void)
{
    TEST_RUN(random_ranges);
    TEST_RUN(in_order);
    return test_result();
}
