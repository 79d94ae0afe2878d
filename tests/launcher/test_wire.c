/* test_wire.c: messages between mpiexec and its agents: an encoded plan decodes to the same plan, and
 * damaged bytes are refused.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "remote/link.h"
#include "plan/plan.h"
#include "remote/proof.h"
#include "plan/slurm.h"
#include "test.h"
#include "remote/tree.h"

static char *argv[] = {"program", "an argument", "", NULL};
static char *env[] = {"A=1", "B=two words", NULL};
static struct app apps[] = {{argv, env, "/somewhere", 0}, {argv + 1, env + 2, "/", 1}};
static struct place ranks[] = {{3, 0, 1, 0, 2, -1, STDIN_NULL}, {4, 1, 1, 1, 2, 7, STDIN_PIPE}};
static const struct plan plan = {.job = "job",
                                 .host = "host",
                                 .node_map = "(vector,(0,1,5))",
                                 .size = 5,
                                 .universe = 8,
                                 .bind = BIND_CORE,
                                 .scatter_sockets = true,
                                 .cpus_per_rank = 3,
                                 .napps = 2,
                                 .nranks = 2,
                                 .apps = apps,
                                 .ranks = ranks};

static void test_plan_round_trip(void)
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
        EXPECT_EQ(p->apps[1].number, 1);
        EXPECT_EQ(p->cpus_per_rank, 3);
        EXPECT_EQ(p->ranks[0].vnode, -1);
        EXPECT_EQ(p->ranks[1].vnode, 7);
        EXPECT_EQ(p->ranks[1].stdin_from, STDIN_PIPE);
        plan_free(p);
    }
    buf_free(&bytes);
}

static void test_truncated_plan(void)
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

static void test_damaged_plan(void)
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

static uint32_t numbers[] = {2, 5, 6};
static char *names[] = {"two", "five", "six"};
static const struct tree_spec spec = {.shell = {"ssh", "my shell"},
                                      .fanout = 4,
                                      .timeout = 60,
                                      .network = "10.0.0.0/8",
                                      .n = 3,
                                      .numbers = numbers,
                                      .names = names};

static void test_trees(void)
{
    struct buf bytes = {0};
    tree_encode(&spec, 1, 2, &bytes);
    struct tree_spec *s = tree_decode(buf_head(&bytes), buf_size(&bytes));
    EXPECT(s != NULL);
    if (s) {
        EXPECT_STR(s->shell.command, "my shell");
        EXPECT_STR(s->network, "10.0.0.0/8");
        EXPECT_EQ(s->n, 2);
        EXPECT_EQ(s->numbers[1], 6);
        EXPECT_STR(s->names[0], "five");
        tree_free(s);
    }
    for (size_t len = 0; len < buf_size(&bytes); len++)
        EXPECT(tree_decode(buf_head(&bytes), len) == NULL);
    buf_free(&bytes);
    srand(12);
    for (int round = 0; round < 20000; round++) {
        tree_encode(&spec, 0, 3, &bytes);
        for (int n = 1 + rand() % 4; n > 0; n--)
            buf_head(&bytes)[(size_t)rand() % buf_size(&bytes)] = (char)(rand() % 2 ? rand() : 0);
        tree_free(tree_decode(buf_head(&bytes), buf_size(&bytes)));
        buf_free(&bytes);
    }
}

/* Checks host lists against the output of scontrol show hostnames. */
static void test_host_lists(void)
{
    static const struct {
        const char *list, *names;
    } good[] = {
        {"n0", "n0"},
        {"n[0-2]", "n0 n1 n2"},
        {"n[08-11,3],login", "n08 n09 n10 n11 n3 login"},
        {"a[1-2]b[01-02]x,c", "a1b01x a1b02x a2b01x a2b02x c"},
    };
    static const char *const bad[] = {"",   "n[", "n[]",           "n[2-1]",           "n[a]",
                                      "n]", "-x", "n[1-99999999]", "a[1-999]b[1-999]", "a;b"};
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        struct strings out = {0};
        char text[256] = "";
        EXPECT(slurm_expand(good[i].list, SLURM_HOSTS_MAX, &out));
        for (unsigned k = 0; k < out.n; k++)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", k ? " " : "", out.v[k]);
        EXPECT_STR(text, good[i].names);
        strings_free(&out);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct strings out = {0};
        EXPECT(!slurm_expand(bad[i], SLURM_HOSTS_MAX, &out));
        strings_free(&out);
    }
}

/* A frame is returned when it is complete; an invalid frame is refused as soon as its head has arrived. */
static void test_frames(void)
{
    struct buf bytes = {0};
    struct frame_head h;
    link_append_frame(&bytes, &(struct frame_head){FRAME_PMI, 3, 7, 5}, "hello");
    for (size_t n = 0; n < buf_size(&bytes); n++)
        EXPECT_EQ(link_parse(buf_head(&bytes), n, 5, &h), LINK_MORE);
    EXPECT_EQ(link_parse(buf_head(&bytes), buf_size(&bytes), 5, &h), LINK_FRAME);
    EXPECT(h.type == FRAME_PMI && h.host == 3 && h.rank == 7 && h.len == 5);
    EXPECT_EQ(link_parse(buf_head(&bytes), FRAME_HEADER, 4, &h), LINK_BAD);
    buf_head(&bytes)[7] = FRAME_LAST + 1;
    EXPECT_EQ(link_parse(buf_head(&bytes), FRAME_HEADER, 5, &h), LINK_BAD);
    buf_head(&bytes)[7] = 0;
    EXPECT_EQ(link_parse(buf_head(&bytes), FRAME_HEADER, 5, &h), LINK_BAD);
    buf_free(&bytes);
}

static void make_hello_frames(void)
{
    struct hello h = {{1, 2, 3}, "17", "0.1.0"}, back;
    struct challenge c = {{4}, {5}}, c_back;
    struct buf bytes = {0};
    proof_hello_encode(&h, &bytes);
    EXPECT(proof_hello_decode(buf_head(&bytes), buf_size(&bytes), &back));
    EXPECT(memcmp(&h, &back, sizeof(h)) == 0);
    for (size_t n = 0; n < buf_size(&bytes); n++)
        EXPECT(!proof_hello_decode(buf_head(&bytes), n, &back));
    buf_add(&bytes, "x", 1);
    EXPECT(!proof_hello_decode(buf_head(&bytes), buf_size(&bytes), &back));
    buf_free(&bytes);
    proof_challenge_encode(&c, &bytes);
    EXPECT(proof_challenge_decode(buf_head(&bytes), buf_size(&bytes), &c_back));
    EXPECT(memcmp(&c, &c_back, sizeof(c)) == 0);
    EXPECT(!proof_challenge_decode(buf_head(&bytes), buf_size(&bytes) - 1, &c_back));
    buf_free(&bytes);
}

/* The proofs depend on all exchanged data, on the cookie, and on the side. */
static void test_sessions(void)
{
    const char *cookie = "0123456789abcdef0123456789abcdef", *other = "0123456789abcdef0123456789abcdee";
    struct hello h = {{1}, "1", "0.1.0"}, changed = {{1}, "10", ".1.0"};
    uint8_t nonce[NONCE_SIZE] = {9}, nonce2[NONCE_SIZE] = {8};
    struct session s, t;
    proof_compute_session(cookie, &h, nonce, &s);
    EXPECT(memcmp(s.agent_code, s.mpiexec_code, SHA256_SIZE) != 0 && memcmp(s.up, s.down, SHA256_SIZE) != 0);
    proof_compute_session(other, &h, nonce, &t);
    EXPECT(memcmp(s.agent_code, t.agent_code, SHA256_SIZE) != 0);
    proof_compute_session(cookie, &changed, nonce, &t);
    EXPECT(memcmp(s.agent_code, t.agent_code, SHA256_SIZE) != 0);
    proof_compute_session(cookie, &h, nonce2, &t);
    EXPECT(memcmp(s.down, t.down, SHA256_SIZE) != 0);
}

static void test_seals(void)
{
    uint8_t key[SHA256_SIZE] = {7}, code[SEAL_SIZE];
    struct seal from, to;
    seal_init(&from, key);
    seal_init(&to, key);
    for (int i = 0; i < 3; i++) {
        seal_compute_next(&from, "head", 4, "data", 4, code);
        EXPECT(seal_check(&to, "head", 4, "data", 4, code));
    }
    seal_compute_next(&from, "head", 4, "data", 4, code);
    struct seal at = to;
    EXPECT(!seal_check(&at, "head", 4, "date", 4, code));
    at = to;
    EXPECT(!seal_check(&at, "heat", 4, "data", 4, code));
    at = to;
    EXPECT(seal_check(&at, "head", 4, "data", 4, code) && !seal_check(&at, "head", 4, "data", 4, code));
}

int main(void)
{
    TEST_RUN(test_plan_round_trip);
    TEST_RUN(test_truncated_plan);
    TEST_RUN(test_damaged_plan);
    TEST_RUN(test_trees);
    TEST_RUN(test_host_lists);
    TEST_RUN(test_frames);
    TEST_RUN(make_hello_frames);
    TEST_RUN(test_sessions);
    TEST_RUN(test_seals);
    return test_result();
}
