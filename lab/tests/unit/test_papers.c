/* test_papers.c: parsing, verdicts and comparisons of `fishplate-lab papers`, without running its commands.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lab/papers/load.h"
#include "lab/papers/papers.h"
#include "test.h"

static struct value *papers_parse(const char *text)
{
    return value_parse(text, strlen(text));
}

static void test_json(void)
{
    struct value *v =
        papers_parse(" {\"a\": [1, -2.5e1, \"x\\u00e9\\n\\\"\", true, null], \"b\": {\"c\": 7}} ");
    EXPECT(v != NULL);
    const struct value *a = value_first_element(v, "a");
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
        v = papers_parse(wrong[i]);
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
    EXPECT(fabs(student_two_sided_p(12.706, 1) - 0.05) < 1e-4);
    EXPECT(fabs(student_two_sided_p(2.776, 4) - 0.05) < 1e-4);
    EXPECT(fabs(student_two_sided_p(-4.604, 4) - 0.01) < 1e-4);
    EXPECT(fabs(student_two_sided_p(1.960, 1e7) - 0.05) < 1e-4);
    EXPECT(fabs(student_two_sided_p(0, 5) - 1) < 1e-9);
}

static void test_welch(void)
{
    double a[] = {1, 1.1, 0.9}, b[] = {1.02, 0.95, 1.06}, c[] = {2, 2.1, 1.9}, ratio, p;
    EXPECT(welch_test(a, 3, b, 3, &ratio, &p) && p > 0.5);
    EXPECT(welch_test(a, 3, c, 3, &ratio, &p) && p < 0.001 && fabs(ratio - exp(1)) < 1e-9);
    EXPECT(!welch_test(a, 1, c, 3, &ratio, &p));
    EXPECT(welch_test(a, 1 + 1, a, 2, &ratio, &p) && fabs(p - 1) < 1e-9);
}

static const char document[] = "{\"tables\": [{\"title\": \"Other\", \"columns\": [\"x\"], \"rows\": [[1]]},"
                               "{\"title\": \"Latency [1]\", \"adapter\": \"hca0\", \"columns\": [\"bytes\", "
                               "\"ring, us\", \"send, us\"],"
                               "\"rows\": [[4, 3, 4], [64, 4, \"-\"], [256, 6, 5]]}]}";

static struct table *entry_read_table(struct entry *e)
{
    const struct source s = {.name = "s", .variants = {{0, "x", "x"}}};
    struct value *v = papers_parse(document);
    const struct value *const documents[] = {v};
    struct table *t = table_collect(e, &s, documents);
    value_free(v);
    return t;
}

static const struct conditions idle = {.is_timed = true};

static void test_judge(void)
{
    struct entry e = {.take = TAKE_TABLE,
                      .selector = "Latency",
                      .title = "t",
                      .better = BETTER_LOWER,
                      .checks = {{CHECK_GAIN, "ring", "send", 24, 0, 0, 64}},
                      .why = "Because."};
    struct finding f;
    struct table *t = entry_read_table(&e);
    EXPECT(t && t->rows == 3 && t->columns == 3 && strcmp(t->over, "hca0") == 0);
    EXPECT(isnan(table_cell(t, 1, 2)->value) && table_cell(t, 1, 2)->samples == 0);
    judge_entry(&e, t, &idle, &f);
    EXPECT(f.verdict == VERDICT_AGREES && strstr(f.text, "25 %") && strstr(f.text, "(4: 25;"));
    /* all rows count: the ring is slower at 256, and the median of 25 % less and 20 % more is no effect */
    e.checks[0].to = 0;
    judge_entry(&e, t, &idle, &f);
    EXPECT(f.verdict == VERDICT_DIFFERS && strstr(f.text, "256: -20"));
    /* less than half of the paper's gain */
    e.checks[0] = (struct check){CHECK_GAIN, "ring", "send", 60, 0, 0, 64};
    judge_entry(&e, t, &idle, &f);
    EXPECT(f.verdict == VERDICT_DIFFERS && strstr(f.text, "Because."));
    e.checks[0].want = 10; /* more than twice the paper's gain */
    judge_entry(&e, t, &idle, &f);
    EXPECT(f.verdict == VERDICT_DIFFERS && strstr(f.text, "more than the paper's effect"));
    e.checks[0].kind = CHECK_BETTER; /* CHECK_BETTER has no upper bound */
    judge_entry(&e, t, &idle, &f);
    EXPECT(f.verdict == VERDICT_AGREES);
    e.checks[1] = (struct check){CHECK_GROWS, "ring", 0, 3, 0};
    judge_entry(&e, t, &idle, &f);
    EXPECT(f.verdict == VERDICT_PARTLY);
    e.checks[0] = (struct check){CHECK_PRINT_ONLY, "ring", 0, 6.8, "us"};
    e.checks[1] = (struct check){CHECK_NONE, 0, 0, 0, 0};
    judge_entry(&e, t, &idle, &f);
    EXPECT(f.verdict == VERDICT_NOT_COMPARABLE && strstr(f.text, "3 us here, 6.8 us in the paper"));
    e.checks[0] = (struct check){CHECK_ALIKE, "nothing", "ring", 10, 0};
    judge_entry(&e, t, &idle, &f);
    EXPECT(f.verdict == VERDICT_DIFFERS && strstr(f.text, "no column \"nothing\""));
    e.checks[0] = (struct check){CHECK_GAIN, "ring", "send", 24, 0, 512, 0}; /* no rows from 512 on */
    judge_entry(&e, t, &idle, &f);
    EXPECT(f.verdict == VERDICT_UNJUDGED);
    table_free(t);
}

/* The best column, and a column that stays: both are judged in both directions. */
static void test_best_and_constant(void)
{
    struct entry e = {.take = TAKE_TABLE, .selector = "Latency", .title = "t", .better = BETTER_LOWER};
    struct finding f;
    struct table *t = entry_read_table(&e);
    e.checks[0] = (struct check){CHECK_BEST, "ring", 0, 0, 0, 256, 0};
    judge_entry(&e, t, &idle, &f);
    EXPECT(f.verdict == VERDICT_DIFFERS && strstr(f.text, "send, us is the best at 256"));
    /* 2 % slower than the best is not the best */
    table_set_number(t, 2, 1, 5.1);
    judge_entry(&e, t, &idle, &f);
    EXPECT(f.verdict == VERDICT_DIFFERS && strstr(f.text, "send, us is the best at 256"));
    e.checks[0].kind = CHECK_WORST;
    judge_entry(&e, t, &idle, &f);
    EXPECT(f.verdict == VERDICT_AGREES);
    static const double values[][3] = {{4, 4.1, 4.2}, {4, 4.1, 6}, {4, 4.1, 2}, {4, 2, 4}};
    for (int i = 0; i < 4; i++) {
        for (int r = 0; r < 3; r++)
            table_set_number(t, r, 1, values[i][r]);
        e.checks[0] = (struct check){CHECK_STAYS, "ring", 0, 10, 0};
        judge_entry(&e, t, &idle, &f);
        EXPECT(f.verdict == (i == 0 ? VERDICT_AGREES : VERDICT_DIFFERS));
    }
    e.checks[0] = (struct check){CHECK_PEAK, "ring", 0, 64, 0};
    judge_entry(&e, t, &idle, &f);
    EXPECT(f.verdict == VERDICT_AGREES);
    e.checks[0].want = 256;
    judge_entry(&e, t, &idle, &f);
    EXPECT(f.verdict == VERDICT_DIFFERS && strstr(f.text, "best at 64 (paper: 256)"));
    table_free(t);
}

/* Times that other programs disturbed, quick simulations and fitted models must never count as agreement. */
static void test_never_agrees(void)
{
    struct entry e = {.take = TAKE_TABLE,
                      .selector = "Latency",
                      .title = "t",
                      .better = BETTER_LOWER,
                      .checks = {{CHECK_GAIN, "ring", "send", 24, 0, 0, 64}}};
    struct conditions c = {.is_timed = true, .others = 0.3};
    struct finding f;
    struct table *t = entry_read_table(&e), *more = entry_read_table(&e);
    judge_entry(&e, t, &c, &f);
    EXPECT(f.verdict == VERDICT_UNRELIABLE && strstr(f.text, "30 %") && strstr(f.text, "25 %"));
    c.is_timed = false; /* counts of bytes do not depend on other programs */
    judge_entry(&e, t, &c, &f);
    EXPECT(f.verdict == VERDICT_AGREES);
    c = (struct conditions){.is_timed = true, .is_too_brief = true};
    judge_entry(&e, t, &c, &f);
    EXPECT(f.verdict == VERDICT_UNJUDGED && strstr(f.text, "--quick"));
    e.fitted = "a was fitted.";
    judge_entry(&e, t, &idle, &f);
    EXPECT(f.verdict == VERDICT_FITTED && strstr(f.text, "a was fitted."));
    /* one of two checks holds: partly, and the text states that this proves nothing */
    e.checks[1] = (struct check){CHECK_GAIN, "ring", "send", 60, 0, 0, 64};
    judge_entry(&e, t, &idle, &f);
    EXPECT(f.verdict == VERDICT_PARTLY && strstr(f.text, "No evidence: a was fitted."));
    e.checks[0].want = 60; /* nothing holds */
    judge_entry(&e, t, &idle, &f);
    EXPECT(f.verdict == VERDICT_DIFFERS && !strstr(f.text, "No evidence"));
    e.checks[0].want = 24;
    e.checks[1] = (struct check){CHECK_NONE, 0, 0, 0, 0};
    e.fitted = NULL;
    /* a second round in which the ring is slower */
    table_set_number(more, 0, 1, 4.4);
    table_merge(t, more);
    table_compute_values(t, BETTER_LOWER);
    judge_entry(&e, t, &idle, &f);
    EXPECT(f.verdict == VERDICT_UNRELIABLE && strstr(f.text, "contradict"));
    table_free(t);
    table_free(more);
}

static void test_load(void)
{
    struct load a, b;
    EXPECT(load_parse("cpu  100 0 50 1000 10 1 2 3 0 0\n", 100, &a));
    EXPECT(fabs(a.busy - 1.56) < 1e-9 && fabs(a.all - 11.66) < 1e-9);
    EXPECT(!load_parse("cpu\n", 100, &a) && !load_parse("intr 1 2 3 4", 100, &a));
    a = (struct load){.busy = 10, .all = 100, .own = 5};
    b = (struct load){.busy = 17, .all = 110, .own = 9};
    EXPECT(fabs(load_share_of_others(&a, &b) - 0.3) < 1e-9);
    b.own = 15; /* getrusage may count the time of this process before /proc/stat does */
    EXPECT(load_share_of_others(&a, &b) == 0 && load_share_of_others(&a, &a) == 0);
}

/* ---- every figure and table of the papers has an entry, or a reason why it has none ---- */

enum { KINDS = 2, CHAPTERS = 10, NUMBERS = 48 };

struct seen {
    bool of[PAPERS][KINDS][CHAPTERS][NUMBERS];
};

/* Records the figures and tables that a text such as "Figures 2.1 to 2.3, 8.1" names; numbers without a
 * chapter have chapter 0. */
static void add_figures(struct seen *s, int paper, const char *text)
{
    int kind = -1, chapter = 0, number = 0;
    bool range = false;
    while (*text) {
        char word[32];
        int a, b, used = 0;
        if (sscanf(text, "%31[^ ,]%n", word, &used) != 1) {
            text++;
            continue;
        }
        text += used;
        range = range || strcmp(word, "to") == 0;
        if (strncasecmp(word, "fig", 3) == 0 || strncasecmp(word, "table", 5) == 0)
            kind = word[0] == 't' || word[0] == 'T';
        else if (strncasecmp(word, "sect", 4) == 0)
            kind = -1;
        if (kind < 0 || word[0] < '0' || word[0] > '9')
            continue;
        if (sscanf(word, "%d.%d", &a, &b) != 2) {
            b = a;
            a = 0;
        }
        EXPECT(a < CHAPTERS && b < NUMBERS && (!range || (a == chapter && b > number)));
        for (int n = range ? number : b; n <= b && n < NUMBERS && a < CHAPTERS; n++)
            s->of[paper][kind][a][n] = true;
        chapter = a;
        number = b;
        range = false;
    }
}

static void test_all_figures(void)
{
    static const struct {
        int paper, kind, chapter, last;
    } printed[] = {{PAPER_LIU, 0, 2, 3},      {PAPER_LIU, 0, 3, 3},     {PAPER_LIU, 0, 4, 4},
                   {PAPER_LIU, 0, 5, 7},      {PAPER_LIU, 0, 6, 15},    {PAPER_LIU, 0, 7, 10},
                   {PAPER_LIU, 0, 8, 19},     {PAPER_LIU, 0, 9, 19},    {PAPER_LIU, 1, 5, 2},
                   {PAPER_LIU, 1, 6, 2},      {PAPER_LIU, 1, 9, 4},     {PAPER_TAKAGI, 0, 0, 11},
                   {PAPER_TAKAGI, 1, 0, 1},   {PAPER_COLL, 0, 0, 16},   {PAPER_COLL, 1, 0, 2},
                   {PAPER_SHIPMAN, 0, 0, 6},  {PAPER_SHIPMAN, 1, 0, 3}, {PAPER_HOEFLER, 0, 1, 5},
                   {PAPER_HOEFLER, 0, 2, 39}, {PAPER_HOEFLER, 0, 3, 6}, {PAPER_HOEFLER, 0, 4, 6},
                   {PAPER_HOEFLER, 1, 1, 1},  {PAPER_HOEFLER, 1, 2, 3}, {PAPER_HOEFLER, 1, 3, 1},
                   {PAPER_HOEFLER, 1, 4, 1}};
    const struct {
        const struct entry *entries;
        int count;
    } lists[] = {{entries_liu, entries_liu_count},
                 {entries_multicast, entries_multicast_count},
                 {entries_programs, entries_programs_count},
                 {entries_rails, entries_rails_count},
                 {entries_others, entries_others_count}};
    struct seen *s = calloc(1, sizeof(*s));
    for (size_t l = 0; l < sizeof(lists) / sizeof(lists[0]); l++)
        for (int i = 0; i < lists[l].count; i++)
            add_figures(s, lists[l].entries[i].paper, lists[l].entries[i].figure);
    for (int i = 0; i < unmeasured_count; i++)
        add_figures(s, unmeasured[i].paper, unmeasured[i].figure);
    for (size_t i = 0; i < sizeof(printed) / sizeof(printed[0]); i++)
        for (int n = 1; n <= printed[i].last; n++) {
            const bool listed = s->of[printed[i].paper][printed[i].kind][printed[i].chapter][n];
            if (!listed)
                printf("[%s] %s %d.%d is neither measured nor listed with a reason\n",
                       papers[printed[i].paper].key, printed[i].kind ? "table" : "figure", printed[i].chapter,
                       n);
            EXPECT(listed);
        }
    free(s);
}

static void test_rounds(void)
{
    struct entry e = {.take = TAKE_TABLE, .selector = "Latency", .title = "t"};
    struct table *t = entry_read_table(&e), *more = entry_read_table(&e);
    table_set_number(more, 0, 1, 2);
    table_merge(t, more);
    table_compute_values(t, BETTER_LOWER);
    EXPECT(table_cell(t, 0, 1)->samples == 2 && table_cell(t, 0, 1)->value == 2);
    table_compute_values(t, BETTER_HIGHER);
    EXPECT(table_cell(t, 0, 1)->value == 3);
    table_compute_values(t, BETTER_NEITHER);
    EXPECT(table_cell(t, 0, 1)->value == 2.5);
    table_free(t);
    table_free(more);
    e.selector = "Nothing";
    EXPECT(entry_read_table(&e) == NULL);
}

int main(void)
{
    TEST_RUN(test_json);
    TEST_RUN(test_student);
    TEST_RUN(test_welch);
    TEST_RUN(test_judge);
    TEST_RUN(test_best_and_constant);
    TEST_RUN(test_never_agrees);
    TEST_RUN(test_load);
    TEST_RUN(test_all_figures);
    TEST_RUN(test_rounds);
    return test_result();
}
