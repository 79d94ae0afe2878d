/* test_port_name.c: names of ports are written and parsed; a name whose key has other characters than digits
 * is refused.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dyn/port_name.h"

#include <mpi.h>

#include "test.h"

static const struct port_name example = {
    .key = {0x12, 0xab, 0xff}, .network = 77, .local = 1ull << 40, .port = 4711, .count = 1};

static void test_written_name_is_parsed(void)
{
    char text[MPI_MAX_PORT_NAME];
    struct port_name back;
    port_name_write(&example, text);
    EXPECT(port_name_parse(text, &back));
    EXPECT(memcmp(back.key, example.key, sizeof(back.key)) == 0);
    EXPECT(back.network == example.network && back.local == example.local);
    EXPECT_EQ(back.port, example.port);
    EXPECT_EQ(back.count, 1);
}

static void test_key_has_only_digits(void)
{
    static const char *const wrong[] = {" 1", "+1", "-1", "0x", "1:", "g0"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char text[MPI_MAX_PORT_NAME];
        struct port_name back;
        port_name_write(&example, text);
        memcpy(strchr(text + strlen("fishplate:"), ':') + 1, wrong[i], 2);
        EXPECT(!port_name_parse(text, &back));
    }
}

int main(void)
{
    TEST_RUN(test_written_name_is_parsed);
    TEST_RUN(test_key_has_only_digits);
    return test_result();
}
