/* test_ids.c: cookies that peers know requests by: live ones find their object, old and invented ones find
 * nothing, also after much reuse.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/ids.h"

#include "test.h"

enum { N = 1000 };

static void live_ones(void)
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

static void stale_ones(void)
{
    struct ids ids = {0};
    int object;
    uint64_t old[N];
    for (int i = 0; i < N; i++) { /* the same slot again and again */
        old[i] = ids_add(&ids, &object);
        ids_remove(&ids, old[i]);
        ids_remove(&ids, old[i]); /* twice does no harm */
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

static void invented_ones(void)
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
    TEST_RUN(live_ones);
    TEST_RUN(stale_ones);
    TEST_RUN(invented_ones);
    return test_result();
}
