/* test_ids.c: the cookies by which peers name requests: a live cookie finds its object; an old or invented
 * cookie finds nothing, also after slots were reused many times.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/ids.h"

#include "test.h"

enum { N = 1000 };

static void test_live_cookies(void)
{
    struct ids ids = {0};
    int objects[N];
    uint64_t id[N];
    for (int i = 0; i < N; i++) {
        id[i] = ids_add(&ids, &objects[i]);
        EXPECT(id[i] != 0);
    }
    for (int i = 0; i < N; i++)
        EXPECT(ids_find(&ids, id[i]) == &objects[i]);
    for (int i = 0; i < N; i += 2)
        ids_remove(&ids, id[i]);
    for (int i = 0; i < N; i++)
        EXPECT(ids_find(&ids, id[i]) == (i % 2 ? &objects[i] : NULL));
    ids_close(&ids);
}

static void test_stale_cookies(void)
{
    struct ids ids = {0};
    int object;
    uint64_t old[N];
    for (int i = 0; i < N; i++) { /* reuses the same slot */
        old[i] = ids_add(&ids, &object);
        ids_remove(&ids, old[i]);
        ids_remove(&ids, old[i]); /* removing a stale cookie has no effect */
    }
    uint64_t now = ids_add(&ids, &object);
    for (int i = 0; i < N; i++) {
        EXPECT(old[i] != now);
        EXPECT(ids_find(&ids, old[i]) == NULL);
        ids_remove(&ids, old[i]);
    }
    EXPECT(ids_find(&ids, now) == &object);
    ids_close(&ids);
}

static void test_random_cookies(void)
{
    struct ids ids = {0};
    int object;
    EXPECT(ids_find(&ids, 0) == NULL);
    EXPECT(ids_find(&ids, 1) == NULL);
    uint64_t id = ids_add(&ids, &object);
    EXPECT(ids_find(&ids, 0) == NULL);
    EXPECT(ids_find(&ids, UINT64_MAX) == NULL);
    for (uint64_t bit = 1; bit; bit <<= 1)
        EXPECT(ids_find(&ids, id ^ bit) == NULL);
    ids_close(&ids);
}

int main(void)
{
    TEST_RUN(test_live_cookies);
    TEST_RUN(test_stale_cookies);
    TEST_RUN(test_random_cookies);
    return test_result();
}
