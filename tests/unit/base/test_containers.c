/* test_containers.c: the list, the pool and the copy of short data, which every message path uses.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/copy.h"
#include "base/list.h"
#include "base/pool.h"
#include "test.h"

struct item {
    int value;
    struct list link;
};

static void expect_values(struct list *head, const char *digits)
{
    char found[32] = "", *p = found;
    list_foreach(pos, head) *p++ = (char)('0' + list_entry(pos, struct item, link)->value);
    EXPECT_STR(found, digits);
    p = found;
    for (struct list *pos = head->prev; pos != head; pos = pos->prev)
        *p++ = (char)('0' + list_entry(pos, struct item, link)->value);
    for (size_t i = 0, n = strlen(digits); i < n; i++)
        EXPECT_EQ(found[i], digits[n - 1 - i]);
}

static void test_lists(void)
{
    struct list head;
    struct item items[6];
    list_init(&head);
    EXPECT(list_empty(&head) && list_first(&head) == NULL);
    for (int i = 0; i < 6; i++)
        items[i].value = i;
    list_append(&head, &items[1].link);
    list_append(&head, &items[2].link);
    list_prepend(&head, &items[0].link);
    list_prepend(&items[2].link, &items[3].link); /* inserts after an element of the list */
    expect_values(&head, "0123");
    list_remove(&items[1].link);
    list_remove(&items[1].link); /* removes a node that is in no list: no effect */
    expect_values(&head, "023");
    list_foreach_safe(pos, after, &head) list_remove(pos);
    EXPECT(list_empty(&head));
}

static void test_pools(void)
{
    enum { N = 1000 };
    struct pool pool;
    void *all[N];
    pool_init(&pool, 72, 16);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            all[i] = pool_get(&pool);
            EXPECT(all[i] && (uintptr_t)all[i] % CACHE_LINE == 0);
            memset(all[i], i & 255, 72);
        }
        for (int i = 0; i < N; i++) /* no item overlaps another */
            EXPECT(((unsigned char *)all[i])[0] == (i & 255) && ((unsigned char *)all[i])[71] == (i & 255));
        for (int i = 0; i < N; i++)
            pool_put(&pool, all[(i * 7 + round) % N]);
    }
    void *last = all[(999 * 7 + 2) % N];
    EXPECT(pool_get(&pool) == last); /* the item freed last is returned first */
    pool_destroy(&pool);
    pool_destroy(&pool);
    EXPECT(pool.free == NULL);
}

static void test_copies_of_short_data(void)
{
    char from[128], to[128];
    for (int i = 0; i < 128; i++)
        from[i] = (char)(i + 1);
    for (size_t len = 0; len <= 80; len++) {
        memset(to, 0, sizeof(to));
        copy_bytes(to + 3, from, len);
        EXPECT(memcmp(to + 3, from, len) == 0);
        EXPECT(to[2] == 0 && to[3 + len] == 0);
    }
}

int main(void)
{
    TEST_RUN(test_lists);
    TEST_RUN(test_pools);
    TEST_RUN(test_copies_of_short_data);
    return test_result();
}
