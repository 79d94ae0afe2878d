/* test_spawn_request.c: requests to spawn, as a rank may send them: nothing of one request is found in the next.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "job/spawn_request.h"

#include <stdlib.h>

#include "test.h"
#include "core/util.h"

static char *lines;

static const char *spawn_request_spawn_request_parse(const char *text, struct spawn_request *r)
{
    lines = xstrdup(text);
    return spawn_request_parse(lines, r);
}

static void spawn_request_drop(struct spawn_request *r)
{
    spawn_request_free(r);
    memset(lines, '#', strlen(lines));
    free(lines);
}

static void whole_request(void)
{
    struct spawn_request r;
    EXPECT(spawn_request_spawn_request_parse(
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
    spawn_request_drop(&r);
}

static void escaped_values(void)
{
    struct spawn_request r;
    EXPECT(spawn_request_spawn_request_parse(
               "escaped=1\nmcmd=spawn\nnprocs=1\nexecname=a%20b\ninfo_key_0=env\ninfo_val_0=A=1%0AB=2%0A=3\n",
               &r) == NULL);
    EXPECT_STR(r.programs[0].command, "a b");
    EXPECT_EQ(r.programs[0].env.n, 2);
    EXPECT_STR(r.programs[0].env.v[1], "B=2");
    spawn_request_drop(&r);
}

/* A value without its key means nothing, whatever keys an earlier request or program had. */
static void values_without_keys(void)
{
    struct spawn_request r;
    EXPECT(spawn_request_spawn_request_parse(
               "mcmd=spawn\nnprocs=1\nexecname=a\ninfo_key_0=env\ninfo_val_0=A=1\npreput_key_0=port\n"
               "preput_val_0=first\n",
               &r) == NULL);
    spawn_request_drop(&r);
    EXPECT(spawn_request_spawn_request_parse(
               "mcmd=spawn\nnprocs=1\nexecname=a\ninfo_val_0=A=1\npreput_val_0=second\n"
               "info_key_0=wdir\nmcmd=spawn\nnprocs=1\nexecname=b\ninfo_val_0=/tmp\n",
               &r) == NULL);
    EXPECT_EQ(r.preputs.n, 0);
    EXPECT_EQ(r.programs[0].env.n, 0);
    EXPECT(r.programs[1].wdir == NULL);
    spawn_request_drop(&r);
}

static void incomplete_requests(void)
{
    static const char *const bad[] = {"",
                                      "nprocs=1\nexecname=a\n",
                                      "mcmd=spawn\nnprocs=1\n",
                                      "mcmd=spawn\nexecname=a\n",
                                      "mcmd=spawn\nnprocs=0\nexecname=a\n",
                                      "mcmd=spawn\nnprocs=1\nexecname=\n"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct spawn_request r;
        EXPECT(spawn_request_spawn_request_parse(bad[i], &r) != NULL);
        spawn_request_drop(&r);
    }
}

int main(void)
{
    TEST_RUN(whole_request);
    TEST_RUN(escaped_values);
    TEST_RUN(values_without_keys);
    TEST_RUN(incomplete_requests);
    return test_result();
}
