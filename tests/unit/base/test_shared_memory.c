/* test_shared_memory.c: which descriptors of another process are opened: memory files of this user with the right name, size and
 * seals, and nothing else, whatever pid and number the process names.
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

static int open_mine(int fd, uint64_t least)
{
    errno = 0;
    return shared_memory_open(getpid(), fd, NAME, least);
}

static void expect_refused(int fd)
{
    EXPECT(fd >= 0);
    EXPECT(!shared_memory_is_valid(fd, NAME, BYTES));
    EXPECT_EQ(open_mine(fd, BYTES), -1);
    EXPECT_EQ(errno, EPERM);
    close(fd);
}

static void right_one(void)
{
    int fd = shared_memory_create(NAME, BYTES);
    EXPECT(shared_memory_is_valid(fd, NAME, BYTES));
    int other = open_mine(fd, BYTES);
    EXPECT(other >= 0 && fcntl(other, F_GETFD) == FD_CLOEXEC);
    EXPECT_EQ(pwrite(other, "x", 1, BYTES - 1), 1);
    char c = 0;
    EXPECT_EQ(pread(fd, &c, 1, BYTES - 1), 1);
    EXPECT_EQ(c, 'x');
    EXPECT(ftruncate(other, 0) != 0); /* neither side can make it shorter */
    close(other);
    EXPECT_EQ(open_mine(fd, BYTES + 1), -1);
    EXPECT(shared_memory_seal(fd, 2 * BYTES)); /* keeps its first size */
    EXPECT(!shared_memory_is_valid(fd, NAME, BYTES + 1));
    close(fd);
    EXPECT_EQ(open_mine(fd, BYTES), -1);
    EXPECT_EQ(errno, ENOENT);
}

static void no_memory_file(void)
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

/* The rename of a regular file does not make it one either. */
static void looks_like_one(void)
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

static void wrong_memory_file(void)
{
    int fd = memfd_create(NAME, MFD_CLOEXEC); /* no seals */
    EXPECT_EQ(ftruncate(fd, BYTES), 0);
    expect_refused(fd);
    fd = shared_memory_create_empty(NAME);
    EXPECT_EQ(ftruncate(fd, BYTES), 0);
    EXPECT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0); /* not all */
    expect_refused(fd);
    expect_refused(shared_memory_create("fishplate-other", BYTES));
    expect_refused(shared_memory_create(NAME, BYTES - 1));
}

static void other_user(void)
{
    int fd = shared_memory_create(NAME, BYTES);
    if (geteuid() != 0 || fchown(fd, 12345, 12345) != 0) {
        printf("not root: files of other users are not tried\n");
        close(fd);
        return;
    }
    expect_refused(fd);
}

int main(void)
{
    TEST_RUN(right_one);
    TEST_RUN(no_memory_file);
    TEST_RUN(looks_like_one);
    TEST_RUN(wrong_memory_file);
    TEST_RUN(other_user);
    return test_result();
}
