/* test_verdict.c: decoding of the verdict that the root of another job sends after authentication: numbers
 * out of range are refused.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dyn/verdict.h"

#include <mpi.h>
#include <stdlib.h>

#include "test.h"

#define CARDS 3

/* Decodes from a buffer of exactly the packed length, so that a sanitizer detects a read past the end. */
static int pack_and_decode(const struct verdict *v, uint32_t cards, bool with_group)
{
    const size_t len = sizeof(*v) + cards * sizeof(struct net_card);
    char *bytes = calloc(1, len);
    struct verdict out;
    const struct net_card *at = NULL;
    memcpy(bytes, v, sizeof(*v));
    const int rc = verdict_decode(bytes, len, with_group, &out, &at);
    if (rc == 0) {
        EXPECT((const char *)at == bytes + sizeof(*v));
        EXPECT(!with_group || (out.root >= 0 && (uint32_t)out.root < out.count));
        EXPECT(out.tag >= 0 && out.tag <= 0x3fffffff);
    }
    free(bytes);
    return rc;
}

static void test_valid_verdicts(void)
{
    EXPECT_EQ(pack_and_decode(&(struct verdict){.count = CARDS, .root = CARDS - 1, .tag = 5}, CARDS, true),
              0);
    EXPECT_EQ(pack_and_decode(&(struct verdict){.count = CARDS, .tag = -1}, CARDS, true), 0);
    EXPECT_EQ(pack_and_decode(&(struct verdict){.count = 0}, 0, false), 0);
    EXPECT_EQ(pack_and_decode(&(struct verdict){.error = MPI_ERR_SPAWN}, 0, true), MPI_ERR_SPAWN);
}

static void test_root_out_of_range(void)
{
    static const int32_t roots[] = {-1, CARDS, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 4; i++)
        EXPECT_EQ(pack_and_decode(&(struct verdict){.count = CARDS, .root = roots[i]}, CARDS, true),
                  MPI_ERR_PORT);
    EXPECT_EQ(pack_and_decode(&(struct verdict){.count = 0}, 0, true), MPI_ERR_PORT);
}

static void test_lengths(void)
{
    struct verdict v = {.count = CARDS}, out;
    const struct net_card *at;
    EXPECT_EQ(pack_and_decode(&v, CARDS - 1, true), MPI_ERR_PORT);
    EXPECT_EQ(pack_and_decode(&v, CARDS + 1, true), MPI_ERR_PORT);
    EXPECT_EQ(pack_and_decode(&v, CARDS, false), MPI_ERR_PORT);
    v.count = UINT32_MAX;
    EXPECT_EQ(pack_and_decode(&v, CARDS, true), MPI_ERR_PORT);
    for (size_t len = 0; len < sizeof(v); len++)
        EXPECT_EQ(verdict_decode(&v, len, true, &out, &at), MPI_ERR_PORT);
}

static void test_invalid_error_codes(void)
{
    EXPECT_EQ(pack_and_decode(&(struct verdict){.error = -5}, 0, true), MPI_ERR_PORT);
    EXPECT_EQ(pack_and_decode(&(struct verdict){.error = INT32_MAX}, 0, true), MPI_ERR_PORT);
    struct verdict v = {.error = MPI_ERR_SPAWN};
    memset(v.sentence, '%', sizeof(v.sentence)); /* no terminating zero */
    EXPECT_EQ(pack_and_decode(&v, 0, true), MPI_ERR_SPAWN);
}

int main(void)
{
    TEST_RUN(test_valid_verdicts);
    TEST_RUN(test_root_out_of_range);
    TEST_RUN(test_lengths);
    TEST_RUN(test_invalid_error_codes);
    return test_result();
}
