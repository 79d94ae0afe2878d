/*
 * What travels between mpiexec and its agents: a plan survives the journey, and damaged bytes are refused.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "plan.h"
#include "test.h"

static char *argv[] = {"program", "an argument", "", NULL};
static char *env[] = {"A=1", "B=two words", NULL};
static struct app apps[] = {{argv, env, "/somewhere"}, {argv + 1, env + 2, "/"}};
static struct place ranks[] = {{3, 0, 1, 0, 2, -1, STDIN_NULL}, {4, 1, 1, 1, 2, 7, STDIN_PIPE}};
static const struct plan plan = {.job = "job",
                                 .host = "host",
                                 .node_map = "(vector,(0,1,5))",
                                 .size = 5,
                                 .universe = 8,
                                 .bind = BIND_CORE,
                                 .scatter_sockets = true,
                                 .napps = 2,
                                 .nranks = 2,
                                 .apps = apps,
                                 .ranks = ranks};

static void round_trip(void)
{
    struct buf bytes = {0};
    plan_encode(&plan, &bytes);
    struct plan *p = plan_decode(buf_head(&bytes), buf_size(&bytes));
    EXPECT(p != NULL);
    if (p) {
        EXPECT_STR(p->job, "job");
        EXPECT_STR(p->host, "host");
        EXPECT_STR(p->node_map, plan.node_map);
        EXPECT_EQ(p->universe, 8);
        EXPECT(p->scatter_sockets && !p->verbose);
        EXPECT_STR(p->apps[0].argv[1], "an argument");
        EXPECT_STR(p->apps[0].argv[2], "");
        EXPECT(p->apps[0].argv[3] == NULL);
        EXPECT_STR(p->apps[0].env[1], "B=two words");
        EXPECT_STR(p->apps[1].wdir, "/");
        EXPECT_EQ(p->ranks[0].vnode, -1);
        EXPECT_EQ(p->ranks[1].vnode, 7);
        EXPECT_EQ(p->ranks[1].stdin_from, STDIN_PIPE);
        plan_free(p);
    }
    buf_free(&bytes);
}

static void short_bytes(void)
{
    struct buf bytes = {0};
    plan_encode(&plan, &bytes);
    for (size_t len = 0; len < buf_size(&bytes); len++) {
        struct plan *p = plan_decode(buf_head(&bytes), len);
        EXPECT(p == NULL);
        plan_free(p);
    }
    buf_free(&bytes);
}

static void damaged_bytes(void)
{
    srand(11);
    for (int round = 0; round < 20000; round++) {
        struct buf bytes = {0};
        plan_encode(&plan, &bytes);
        for (int n = 1 + rand() % 4; n > 0; n--)
            buf_head(&bytes)[(size_t)rand() % buf_size(&bytes)] = (char)(rand() % 2 ? rand() : 0);
        plan_free(plan_decode(buf_head(&bytes), buf_size(&bytes)));
        buf_free(&bytes);
    }
}

int main(void)
{
    TEST_RUN(round_trip);
    TEST_RUN(short_bytes);
    TEST_RUN(damaged_bytes);
    return test_result();
}
