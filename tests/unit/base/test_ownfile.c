/* test_ownfile.c: what another user may put under a name that this user opens is refused: links, FIFOs, files that others
 * can write, files and folders of others.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/ownfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

#define OTHER_USER 65534

static char top[] = "/tmp/fishplate-ownfile-XXXXXX";
static int folder;

static void make_file(const char *name, mode_t mode, const char *text)
{
    const int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    EXPECT(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && fchmod(fd, mode) == 0);
    close(fd);
}

static off_t size_of(const char *name)
{
    struct stat s;
    return fstatat(folder, name, &s, 0) == 0 ? s.st_size : -1;
}

/* The error with which an existing file is refused; 0: it is opened. */
static int ownfile_refused(int dir, const char *name, int flags)
{
    const int fd = ownfile_open(dir, name, flags);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static int folder_refused(const char *name, bool create)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", top, name);
    const int fd = ownfile_open_folder(path, create);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static void own_files_are_opened(void)
{
    make_file("mine", 0644, "text");
    EXPECT_EQ(ownfile_refused(folder, "mine", O_RDONLY), 0);
    EXPECT_EQ(ownfile_refused(folder, "mine", O_RDWR), 0);
    EXPECT_EQ(size_of("mine"), 4);
    EXPECT_EQ(ownfile_refused(folder, "mine", O_RDWR | O_TRUNC), 0);
    EXPECT_EQ(size_of("mine"), 0);
    EXPECT_EQ(ownfile_refused(folder, "none", O_RDONLY), ENOENT);
    unlinkat(folder, "mine", 0);
}

static void new_files_are_new(void)
{
    struct stat s;
    int fd = ownfile_create(folder, "fresh", O_RDWR);
    EXPECT(fd >= 0 && fstat(fd, &s) == 0);
    EXPECT_EQ(s.st_mode & 07777, 0600);
    EXPECT((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    close(fd);
    EXPECT(ownfile_create(folder, "fresh", O_RDWR) < 0 && errno == EEXIST);
    unlinkat(folder, "fresh", 0);
    EXPECT(symlinkat("elsewhere", folder, "link") == 0);
    EXPECT(ownfile_create(folder, "link", O_RDWR) < 0 && errno == EEXIST);
    EXPECT(faccessat(folder, "elsewhere", F_OK, 0) != 0);
    unlinkat(folder, "link", 0);
}

static void links_and_special_files_are_refused(void)
{
    make_file("victim", 0600, "precious");
    EXPECT(symlinkat("victim", folder, "link") == 0 && mkfifoat(folder, "fifo", 0600) == 0);
    EXPECT_EQ(ownfile_refused(folder, "link", O_RDWR | O_TRUNC), ELOOP);
    EXPECT_EQ(ownfile_refused(folder, "fifo", O_RDONLY), EPERM);
    EXPECT_EQ(ownfile_refused(folder, ".", O_RDONLY), EPERM);
    make_file("loose", 0622, "text");
    EXPECT_EQ(ownfile_refused(folder, "loose", O_RDONLY), EPERM);
    EXPECT_EQ(size_of("victim"), 8);
    unlinkat(folder, "link", 0);
    unlinkat(folder, "fifo", 0);
    unlinkat(folder, "loose", 0);
    unlinkat(folder, "victim", 0);
}

/* In a folder that others can write, a file's second name may be another user's. */
static void second_names_are_refused_for_writing(void)
{
    char path[PATH_MAX];
    make_file("victim", 0600, "precious");
    EXPECT(linkat(folder, "victim", folder, "second", 0) == 0);
    EXPECT_EQ(ownfile_refused(folder, "second", O_RDWR), 0);
    EXPECT(fchmod(folder, 0770) == 0);
    EXPECT_EQ(ownfile_refused(folder, "second", O_RDWR | O_TRUNC), EPERM);
    EXPECT_EQ(ownfile_refused(folder, "second", O_RDONLY), 0);
    EXPECT(fchmod(folder, 0700) == 0);
    snprintf(path, sizeof(path), "%s/second", top);
    EXPECT_EQ(ownfile_refused(AT_FDCWD, path, O_RDWR | O_TRUNC), EPERM);
    EXPECT_EQ(size_of("victim"), 8);
    unlinkat(folder, "second", 0);
    unlinkat(folder, "victim", 0);
}

static void test_folders(void)
{
    EXPECT_EQ(folder_refused("dir", false), ENOENT);
    EXPECT_EQ(folder_refused("dir", true), 0);
    EXPECT_EQ(folder_refused("dir", true), 0);
    EXPECT(symlinkat("dir", folder, "link") == 0);
    EXPECT_EQ(folder_refused("link", true), ENOTDIR);
    EXPECT(fchmodat(folder, "dir", 0750, 0) == 0);
    EXPECT_EQ(folder_refused("dir", true), EPERM);
    unlinkat(folder, "link", 0);
    unlinkat(folder, "dir", AT_REMOVEDIR);
}

static void files_of_others(void)
{
    if (geteuid() != 0) {
        printf("     not tried: giving files to another user needs root\n");
        return;
    }
    make_file("theirs", 0644, "text");
    EXPECT(fchownat(folder, "theirs", OTHER_USER, OTHER_USER, 0) == 0);
    EXPECT_EQ(ownfile_refused(folder, "theirs", O_RDONLY), EPERM);
    EXPECT_EQ(ownfile_refused(folder, "theirs", O_RDWR | O_TRUNC), EPERM);
    EXPECT_EQ(size_of("theirs"), 4);
    EXPECT(mkdirat(folder, "dir", 0700) == 0 && fchownat(folder, "dir", OTHER_USER, OTHER_USER, 0) == 0);
    EXPECT_EQ(folder_refused("dir", true), EPERM);
    unlinkat(folder, "theirs", 0);
    unlinkat(folder, "dir", AT_REMOVEDIR);
}

int main(void)
{
    EXPECT(mkdtemp(top) != NULL);
    folder = open(top, O_RDONLY | O_DIRECTORY);
    EXPECT(folder >= 0);
    TEST_RUN(own_files_are_opened);
    TEST_RUN(new_files_are_new);
    TEST_RUN(links_and_special_files_are_refused);
    TEST_RUN(second_names_are_refused_for_writing);
    TEST_RUN(test_folders);
    TEST_RUN(files_of_others);
    close(folder);
    EXPECT(rmdir(top) == 0);
    return test_result();
}
