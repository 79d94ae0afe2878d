/* t_files.c: when memory of a shared file is registered, softib finds the open descriptor of the file
 * among few and many descriptors, also without privileges. A region keeps its own descriptor until it is
 * deregistered, but regions leave a quarter of all descriptors to the program.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTES = 4096, NOBODY = 65534, LIMIT = 256, REGIONS = 200, OTHERS = 100 };

#define CHECK(condition)                                                     \
    do {                                                                     \
        if (!(condition)) {                                                  \
            fprintf(stderr, "t_files: line %d: %s\n", __LINE__, #condition); \
            exit(1);                                                         \
        }                                                                    \
    } while (0)

static struct ibv_pd *pd;

static int count_descriptors(const struct stat *file)
{
    struct stat st;
    int n = 0;
    for (int fd = 0; fd < LIMIT; fd++)
        n += !fstat(fd, &st) && st.st_ino == file->st_ino && st.st_dev == file->st_dev;
    return n;
}

static char *map_shared_file(int *fd, struct stat *file)
{
    *fd = memfd_create("t_files", MFD_CLOEXEC);
    CHECK(*fd >= 0 && !ftruncate(*fd, BYTES) && !fstat(*fd, file));
    char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

/* Registers memory of a file that was opened before `others` more files, then closes the file. */
static struct ibv_mr *register_file_memory(int others, struct stat *file)
{
    int fd, later[OTHERS];
    char *at = map_shared_file(&fd, file);
    for (int i = 0; i < others; i++)
        CHECK((later[i] = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0);
    struct ibv_mr *mr = ibv_reg_mr(pd, at, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    CHECK(mr);
    for (int i = 0; i < others; i++)
        close(later[i]);
    close(fd);
    return mr;
}

static void check_found(int others)
{
    struct stat file;
    struct ibv_mr *mr = register_file_memory(others, &file);
    void *at = mr->addr;
    CHECK(count_descriptors(&file) == 1);
    CHECK(!ibv_dereg_mr(mr));
    CHECK(count_descriptors(&file) == 0);
    munmap(at, BYTES);
}

static void check_descriptors_left(void)
{
    struct ibv_mr *mr[REGIONS];
    struct stat file;
    int kept = 0, free_ones = 0;
    for (int i = 0; i < REGIONS; i++) {
        mr[i] = register_file_memory(0, &file);
        kept += count_descriptors(&file);
    }
    CHECK(kept > LIMIT / 4 && kept <= LIMIT * 3 / 4);
    for (int i = 0; i < LIMIT; i++)
        free_ones += fcntl(i, F_GETFD) < 0;
    CHECK(free_ones >= LIMIT / 4);
    for (int i = 0; i < REGIONS; i++) {
        void *at = mr[i]->addr;
        CHECK(!ibv_dereg_mr(mr[i]));
        munmap(at, BYTES);
    }
}

int main(void)
{
    const struct rlimit limit = {LIMIT, LIMIT};
    CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
    if (getuid() == 0)
        CHECK(!setgid(NOBODY) && !setuid(NOBODY));
    struct ibv_device **list = ibv_get_device_list(NULL);
    CHECK(list && list[0]);
    struct ibv_context *context = ibv_open_device(list[0]);
    CHECK(context && (pd = ibv_alloc_pd(context)));
    check_found(0);
    check_found(3);
    check_found(OTHERS);
    check_descriptors_left();
    CHECK(!ibv_dealloc_pd(pd) && !ibv_close_device(context));
    ibv_free_device_list(list);
    return 0;
}
