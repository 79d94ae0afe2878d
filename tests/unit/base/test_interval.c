/* test_interval.c: compares the interval tree with a linear search of an array under random insertions and
 * removals; and checks the balance of the tree if ranges are inserted in order.
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

static unsigned random_below(unsigned n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

/* Returns the height of the subtree, or -1 if order, maximum end or balance is wrong anywhere in it. */
static int check_and_get_height(const struct interval *n)
{
    if (!n)
        return 0;
    int l = check_and_get_height(n->left), r = check_and_get_height(n->right);
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

static void compare_overlaps(const struct interval_tree *t, uintptr_t start, uintptr_t end)
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
static void test_random_ranges(void)
{
    struct interval_tree t = {NULL};
    for (int round = 0; round < ROUNDS; round++) {
        unsigned i = random_below(MANY);
        if (in_tree[i]) {
            interval_remove(&t, &nodes[i]);
        } else {
            nodes[i].start = random_below(200);
            nodes[i].end = nodes[i].start + 1 + random_below(random_below(4) ? 5 : 120);
            interval_insert(&t, &nodes[i]);
        }
        in_tree[i] = !in_tree[i];
        if (round % 16 == 0)
            EXPECT(check_and_get_height(t.root) >= 0);
        uintptr_t start = random_below(220);
        compare_overlaps(&t, start, start + 1 + random_below(random_below(2) ? 4 : 100));
    }
    for (int i = 0; i < MANY; i++) {
        if (in_tree[i])
            interval_remove(&t, &nodes[i]);
        in_tree[i] = false;
        EXPECT(check_and_get_height(t.root) >= 0);
    }
    EXPECT(t.root == NULL);
}

static void test_ranges_in_order(void)
{
    struct interval_tree t = {NULL};
    for (int i = 0; i < MANY; i++) {
        nodes[i].start = (uintptr_t)i * 2;
        nodes[i].end = (uintptr_t)i * 2 + 1;
        interval_insert(&t, &nodes[i]);
    }
    int depth = check_and_get_height(t.root);
    EXPECT(depth >= 9 && depth <= 11); /* log2(300) is 8.2 */
    EXPECT(interval_find_covering(&t, 2 * MANY - 2, 2 * MANY - 1) == &nodes[MANY - 1]);
    EXPECT(interval_overlap(&t, 1, 2) == NULL); /* the gap between two ranges */
    EXPECT(interval_overlap(&t, 2 * MANY, 2 * MANY + 9) == NULL);
    for (int i = 0; i < MANY; i += 2)
        interval_remove(&t, &nodes[i]);
    EXPECT(check_and_get_height(t.root) >= 8);
}

int main(void)
{
    TEST_RUN(test_random_ranges);
    TEST_RUN(test_ranges_in_order);
    return test_result();
}
