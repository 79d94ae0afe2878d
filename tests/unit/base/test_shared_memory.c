/* test_shared_memory.c: which descriptors of another process are opened: only memory files of this user
 * with the expected name, size and seals, for any pid and descriptor number that the process names.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

#define NAME "fishplate-test"

enum { BYTES = 8192 };

static int open_own_descriptor(int fd, uint64_t least)
{
    errno = 0;
    return shared_memory_open(getpid(), fd, NAME, least);
}

static void expect_refused(int fd)
{
    EXPECT(fd >= 0);
    EXPECT(!shared_memory_is_valid(fd, NAME, BYTES));
    EXPECT_EQ(open_own_descriptor(fd, BYTES), -1);
    EXPECT_EQ(errno, EPERM);
    close(fd);
}

static void test_valid_memory_file(void)
{
    int fd = shared_memory_create(NAME, BYTES);
    EXPECT(shared_memory_is_valid(fd, NAME, BYTES));
    int other = open_own_descriptor(fd, BYTES);
    EXPECT(other >= 0 && fcntl(other, F_GETFD) == FD_CLOEXEC);
    EXPECT_EQ(pwrite(other, "x", 1, BYTES - 1), 1);
    char c = 0;
    EXPECT_EQ(pread(fd, &c, 1, BYTES - 1), 1);
    EXPECT_EQ(c, 'x');
    EXPECT(ftruncate(other, 0) != 0); /* no process can shrink the file */
    close(other);
    EXPECT_EQ(open_own_descriptor(fd, BYTES + 1), -1);
    EXPECT(shared_memory_seal(fd, 2 * BYTES)); /* the file keeps its first size */
    EXPECT(!shared_memory_is_valid(fd, NAME, BYTES + 1));
    close(fd);
    EXPECT_EQ(open_own_descriptor(fd, BYTES), -1);
    EXPECT_EQ(errno, ENOENT);
}

static void test_other_files_are_refused(void)
{
    char path[] = "/tmp/fishplate-shared-memory-XXXXXX";
    int fd = mkstemp(path), ends[2];
    EXPECT_EQ(ftruncate(fd, BYTES), 0);
    unlink(path);
    expect_refused(fd);
    EXPECT_EQ(pipe(ends), 0);
    expect_refused(ends[0]);
    expect_refused(ends[1]);
    expect_refused(open("/dev/null", O_RDWR));
    expect_refused(open("/", O_RDONLY | O_DIRECTORY));
}

/* A regular file with the name of a memory file is refused. */
static void test_renamed_file_is_refused(void)
{
    char folder[] = "/tmp/fishplate-shared-memory-XXXXXX", path[128];
    EXPECT(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/memfd:" NAME, folder);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    EXPECT_EQ(ftruncate(fd, BYTES), 0);
    unlink(path);
    rmdir(folder);
    expect_refused(fd);
}

static void test_wrong_seals_are_refused(void)
{
    int fd = memfd_create(NAME, MFD_CLOEXEC); /* no seals */
    EXPECT_EQ(ftruncate(fd, BYTES), 0);
    expect_refused(fd);
    fd = shared_memory_create_empty(NAME);
    EXPECT_EQ(ftruncate(fd, BYTES), 0);
    EXPECT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0); /* not all of the required seals */
    expect_refused(fd);
    expect_refused(shared_memory_create("fishplate-other", BYTES));
    expect_refused(shared_memory_create(NAME, BYTES - 1));
}

static void test_other_user_is_refused(void)
{
    int fd = shared_memory_create(NAME, BYTES);
    if (geteuid() != 0 || fchown(fd, 12345, 12345) != 0) {
        printf("     skipped: only root can create files of other users\n");
        close(fd);
        return;
    }
    expect_refused(fd);
}

int main(void)
{
    TEST_RUN(test_valid_memory_file);
    TEST_RUN(test_other_files_are_refused);
    TEST_RUN(test_renamed_file_is_refused);
    TEST_RUN(test_wrong_seals_are_refused);
    TEST_RUN(test_other_user_is_refused);
    return test_result();
}
