/* settings.c: fuzzes settings of users: values of every tunable, FISHPLATE_COLL, and the rules file that
 * FISHPLATE_COLL may name.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "base/tunable.h"
#include "coll/select/select.h"
#include "coll/select/site.h"
#include "fuzz.h"

static void set_tunable(struct tunable *t, const char *text)
{
    char shown[256];
    int64_t before = t->value;
    if (tunable_set(t, text, SOURCE_PROGRAM) == 0) {
        if (t->type == TUNABLE_IS_INT || t->type == TUNABLE_IS_SIZE)
            FUZZ_CHECK(t->value >= t->min && t->value <= t->max);
    } else {
        FUZZ_CHECK(t->value == before);
    }
    tunable_format(t, shown, sizeof(shown));
    if (t->type == TUNABLE_IS_STRING)
        t->text = ""; /* the tunable must not keep the text, which is freed below */
}

static void fuzz_collective_rules(const char *text)
{
    struct coll_shape shape = {.kind = COLL_ALLREDUCE, .size = 4, .count = 1, .commutative = true};
    struct coll_where where = {.bytes = 100};
    tunable_set(tunables_find("COLL"), text, SOURCE_PROGRAM);
    coll_select_open();
    for (int kind = 0; kind < COLL_KINDS; kind++) {
        shape.kind = (enum coll_kind)kind;
        FUZZ_CHECK(algorithm_fits(coll_select(&shape, &where, true).algorithm, &shape));
    }
    tunables_find("COLL")->text = "";
    coll_select_open();
}

static void fuzz_rule_file(char *text)
{
    struct site s = {0};
    int rc = site_parse(text, "rules", &s);
    FUZZ_CHECK(rc == 0 || strncmp(err_detail(rc), "FISHPLATE_COLL: line ", 21) == 0);
    for (size_t i = 0; i < s.count; i++) {
        FUZZ_CHECK(s.rule[i].choice.algorithm->kind == s.rule[i].kind);
        FUZZ_CHECK(s.rule[i].bytes.min <= s.rule[i].bytes.max);
        site_rule_applies(&s.rule[i], 4, 2, 100);
    }
    site_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    struct tunable *t = tunables_get(fuzz_u8(&in) % tunables_count());
    char *text = fuzz_text(in.at, in.left);
    set_tunable(t, text);
    /* A text with `@` would name a file, which the target must not read. */
    if (!strchr(text, '@'))
        fuzz_collective_rules(text);
    fuzz_rule_file(text);
    free(text);
    return 0;
}
