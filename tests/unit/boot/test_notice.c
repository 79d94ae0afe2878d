/* test_notice.c: reports of deaths: another process of the job reads all of them, in order, for any number
 * of deaths.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "boot/notice.h"

#include <sys/resource.h>
#include <signal.h>
#include <unistd.h>

#include "base/hash.h"
#include "test.h"

static void test_no_report_is_lost(void)
{
    const uint32_t many = 20000;
    int fd = notice_create();
    struct notice_page *writer = notice_map(fd), *reader = notice_map(fd);
    EXPECT(writer && reader);
    EXPECT(notice_get(reader, 0) == NULL && notice_get(reader, NOTICES_MAX) == NULL);
    for (uint32_t i = 0; i < many; i++)
        EXPECT(notice_add(writer, fd, notice_hash_job(i % 2 ? "odd" : "even"), i));
    for (uint32_t i = 0; i < many; i++) {
        const struct notice *n = notice_get(reader, i);
        EXPECT(n && n->rank == i && n->world == hash_text(HASH_START, i % 2 ? "odd" : "even"));
    }
    EXPECT(notice_get(reader, many) == NULL);
    EXPECT_EQ(atomic_load(&reader->published), many);
    notice_unmap(writer);
    notice_unmap(reader);
    close(fd);
}

/* An error is returned if the file of reports cannot grow. */
static void test_file_that_cannot_grow(void)
{
    struct rlimit before, small = {4096, RLIM_INFINITY};
    int fd = notice_create();
    struct notice_page *page = notice_map(fd);
    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    EXPECT(setrlimit(RLIMIT_FSIZE, &small) == 0);
    EXPECT(!notice_add(page, fd, notice_hash_job("job"), 1));
    EXPECT(setrlimit(RLIMIT_FSIZE, &before) == 0);
    EXPECT(notice_get(page, 0) == NULL);
    notice_unmap(page);
    close(fd);
}

int main(void)
{
    TEST_RUN(test_no_report_is_lost);
    TEST_RUN(test_file_that_cannot_grow);
    return test_result();
}
