/* test_json.c: JSON documents in both layouts are read back completely; other text is refused.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "lab/json_read.h"
#include "test.h"

static char *write_document(int flat, size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    struct json j = {.out = out, .flat = flat};
    json_object(&j, NULL);
    json_string(&j, "text", "quote \" backslash \\ tab \t end");
    json_array(&j, "rows");
    for (int i = 0; i < 3; i++) {
        json_object(&j, NULL);
        json_int(&j, "n", i);
        json_real(&j, "half", i / 2.0);
        json_real(&j, "none", NAN);
        json_end(&j);
    }
    json_end(&j);
    json_bool(&j, "good", true);
    json_thousandths(&j, "third", -1234);
    json_members(&j, "name=%s negative=%d", "100% = all", -7);
    json_record(&j, "record", "large=%llu unsigned=%u none=%g half=%g signed=%lld", 1ull << 40, 4000000000u,
                (double)NAN, 0.5, -5ll);
    json_end(&j);
    fclose(out);
    return text;
}

static void test_round_trip(void)
{
    for (int flat = 0; flat <= 3; flat++) {
        size_t size;
        char *text = write_document(flat, &size);
        struct value *v = value_parse(text, size);
        int rows = 0;
        EXPECT(v != NULL);
        EXPECT_STR(value_text(v, "text"), "quote \" backslash \\ tab \t end");
        for (const struct value *row = value_first_element(v, "rows"); row; row = row->next, rows++) {
            EXPECT(value_number(row, "half", -1) == rows / 2.0);
            EXPECT(value_number(row, "none", -1) == -1);
        }
        EXPECT_EQ(rows, 3);
        EXPECT(value_is_true(v, "good"));
        EXPECT(value_number(v, "third", 0) == -1.234);
        EXPECT_STR(value_text(v, "name"), "100% = all");
        EXPECT(value_number(v, "negative", 0) == -7);
        const struct value *record = value_get(v, "record");
        EXPECT(value_number(record, "large", 0) == 1099511627776.0);
        EXPECT(value_number(record, "unsigned", 0) == 4e9);
        EXPECT(value_number(record, "none", -1) == -1 && value_number(record, "half", 0) == 0.5);
        EXPECT(value_number(record, "signed", 0) == -5);
        value_free(v);
        for (size_t cut = 0; cut + 2 < size; cut++) { /* the last byte is a new line */
            v = value_parse(text, cut);
            EXPECT(v == NULL);
            value_free(v);
        }
        free(text);
    }
}

int main(void)
{
    TEST_RUN(test_round_trip);
    return test_result();
}
