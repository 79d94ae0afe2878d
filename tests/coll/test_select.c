/* test_select.c: the selection table: every rule names an algorithm, every call finds one that can do it, and
 * FISHPLATE_COLL is obeyed where possible and understood or refused with a hint.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../unit/test.h"
#include "base/err.h"
#include "base/tunable.h"
#include "coll/select.h"

static int set(const char *text)
{
    tunable_set(tunables_find("COLL"), text, SOURCE_PROGRAM);
    return coll_select_open();
}

static const char *chosen(struct coll_shape shape, uint64_t bytes, bool one_node, bool blocking)
{
    struct coll_where where = {.bytes = bytes, .one_node = one_node};
    return coll_select(&shape, &where, blocking).algorithm->name;
}

static void rules_name_algorithms(void)
{
    for (size_t i = 0; i < coll_rules_count(); i++) {
        const struct coll_rule *rule = coll_rules_get(i);
        EXPECT(algorithm_find(rule->kind, rule->algorithm) != NULL);
    }
}

static void every_call_finds_one(void)
{
    static const uint64_t sizes[] = {0, 1, 100, 5000, 20000, 100000, 1000000, 100000000, 1ull << 40};
    set("");
    for (int kind = 0; kind < COLL_KINDS; kind++)
        for (int size = 1; size <= 70; size++)
            for (int flags = 0; flags < 64; flags++) {
                struct coll_shape shape = {.kind = (enum coll_kind)kind, .size = size, .count = 1};
                shape.commutative = flags & 1;
                shape.adjacent = flags & 2;
                shape.remote_size = flags & 4 ? 3 : 0;
                if (shape.remote_size && kind >= COLL_SCAN)
                    continue;
                for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                    struct coll_where where = {.bytes = sizes[i], .one_node = flags & 8, .nodes = flags & 32};
                    struct coll_choice c = coll_select(&shape, &where, flags & 16);
                    EXPECT(algorithm_fits(c.algorithm, &shape));
                    EXPECT(!(c.algorithm->needs & NEED_NODE) || (where.one_node && (flags & 16)));
                    EXPECT(!(c.algorithm->needs & NEED_NODES) || where.nodes);
                }
            }
}

static void override_wins_where_it_fits(void)
{
    struct coll_shape shape = {.kind = COLL_ALLREDUCE, .size = 4, .count = 1, .commutative = true};
    EXPECT_EQ(set("allreduce=ring,bcast=chain:segment=32k:window=3"), 0);
    EXPECT_STR(chosen(shape, 8, true, true), "ring");
    shape.commutative = false;
    EXPECT(strcmp(chosen(shape, 8, true, true), "ring") != 0);
    shape = (struct coll_shape){.kind = COLL_BCAST, .size = 4, .count = 1};
    struct coll_where where = {.bytes = 8};
    struct coll_choice c = coll_select(&shape, &where, true);
    EXPECT_STR(c.algorithm->name, "chain");
    EXPECT_EQ(c.segment, 32768);
    EXPECT_EQ(c.window, 3);
    EXPECT_EQ(set("barrier=mcs:release=3"), 0);
    shape.kind = COLL_BARRIER;
    c = coll_select(&shape, &where, true);
    EXPECT_STR(c.algorithm->name, "mcs");
    EXPECT_EQ(c.parameter[0], 0);
    EXPECT_EQ(c.parameter[1], 3);
    EXPECT(!c.by_node);
    EXPECT_EQ(set("barrier=node+fway:f=3"), 0);
    c = coll_select(&shape, &where, false);
    EXPECT_STR(c.algorithm->name, "fway");
    EXPECT(c.by_node);
    EXPECT_EQ(c.parameter[0], 3);
    EXPECT_EQ(set("deterministic,barrier=rdma"), 0);
    shape = (struct coll_shape){
        .kind = COLL_ALLREDUCE, .size = 4, .count = 1, .commutative = true, .adjacent = true};
    EXPECT_STR(chosen(shape, 8, true, true), chosen(shape, 8, false, false));
    shape.kind = COLL_BCAST;
    EXPECT_STR(chosen(shape, 8, true, true), "shared");
    EXPECT_EQ(set("determinist"), MPI_ERR_ARG);
    EXPECT_EQ(set("barrier=node+rdma"), MPI_ERR_ARG);
    EXPECT_EQ(set("bcast=node+chain"), MPI_ERR_ARG);
    shape.kind = COLL_BCAST;
    EXPECT_EQ(set(""), 0);
    EXPECT_STR(chosen(shape, 8, true, true), "shared");
    EXPECT_STR(chosen(shape, 8, true, false), "binomial");
}

static void mistakes_are_named(void)
{
    static const struct {
        const char *text, *hint;
    } mistakes[] = {
        {"alreduce=ring", "did you mean 'allreduce'"},
        {"allreduce=rng", "did you mean 'ring'"},
        {"allreduce", "operation=algorithm"},
        {"allreduce=ring:segment", "needs a number"},
        {"allreduce=ring:segment=x", "needs a number"},
        {"allreduce=ring:segmnt=1", "no option"},
        {"barrier=nway:f=2", "the options are segment, window, n"},
        {"barrier=nway:n=0", "from 1 to 64"},
        {"barrier=mcs:release=65", "from 1 to 64"},
        {"barrier=zzzzzzzz", "it has"},
    };
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        EXPECT_EQ(set(mistakes[i].text), MPI_ERR_ARG);
        if (!strstr(err_detail(MPI_ERR_ARG), mistakes[i].hint)) {
            printf("'%s' gives: %s\n", mistakes[i].text, err_detail(MPI_ERR_ARG));
            test_failures++;
        }
    }
}

int main(void)
{
    TEST_RUN(rules_name_algorithms);
    TEST_RUN(every_call_finds_one);
    TEST_RUN(override_wins_where_it_fits);
    TEST_RUN(mistakes_are_named);
    return test_result();
}
