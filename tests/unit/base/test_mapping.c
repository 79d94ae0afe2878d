/* test_mapping.c: memory for adapters is backed by a file of whole pages. An adapter registers whole pages, and
 * softib maps a region of another process only if its file contains the region; otherwise each access takes a
 * system call.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <sys/stat.h>
#include <unistd.h>

#include "base/mapping.h"
#include "test.h"

static void test_file_has_whole_pages(void)
{
    static const size_t lengths[] = {1, 4096, 8704, 65537};
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        struct mapping m;
        struct stat status;
        EXPECT(mapping_open(&m, "fishplate-test", lengths[i]));
        EXPECT(fstat(m.file, &status) == 0);
        EXPECT((size_t)status.st_size >= lengths[i]);
        EXPECT((size_t)status.st_size % page == 0);
        EXPECT((size_t)status.st_size == m.length);
        mapping_close(&m);
        EXPECT(!m.at);
    }
}

int main(void)
{
    TEST_RUN(test_file_has_whole_pages);
    return test_result();
}
