/* test_papers.c: what `fishplate-lab papers` reads, judges and compares, without running anything.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab/papers/papers.h"
#include "test.h"

static struct value *parse(const char *text)
{
    return value_parse(text, strlen(text));
}

static void test_json(void)
{
    struct value *v = parse(" {\"a\": [1, -2.5e1, \"x\\u00e9\\n\\\"\", true, null], \"b\": {\"c\": 7}} ");
    EXPECT(v != NULL);
    const struct value *a = value_first(v, "a");
    EXPECT(a->number == 1 && a->next->number == -25);
    EXPECT(strcmp(a->next->next->text, "x\xc3\xa9\n\"") == 0);
    EXPECT(a->next->next->next->kind == VALUE_BOOL);
    EXPECT(value_number(value_get(v, "b"), "c", 0) == 7 && value_number(v, "nothing", 3) == 3);
    EXPECT(strcmp(value_text(v, "b"), "") == 0);
    value_free(v);
    static const char *const wrong[] = {"",     "{",      "[1,]",      "{\"a\" 1}", "\"x",
                                        "1 2",  "nul",    "\"\\u12\"", "[1e999]",   "{\"a\":1,}",
                                        "\"\\", "{a: 1}", "\"a\nb\""};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        v = parse(wrong[i]);
        if (v)
            printf("accepted: %s\n", wrong[i]);
        EXPECT(v == NULL);
    }
    char deep[200];
    memset(deep, '[', sizeof(deep));
    EXPECT(value_parse(deep, sizeof(deep)) == NULL);
}

/* Values from the usual tables of Student's distribution. */
static void test_student(void)
{
    EXPECT(fabs(student_p(12.706, 1) - 0.05) < 1e-4);
    EXPECT(fabs(student_p(2.776, 4) - 0.05) < 1e-4);
    EXPECT(fabs(student_p(-4.604, 4) - 0.01) < 1e-4);
    EXPECT(fabs(student_p(1.960, 1e7) - 0.05) < 1e-4);
    EXPECT(fabs(student_p(0, 5) - 1) < 1e-9);
}

static void test_welch(void)
{
    double a[] = {1, 1.1, 0.9}, b[] = {1.02, 0.95, 1.06}, c[] = {2, 2.1, 1.9}, ratio, p;
    EXPECT(welch(a, 3, b, 3, &ratio, &p) && p > 0.5);
    EXPECT(welch(a, 3, c, 3, &ratio, &p) && p < 0.001 && fabs(ratio - exp(1)) < 1e-9);
    EXPECT(!welch(a, 1, c, 3, &ratio, &p));
    EXPECT(welch(a, 1 + 1, a, 2, &ratio, &p) && fabs(p - 1) < 1e-9);
}

static const char document[] = "{\"tables\": [{\"title\": \"Other\", \"columns\": [\"x\"], \"rows\": [[1]]},"
                               "{\"title\": \"Latency [1]\", \"adapter\": \"hca0\", \"columns\": [\"bytes\", "
                               "\"ring, us\", \"send, us\"],"
                               "\"rows\": [[4, 3, 4], [64, 4, \"-\"], [256, 6, 5]]}]}";

static struct table *table_of(struct entry *e)
{
    const struct source s = {.name = "s", .variants = {{0, "x", "x"}}};
    struct value *v = parse(document);
    const struct value *const documents[] = {v};
    struct table *t = table_take(e, &s, documents);
    value_free(v);
    return t;
}

static void test_judge(void)
{
    struct entry e = {.take = TAKE_TABLE,
                      .what = "Latency",
                      .title = "t",
                      .better = BETTER_LOWER,
                      .checks = {{CHECK_GAIN, "ring", "send", 24, 0}},
                      .why = "Because."};
    struct finding f;
    struct table *t = table_of(&e);
    EXPECT(t && t->rows == 3 && t->columns == 3 && strcmp(t->over, "hca0") == 0);
    EXPECT(isnan(table_cell(t, 1, 2)->value) && table_cell(t, 1, 2)->samples == 0);
    judge(&e, t, false, &f);
    EXPECT(f.verdict == VERDICT_AGREES && strstr(f.text, "25 %") && strstr(f.text, "at 4 "));
    e.checks[0].want = 80; /* a quarter is less than half of it */
    judge(&e, t, true, &f);
    EXPECT(f.verdict == VERDICT_DIFFERS && strstr(f.text, "Because.") && strstr(f.text, "Other programs"));
    e.checks[1] = (struct check){CHECK_GROWS, "ring", 0, 1.5, 0};
    judge(&e, t, false, &f);
    EXPECT(f.verdict == VERDICT_PARTLY);
    e.checks[1] = (struct check){CHECK_BEST, "ring", 0, 0, 0}; /* not in the last row */
    judge(&e, t, false, &f);
    EXPECT(f.verdict == VERDICT_DIFFERS);
    e.checks[0] = (struct check){CHECK_BESIDE, "ring", 0, 6.8, "us"};
    e.checks[1] = (struct check){CHECK_NONE, 0, 0, 0, 0};
    judge(&e, t, false, &f);
    EXPECT(f.verdict == VERDICT_BESIDE && strstr(f.text, "3 us here, 6.8 us in the paper"));
    e.checks[0] = (struct check){CHECK_ALIKE, "nothing", "ring", 10, 0};
    judge(&e, t, false, &f);
    EXPECT(f.verdict == VERDICT_DIFFERS && strstr(f.text, "no column \"nothing\""));
    table_free(t);
}

static void test_rounds(void)
{
    struct entry e = {.take = TAKE_TABLE, .what = "Latency", .title = "t"};
    struct table *t = table_of(&e), *more = table_of(&e);
    table_set(more, 0, 1, 2);
    table_merge(t, more);
    table_settle(t, BETTER_LOWER);
    EXPECT(table_cell(t, 0, 1)->samples == 2 && table_cell(t, 0, 1)->value == 2);
    table_settle(t, BETTER_HIGHER);
    EXPECT(table_cell(t, 0, 1)->value == 3);
    table_settle(t, BETTER_NEITHER);
    EXPECT(table_cell(t, 0, 1)->value == 2.5);
    table_free(t);
    table_free(more);
    e.what = "Nothing";
    EXPECT(table_of(&e) == NULL);
}

int main(void)
{
    TEST_RUN(test_json);
    TEST_RUN(test_student);
    TEST_RUN(test_welch);
    TEST_RUN(test_judge);
    TEST_RUN(test_rounds);
    return test_result();
}
