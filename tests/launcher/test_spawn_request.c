/* test_spawn_request.c: parsing of spawn requests of ranks: no value of one request appears in the next one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "job/spawn_request.h"

#include <stdlib.h>

#include "test.h"
#include "core/util.h"

static char *lines;

static const char *parse_text(const char *text, struct spawn_request *r)
{
    lines = xstrdup(text);
    return spawn_request_parse(lines, r);
}

static void free_request(struct spawn_request *r)
{
    spawn_request_free(r);
    memset(lines, '#', strlen(lines));
    free(lines);
}

static void test_complete_request(void)
{
    struct spawn_request r;
    EXPECT(parse_text(
               "mcmd=spawn\nnprocs=2\nexecname=./a\nargcnt=1\narg1=-x\ninfo_num=2\ninfo_key_0=env\n"
               "info_val_0=NAME=value\ninfo_key_1=host\ninfo_val_1=far:2\npreput_num=1\npreput_key_0=port\n"
               "preput_val_0=here\nmcmd=spawn\nnprocs=1\nexecname=b\n",
               &r) == NULL);
    EXPECT_EQ(r.n, 2);
    EXPECT_EQ(spawn_request_ranks(&r), 3);
    EXPECT_STR(r.programs[0].command, "./a");
    EXPECT_STR(r.programs[0].host, "far:2");
    EXPECT_STR(r.programs[0].args.v[0], "-x");
    EXPECT_STR(r.programs[0].env.v[0], "NAME=value");
    EXPECT_STR(r.preputs.v[0], "port=here");
    EXPECT(r.programs[1].host == NULL && r.programs[1].env.n == 0);
    free_request(&r);
}

static void test_escaped_values(void)
{
    struct spawn_request r;
    EXPECT(parse_text(
               "escaped=1\nmcmd=spawn\nnprocs=1\nexecname=a%20b\ninfo_key_0=env\ninfo_val_0=A=1%0AB=2%0A=3\n",
               &r) == NULL);
    EXPECT_STR(r.programs[0].command, "a b");
    EXPECT_EQ(r.programs[0].env.n, 2);
    EXPECT_STR(r.programs[0].env.v[1], "B=2");
    free_request(&r);
}

/* A value without its key is ignored, also if an earlier request or program had a key. */
static void test_values_without_keys(void)
{
    struct spawn_request r;
    EXPECT(parse_text("mcmd=spawn\nnprocs=1\nexecname=a\ninfo_key_0=env\ninfo_val_0=A=1\npreput_key_0=port\n"
                      "preput_val_0=first\n",
                      &r) == NULL);
    free_request(&r);
    EXPECT(parse_text("mcmd=spawn\nnprocs=1\nexecname=a\ninfo_val_0=A=1\npreput_val_0=second\n"
                      "info_key_0=wdir\nmcmd=spawn\nnprocs=1\nexecname=b\ninfo_val_0=/tmp\n",
                      &r) == NULL);
    EXPECT_EQ(r.preputs.n, 0);
    EXPECT_EQ(r.programs[0].env.n, 0);
    EXPECT(r.programs[1].wdir == NULL);
    free_request(&r);
}

static void test_incomplete_requests(void)
{
    static const char *const bad[] = {"",
                                      "nprocs=1\nexecname=a\n",
                                      "mcmd=spawn\nnprocs=1\n",
                                      "mcmd=spawn\nexecname=a\n",
                                      "mcmd=spawn\nnprocs=0\nexecname=a\n",
                                      "mcmd=spawn\nnprocs=1\nexecname=\n"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct spawn_request r;
        EXPECT(parse_text(bad[i], &r) != NULL);
        free_request(&r);
    }
}

int main(void)
{
    TEST_RUN(test_complete_request);
    TEST_RUN(test_escaped_values);
    TEST_RUN(test_values_without_keys);
    TEST_RUN(test_incomplete_requests);
    return test_result();
}
