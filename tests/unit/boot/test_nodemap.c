/* test_nodemap.c: node maps: every layout can be written and read back, texts of other launchers are
 * understood, and damaged text is refused.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "boot/nodemap.h"
#include "test.h"

#define MAX 64

static void expect_map(const char *text, uint32_t size, const char *wanted)
{
    uint32_t node_of[MAX], nnodes;
    char got[MAX + 1] = "";
    if (!nodemap_parse(text, size, node_of, &nnodes)) {
        EXPECT_STR("refused", wanted);
        return;
    }
    for (uint32_t r = 0; r < size; r++)
        got[r] = (char)('0' + node_of[r]);
    EXPECT_STR(got, wanted);
}

static void test_known_texts(void)
{
    expect_map("(vector,(0,1,1))", 5, "00000"); /* Hydra on one host */
    expect_map("(vector,(0,2,2))", 8, "00110011");
    expect_map("(vector,(0,4,4))", 16, "0000111122223333");
    expect_map("(vector,(0,2,1),(0,1,2))", 4, "0100");
    expect_map("(vector,(5,2,1))", 4, "0101");
    expect_map("(vector,(3,1,2),(1,1,2))", 4, "0011");
    expect_map("(vector, (0, 2, 1))", 2, "refused");
    expect_map("(vector,( 0 , 2 , 1 ))", 2, "01");
}

static void test_damaged_texts(void)
{
    static const char *const texts[] = {"",
                                        "(vector)",
                                        "(vector,)",
                                        "(vector,(0,1))",
                                        "(vector,(0,0,1))",
                                        "(vector,(0,1,0))",
                                        "(vector,(0,1,1)",
                                        "(vector,(0,1,1)))",
                                        "(vector,(0,1,1),)",
                                        "(vector,(-1,1,1))",
                                        "(vector,(0,99999999999,1))",
                                        "(matrix,(0,1,1))"};
    uint32_t node_of[MAX], nnodes;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        EXPECT(!nodemap_parse(texts[i], 4, node_of, &nnodes));
}

/* Numbers nodes in order of first use, as the launcher does. */
static void make_random_map(uint32_t size, uint32_t *node_of)
{
    uint32_t used = 0;
    for (uint32_t r = 0; r < size; r++) {
        node_of[r] = r && rand() % 3 ? node_of[r - 1] + (rand() % 4 == 0) : (uint32_t)rand() % (used + 1);
        if (node_of[r] > used)
            node_of[r] = used;
        if (node_of[r] == used)
            used++;
    }
}

static void test_round_trips(void)
{
    srand(3);
    for (int round = 0; round < 20000; round++) {
        uint32_t node_of[MAX], back[MAX], nnodes, size = 1 + (uint32_t)rand() % MAX;
        make_random_map(size, node_of);
        char *text = nodemap_format(node_of, size);
        EXPECT(text && nodemap_parse(text, size, back, &nnodes));
        EXPECT(memcmp(node_of, back, size * sizeof(*back)) == 0);
        free(text);
    }
    uint32_t cyclic[12];
    for (uint32_t r = 0; r < 12; r++)
        cyclic[r] = r % 3;
    char *text = nodemap_format(cyclic, 12);
    EXPECT_STR(text, "(vector,(0,3,1))");
    free(text);
}

static void test_fuzz(void)
{
    static const char seed[] = "(vector,(0,2,4),(2,1,3))";
    srand(9);
    for (int round = 0; round < 20000; round++) {
        char text[sizeof(seed)];
        uint32_t node_of[MAX], nnodes;
        memcpy(text, seed, sizeof(seed));
        for (int n = 1 + rand() % 4; n > 0; n--)
            text[(size_t)rand() % (sizeof(seed) - 1)] = "(),0129 v"[rand() % 9];
        if (nodemap_parse(text, MAX, node_of, &nnodes))
            for (uint32_t r = 0; r < MAX; r++)
                EXPECT(node_of[r] < nnodes);
    }
}

int main(void)
{
    TEST_RUN(test_known_texts);
    TEST_RUN(test_damaged_texts);
    TEST_RUN(test_round_trips);
    TEST_RUN(test_fuzz);
    return test_result();
}
