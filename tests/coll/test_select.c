/* test_select.c: the selection of algorithms: every rule names an existing algorithm, every call finds an
 * algorithm that supports it, and FISHPLATE_COLL is applied if possible, or refused with a hint.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "../unit/test.h"
#include "base/err.h"
#include "base/tunable.h"
#include "coll/select/select.h"
#include "coll/select/tuning.h"

static int set_override(const char *text)
{
    const int rc = tunable_set(tunables_find("COLL"), text, SOURCE_PROGRAM);
    return rc ? rc : coll_select_open();
}

static const char *choose_algorithm(struct coll_shape shape, uint64_t bytes, bool one_node, bool blocking)
{
    struct coll_where where = {.bytes = bytes, .one_node = one_node};
    return coll_select(&shape, &where, blocking).algorithm->name;
}

static void test_rules_name_algorithms(void)
{
    for (size_t i = 0; i < coll_rules_count(); i++) {
        const struct coll_rule *rule = coll_rules_get(i);
        EXPECT(algorithm_find(rule->kind, rule->algorithm) != NULL);
    }
}

static void test_every_call_finds_algorithm(void)
{
    static const uint64_t sizes[] = {0, 1, 100, 5000, 20000, 100000, 1000000, 100000000, 1ull << 40};
    set_override("");
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

/* Rules for numbers of ranks that were not measured come from the simulator: they select no algorithm with
 * as many steps as ranks. */
static void test_rules_for_ten_thousand_ranks(void)
{
    static const struct {
        enum coll_kind kind;
        uint64_t bytes;
        const char *few, *many;
    } calls[] = {
        {COLL_BARRIER, 0, "dissemination", "nway"},
        {COLL_BCAST, 1 << 20, "scatter_ring", "binomial"},
        {COLL_BCAST, 64 << 20, "chain", "scatter_ring"},
        {COLL_REDUCE, 64 << 20, "chain", "rabenseifner"},
        {COLL_ALLREDUCE, 4 << 20, "ring", "rabenseifner"},
        {COLL_SCAN, 1 << 20, "linear", "recursive_doubling"},
        {COLL_EXSCAN, 1 << 20, "linear", "recursive_doubling"},
    };
    set_override("");
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        struct coll_shape shape = {.kind = calls[i].kind, .size = 8, .count = 1 << 20, .commutative = true};
        EXPECT_STR(choose_algorithm(shape, calls[i].bytes, false, true), calls[i].few);
        shape.size = 10000;
        EXPECT_STR(choose_algorithm(shape, calls[i].bytes, false, true), calls[i].many);
    }
}

static void test_override_applies_if_supported(void)
{
    struct coll_shape shape = {.kind = COLL_ALLREDUCE, .size = 4, .count = 1, .commutative = true};
    EXPECT_EQ(set_override("allreduce=ring,bcast=chain:segment=32k:window=3"), 0);
    EXPECT_STR(choose_algorithm(shape, 8, true, true), "ring");
    shape.commutative = false;
    EXPECT(strcmp(choose_algorithm(shape, 8, true, true), "ring") != 0);
    shape = (struct coll_shape){.kind = COLL_BCAST, .size = 4, .count = 1};
    struct coll_where where = {.bytes = 8};
    struct coll_choice c = coll_select(&shape, &where, true);
    EXPECT_STR(c.algorithm->name, "chain");
    EXPECT_EQ(c.segment, 32768);
    EXPECT_EQ(c.window, 3);
    EXPECT_EQ(set_override("barrier=mcs:release=3"), 0);
    shape.kind = COLL_BARRIER;
    c = coll_select(&shape, &where, true);
    EXPECT_STR(c.algorithm->name, "mcs");
    EXPECT_EQ(c.parameter[0], 0);
    EXPECT_EQ(c.parameter[1], 3);
    EXPECT(!c.by_node);
    EXPECT_EQ(set_override("barrier=node+fway:f=3"), 0);
    c = coll_select(&shape, &where, false);
    EXPECT_STR(c.algorithm->name, "fway");
    EXPECT(c.by_node);
    EXPECT_EQ(c.parameter[0], 3);
    EXPECT_EQ(set_override("deterministic,barrier=rdma"), 0);
    shape = (struct coll_shape){
        .kind = COLL_ALLREDUCE, .size = 4, .count = 1, .commutative = true, .adjacent = true};
    EXPECT_STR(choose_algorithm(shape, 8, true, true), choose_algorithm(shape, 8, false, false));
    shape.kind = COLL_BCAST;
    EXPECT_STR(choose_algorithm(shape, 8, true, true), "shared");
    EXPECT_EQ(set_override("determinist"), MPI_ERR_ARG);
    EXPECT_EQ(set_override("barrier=node+rdma"), MPI_ERR_ARG);
    EXPECT_EQ(set_override("bcast=node+chain"), MPI_ERR_ARG);
    shape.kind = COLL_BCAST;
    EXPECT_EQ(set_override(""), 0);
    EXPECT_STR(choose_algorithm(shape, 8, true, true), "shared");
    EXPECT_STR(choose_algorithm(shape, 8, true, false), "binomial");
}

static void test_mistakes_are_named(void)
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
        EXPECT_EQ(set_override(mistakes[i].text), MPI_ERR_ARG);
        if (!strstr(err_detail(MPI_ERR_ARG), mistakes[i].hint)) {
            printf("'%s' gives: %s\n", mistakes[i].text, err_detail(MPI_ERR_ARG));
            test_failures++;
        }
    }
}

/* Writes a file of rules and selects it; `path` gets its name. */
static int set_rule_file(const char *text, const char *more, char path[64])
{
    char setting[128];
    snprintf(path, 64, "/tmp/fishplate-test-select-XXXXXX");
    FILE *f = fdopen(mkstemp(path), "w");
    fputs(text, f);
    fclose(f);
    snprintf(setting, sizeof(setting), "@%s%s", path, more);
    int rc = set_override(setting);
    unlink(path);
    return rc;
}

static const char *choose_on_nodes(int kind, int ranks, int nodes, uint64_t bytes)
{
    const struct coll_shape shape = {
        .kind = (enum coll_kind)kind, .size = ranks, .count = 1, .commutative = true, .adjacent = true};
    const struct coll_where where = {.bytes = bytes, .nodes = nodes > 1, .node_count = nodes};
    return coll_select(&shape, &where, true).algorithm->name;
}

static void test_rule_file(void)
{
    char path[64];
    EXPECT_EQ(set_rule_file("# a remark\n\n"
                            "allreduce ranks=4-8 nodes=2 bytes=1k-16k ring:segment=32k # fast\n"
                            "allreduce ranks=3 rabenseifner\r\n"
                            "bcast\tbytes=64k- chain:segment=1m:window=3\n"
                            "barrier nodes=2- nway:n=3",
                            "", path),
              0);
    EXPECT_EQ(coll_site_count(), 4);
    EXPECT_EQ(coll_site_get(1)->line, 4);
    EXPECT_STR(choose_on_nodes(COLL_ALLREDUCE, 4, 2, 1024), "ring");
    EXPECT_STR(choose_on_nodes(COLL_ALLREDUCE, 8, 2, 16384), "ring");
    EXPECT_STR(choose_on_nodes(COLL_ALLREDUCE, 8, 2, 16385), "rabenseifner"); /* from the built-in rules */
    EXPECT_STR(choose_on_nodes(COLL_ALLREDUCE, 8, 2, 1023), "recursive_doubling");
    EXPECT_STR(choose_on_nodes(COLL_ALLREDUCE, 9, 2, 1024), "recursive_doubling");
    EXPECT_STR(choose_on_nodes(COLL_ALLREDUCE, 8, 3, 1024), "recursive_doubling");
    /* The number of nodes is unknown. */
    EXPECT_STR(choose_on_nodes(COLL_ALLREDUCE, 8, 0, 1024), "recursive_doubling");
    EXPECT_STR(choose_on_nodes(COLL_ALLREDUCE, 3, 0, 8), "rabenseifner");
    EXPECT_STR(choose_on_nodes(COLL_BCAST, 3, 1, 1 << 20), "chain");
    EXPECT_STR(choose_on_nodes(COLL_BARRIER, 8, 2, 0), "nway");
    /* coll_select_next returns the next larger number of bytes at which the choice may change. */
    EXPECT_EQ(coll_select_next(COLL_ALLREDUCE, 5), 1024);
    EXPECT_EQ(coll_select_next(COLL_ALLREDUCE, 1024), 16385);

    /* A named algorithm overrides the file; deterministic reductions do not depend on nodes. */
    const char *rule = "allreduce nodes=2 ring\n";
    EXPECT_EQ(set_rule_file(rule, ",allreduce=reduce_bcast", path), 0);
    EXPECT_STR(choose_on_nodes(COLL_ALLREDUCE, 4, 2, 8), "reduce_bcast");
    EXPECT_EQ(set_rule_file(rule, ",deterministic", path), 0);
    EXPECT_STR(choose_on_nodes(COLL_ALLREDUCE, 4, 2, 8), choose_on_nodes(COLL_ALLREDUCE, 4, 4, 8));
    EXPECT_EQ(set_override(""), 0);
    EXPECT_EQ(coll_site_count(), 0);
}

static void test_bad_rule_files(void)
{
    static const struct {
        const char *text, *expected;
    } bad[] = {
        {"# fine\nalreduce ring\n", "line 2 of "},
        {"alreduce ring\n", "did you mean 'allreduce'"},
        {"\n\nallreduce ranks=8-4 ring", "line 3 of "},
        {"allreduce ranks=8-4 ring", "ranks= needs a number or a range"},
        {"allreduce ranks= ring", "ranks= needs a number or a range"},
        {"allreduce ranks=-4 ring", "ranks= needs a number or a range"},
        {"allreduce bytes=99999999999999999999 ring", "bytes= needs a number or a range"},
        {"allreduce ranks=4", "no algorithm for allreduce"},
        {"allreduce ring ring", "follows the algorithm"},
        {"allreduce rnk=4 ring", "line 1 of "},
        {"barrier nway:n=0", "from 1 to 64"},
    };
    char path[64];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        EXPECT_EQ(set_rule_file(bad[i].text, "", path), MPI_ERR_ARG);
        const char *message = err_detail(MPI_ERR_ARG);
        if (!strstr(message, bad[i].expected) || !strstr(message, path)) {
            printf("'%s' gives: %s\n", bad[i].text, message);
            test_failures++;
        }
    }
    EXPECT_EQ(set_override("@/nowhere/rules"), MPI_ERR_ARG);
    EXPECT(strstr(err_detail(MPI_ERR_ARG), "cannot read /nowhere/rules: No such file") != NULL);
    EXPECT_EQ(set_override(""), 0);
}

/* Rules must not change within a size class, since a class is measured as a whole. */
static void test_size_classes_match_rules(void)
{
    EXPECT_EQ(set_override(""), 0);
    for (int kind = COLL_BCAST; kind <= COLL_ALLREDUCE; kind++)
        for (int class = 0; class < TUNING_CLASSES; class ++) {
            const uint64_t first = class ? tuning_limit(class - 1) + 1 : 1;
            EXPECT(coll_select_next((enum coll_kind)kind, first) > tuning_limit(class));
            EXPECT(tuning_class(first) == class && tuning_class(tuning_limit(class)) == class);
        }
    EXPECT(tuning_class(4096) != tuning_class(4095) && tuning_class(4096) != tuning_class(4097));
    EXPECT_EQ(tuning_class(0), -1);
    EXPECT_EQ(tuning_class(tuning_limit(TUNING_CLASSES - 1) + 1), -1);
}

/* Algorithms with one message per rank are not tried for a thousand ranks, for which a tree has ten
 * rounds. */
static void test_slow_algorithms_are_not_tried(void)
{
    struct coll_shape shape = {
        .kind = COLL_BCAST, .size = 1024, .count = 1000, .commutative = true, .adjacent = true};
    const struct coll_choice rule = {.algorithm = algorithm_find(COLL_BCAST, "binomial")};
    struct coll_candidate list[TUNE_CANDIDATES];
    int n = tuning_candidates(&shape, 1000, false, &rule, TUNE_CANDIDATES, list);
    EXPECT(n >= 1 && list[0].choice.algorithm == rule.algorithm);
    for (int i = 1; i < n; i++)
        EXPECT(list[i].choice.algorithm != algorithm_find(COLL_BCAST, "linear"));
    shape.size = 4;
    n = tuning_candidates(&shape, 1000, false, &rule, TUNE_CANDIDATES, list);
    EXPECT(n > 2 && list[0].choice.algorithm == rule.algorithm);
    for (int i = 2; i < n; i++)
        EXPECT(list[i].predicted >= list[i - 1].predicted);
    EXPECT_EQ(tuning_candidates(&shape, 1000, false, &rule, 2, list), 2);
}

int main(void)
{
    TEST_RUN(test_rules_name_algorithms);
    TEST_RUN(test_every_call_finds_algorithm);
    TEST_RUN(test_rules_for_ten_thousand_ranks);
    TEST_RUN(test_override_applies_if_supported);
    TEST_RUN(test_mistakes_are_named);
    TEST_RUN(test_rule_file);
    TEST_RUN(test_bad_rule_files);
    TEST_RUN(test_size_classes_match_rules);
    TEST_RUN(test_slow_algorithms_are_not_tried);
    return test_result();
}
