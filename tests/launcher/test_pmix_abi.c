/* test_pmix_abi.c: compares the binary interface declared in src/boot/pmix_abi.h with PMIx's own header.
 * Without that header the test is skipped.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "boot/pmix_abi.h"

#include "test.h"

#if __has_include(<pmix.h>)
#include <pmix.h>

#define EXPECT_SAME_MEMBER(ours, theirs, member)                                \
    do {                                                                        \
        EXPECT_EQ(offsetof(struct ours, member), offsetof(theirs, member));     \
        EXPECT_EQ(sizeof((struct ours){0}.member), sizeof((theirs){0}.member)); \
    } while (0)

static void test_layouts(void)
{
    EXPECT_EQ(sizeof(struct px_proc), sizeof(pmix_proc_t));
    EXPECT_SAME_MEMBER(px_proc, pmix_proc_t, nspace);
    EXPECT_SAME_MEMBER(px_proc, pmix_proc_t, rank);
    EXPECT_EQ(sizeof(struct px_value), sizeof(pmix_value_t));
    EXPECT_SAME_MEMBER(px_value, pmix_value_t, type);
    EXPECT_SAME_MEMBER(px_value, pmix_value_t, data.flag);
    EXPECT_SAME_MEMBER(px_value, pmix_value_t, data.string);
    EXPECT_SAME_MEMBER(px_value, pmix_value_t, data.size);
    EXPECT_SAME_MEMBER(px_value, pmix_value_t, data.integer);
    EXPECT_SAME_MEMBER(px_value, pmix_value_t, data.int32);
    EXPECT_SAME_MEMBER(px_value, pmix_value_t, data.int64);
    EXPECT_SAME_MEMBER(px_value, pmix_value_t, data.uint);
    EXPECT_SAME_MEMBER(px_value, pmix_value_t, data.uint16);
    EXPECT_SAME_MEMBER(px_value, pmix_value_t, data.uint32);
    EXPECT_SAME_MEMBER(px_value, pmix_value_t, data.uint64);
    EXPECT_SAME_MEMBER(px_value, pmix_value_t, data.bo.bytes);
    EXPECT_SAME_MEMBER(px_value, pmix_value_t, data.bo.size);
    EXPECT_EQ(sizeof(struct px_info), sizeof(pmix_info_t));
    EXPECT_SAME_MEMBER(px_info, pmix_info_t, key);
    EXPECT_SAME_MEMBER(px_info, pmix_info_t, flags);
    EXPECT_SAME_MEMBER(px_info, pmix_info_t, value);
    EXPECT_EQ(sizeof(struct px_app), sizeof(pmix_app_t));
    EXPECT_SAME_MEMBER(px_app, pmix_app_t, cmd);
    EXPECT_SAME_MEMBER(px_app, pmix_app_t, argv);
    EXPECT_SAME_MEMBER(px_app, pmix_app_t, env);
    EXPECT_SAME_MEMBER(px_app, pmix_app_t, cwd);
    EXPECT_SAME_MEMBER(px_app, pmix_app_t, maxprocs);
    EXPECT_SAME_MEMBER(px_app, pmix_app_t, info);
    EXPECT_SAME_MEMBER(px_app, pmix_app_t, ninfo);
    EXPECT_EQ(sizeof(pmix_scope_t), sizeof(uint8_t));
    EXPECT_EQ(sizeof(pmix_rank_t), sizeof(uint32_t));
    EXPECT_EQ(sizeof(pmix_status_t), sizeof(int));
}

static void test_numbers(void)
{
    EXPECT_EQ(PX_SUCCESS, PMIX_SUCCESS);
    EXPECT_EQ(PX_ERR_NOT_FOUND, PMIX_ERR_NOT_FOUND);
    EXPECT_EQ(PX_ERR_NOT_SUPPORTED, PMIX_ERR_NOT_SUPPORTED);
    EXPECT_EQ(PX_ERR_LOST_CONNECTION, PMIX_ERR_LOST_CONNECTION);
    EXPECT_EQ(PX_OPERATION_SUCCEEDED, PMIX_OPERATION_SUCCEEDED);
    EXPECT_EQ(PX_SCOPE_GLOBAL, PMIX_GLOBAL);
    EXPECT_EQ(PX_RANK_WILDCARD, PMIX_RANK_WILDCARD);
    EXPECT_EQ(PX_BOOL, PMIX_BOOL);
    EXPECT_EQ(PX_STRING, PMIX_STRING);
    EXPECT_EQ(PX_SIZE, PMIX_SIZE);
    EXPECT_EQ(PX_INT, PMIX_INT);
    EXPECT_EQ(PX_INT32, PMIX_INT32);
    EXPECT_EQ(PX_INT64, PMIX_INT64);
    EXPECT_EQ(PX_UINT, PMIX_UINT);
    EXPECT_EQ(PX_UINT16, PMIX_UINT16);
    EXPECT_EQ(PX_UINT32, PMIX_UINT32);
    EXPECT_EQ(PX_UINT64, PMIX_UINT64);
    EXPECT_EQ(PX_BYTE_OBJECT, PMIX_BYTE_OBJECT);
    EXPECT_EQ(PX_PROC_RANK, PMIX_PROC_RANK);
}

static void test_names(void)
{
    EXPECT_STR(PX_JOB_SIZE, PMIX_JOB_SIZE);
    EXPECT_STR(PX_UNIV_SIZE, PMIX_UNIV_SIZE);
    EXPECT_STR(PX_NUM_NODES, PMIX_NUM_NODES);
    EXPECT_STR(PX_PACKED_MAP, PMIX_ANL_MAP);
    EXPECT_STR(PX_HOSTNAME, PMIX_HOSTNAME);
    EXPECT_STR(PX_APPNUM, PMIX_APPNUM);
    EXPECT_STR(PX_HOST, PMIX_HOST);
    EXPECT_STR(PX_COLLECT, PMIX_COLLECT_DATA);
    EXPECT_STR(PX_OPTIONAL, PMIX_OPTIONAL);
    EXPECT_STR(PX_IMMEDIATE, PMIX_IMMEDIATE);
}

int main(void)
{
    TEST_RUN(test_layouts);
    TEST_RUN(test_numbers);
    TEST_RUN(test_names);
    return test_result();
}

#else

int main(void)
{
    printf("skipped: pmix.h (package libpmix-dev) is not installed\n");
    return 77;
}

#endif
