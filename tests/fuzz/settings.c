/* settings.c: texts that users give: values of every tunable, and FISHPLATE_COLL.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "base/tunable.h"
#include "coll/select.h"
#include "fuzz.h"

static void one(struct tunable *t, const char *text)
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
        t->text = ""; /* the text is freed below */
}

static void collectives(const char *text)
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    struct tunable *t = tunables_get(fuzz_u8(&in) % tunables_count());
    char *text = fuzz_text(in.at, in.left);
    one(t, text);
    collectives(text);
    free(text);
    return 0;
}
