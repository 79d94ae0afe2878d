/* test_ownfile.c: files that another user may have placed under a name that this user opens are refused:
 * links, FIFOs, files that others can write, files and folders of other users.
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

static char top_folder[] = "/tmp/fishplate-ownfile-XXXXXX";
static int folder_fd;

static void make_file(const char *name, mode_t mode, const char *text)
{
    const int fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    EXPECT(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && fchmod(fd, mode) == 0);
    close(fd);
}

static off_t file_size(const char *name)
{
    struct stat s;
    return fstatat(folder_fd, name, &s, 0) == 0 ? s.st_size : -1;
}

/* Returns the error with which an existing file is refused, or 0 if it is opened. */
static int get_open_error(int dir, const char *name, int flags)
{
    const int fd = ownfile_open(dir, name, flags);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static int get_folder_error(const char *name, bool create)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", top_folder, name);
    const int fd = ownfile_open_folder(path, create);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static void test_own_files_are_opened(void)
{
    make_file("mine", 0644, "text");
    EXPECT_EQ(get_open_error(folder_fd, "mine", O_RDONLY), 0);
    EXPECT_EQ(get_open_error(folder_fd, "mine", O_RDWR), 0);
    EXPECT_EQ(file_size("mine"), 4);
    EXPECT_EQ(get_open_error(folder_fd, "mine", O_RDWR | O_TRUNC), 0);
    EXPECT_EQ(file_size("mine"), 0);
    EXPECT_EQ(get_open_error(folder_fd, "none", O_RDONLY), ENOENT);
    unlinkat(folder_fd, "mine", 0);
}

static void test_creation_needs_unused_name(void)
{
    struct stat s;
    int fd = ownfile_create(folder_fd, "fresh", O_RDWR);
    EXPECT(fd >= 0 && fstat(fd, &s) == 0);
    EXPECT_EQ(s.st_mode & 07777, 0600);
    EXPECT((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    close(fd);
    EXPECT(ownfile_create(folder_fd, "fresh", O_RDWR) < 0 && errno == EEXIST);
    unlinkat(folder_fd, "fresh", 0);
    EXPECT(symlinkat("elsewhere", folder_fd, "link") == 0);
    EXPECT(ownfile_create(folder_fd, "link", O_RDWR) < 0 && errno == EEXIST);
    EXPECT(faccessat(folder_fd, "elsewhere", F_OK, 0) != 0);
    unlinkat(folder_fd, "link", 0);
}

static void test_links_and_special_files_are_refused(void)
{
    make_file("victim", 0600, "precious");
    EXPECT(symlinkat("victim", folder_fd, "link") == 0 && mkfifoat(folder_fd, "fifo", 0600) == 0);
    EXPECT_EQ(get_open_error(folder_fd, "link", O_RDWR | O_TRUNC), ELOOP);
    EXPECT_EQ(get_open_error(folder_fd, "fifo", O_RDONLY), EPERM);
    EXPECT_EQ(get_open_error(folder_fd, ".", O_RDONLY), EPERM);
    make_file("loose", 0622, "text");
    EXPECT_EQ(get_open_error(folder_fd, "loose", O_RDONLY), EPERM);
    EXPECT_EQ(file_size("victim"), 8);
    unlinkat(folder_fd, "link", 0);
    unlinkat(folder_fd, "fifo", 0);
    unlinkat(folder_fd, "loose", 0);
    unlinkat(folder_fd, "victim", 0);
}

/* In a folder that others can write, another user may have created the second name (hard link) of a file. */
static void test_hard_links_are_refused(void)
{
    char path[PATH_MAX];
    make_file("victim", 0600, "precious");
    EXPECT(linkat(folder_fd, "victim", folder_fd, "second", 0) == 0);
    EXPECT_EQ(get_open_error(folder_fd, "second", O_RDWR), 0);
    EXPECT(fchmod(folder_fd, 0770) == 0);
    EXPECT_EQ(get_open_error(folder_fd, "second", O_RDWR | O_TRUNC), EPERM);
    EXPECT_EQ(get_open_error(folder_fd, "second", O_RDONLY), 0);
    EXPECT(fchmod(folder_fd, 0700) == 0);
    snprintf(path, sizeof(path), "%s/second", top_folder);
    EXPECT_EQ(get_open_error(AT_FDCWD, path, O_RDWR | O_TRUNC), EPERM);
    EXPECT_EQ(file_size("victim"), 8);
    unlinkat(folder_fd, "second", 0);
    unlinkat(folder_fd, "victim", 0);
}

static void test_folders(void)
{
    EXPECT_EQ(get_folder_error("dir", false), ENOENT);
    EXPECT_EQ(get_folder_error("dir", true), 0);
    EXPECT_EQ(get_folder_error("dir", true), 0);
    EXPECT(symlinkat("dir", folder_fd, "link") == 0);
    EXPECT_EQ(get_folder_error("link", true), ENOTDIR);
    EXPECT(fchmodat(folder_fd, "dir", 0750, 0) == 0);
    EXPECT_EQ(get_folder_error("dir", true), EPERM);
    unlinkat(folder_fd, "link", 0);
    unlinkat(folder_fd, "dir", AT_REMOVEDIR);
}

static void test_files_of_other_users(void)
{
    if (geteuid() != 0) {
        printf("     skipped: only root can change the owner of a file\n");
        return;
    }
    make_file("theirs", 0644, "text");
    EXPECT(fchownat(folder_fd, "theirs", OTHER_USER, OTHER_USER, 0) == 0);
    EXPECT_EQ(get_open_error(folder_fd, "theirs", O_RDONLY), EPERM);
    EXPECT_EQ(get_open_error(folder_fd, "theirs", O_RDWR | O_TRUNC), EPERM);
    EXPECT_EQ(file_size("theirs"), 4);
    EXPECT(mkdirat(folder_fd, "dir", 0700) == 0 &&
           fchownat(folder_fd, "dir", OTHER_USER, OTHER_USER, 0) == 0);
    EXPECT_EQ(get_folder_error("dir", true), EPERM);
    unlinkat(folder_fd, "theirs", 0);
    unlinkat(folder_fd, "dir", AT_REMOVEDIR);
}

int main(void)
{
    EXPECT(mkdtemp(top_folder) != NULL);
    folder_fd = open(top_folder, O_RDONLY | O_DIRECTORY);
    EXPECT(folder_fd >= 0);
    TEST_RUN(test_own_files_are_opened);
    TEST_RUN(test_creation_needs_unused_name);
    TEST_RUN(test_links_and_special_files_are_refused);
    TEST_RUN(test_hard_links_are_refused);
    TEST_RUN(test_folders);
    TEST_RUN(test_files_of_other_users);
    close(folder_fd);
    EXPECT(rmdir(top_folder) == 0);
    return test_result();
}
