/* test_memhook.c: the hooks report every release of memory in a real process: by direct calls, inside the
 * allocator, in other threads. The hooks preserve errno and the program break, work together with patches
 * of another tool, detect patches placed over them, and are removed without a trace. Under a sanitizer or
 * valgrind the hooks must refuse to be installed and give the reason.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/memhook.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rawcall.h"
#include "base/tunable.h"
#include "base/util.h"
#include "net/memhook/jump.h"
#include "net/memhook/library.h"
#include "net/memhook/patch.h"
#include "test.h"

static size_t page;

/* A watched address, and the number of reports that its memory was released. */
struct watch {
    _Atomic uintptr_t address;
    _Atomic int notified;
};

static void count_release(void *ctx, uintptr_t start, size_t length)
{
    struct watch *w = ctx;
    if (atomic_load(&w->address) - start < length)
        atomic_fetch_add(&w->notified, 1);
}

static struct watch watch;

static bool open_hooks(void)
{
    const char *why = "";
    bool ok = memhook_open(count_release, &watch, &why);
    if (!ok)
        printf("hooks: %s\n", why);
    return ok;
}

static void close_hooks(void)
{
    memhook_close(count_release, &watch);
}

static void *watch_address(void *p)
{
    atomic_store(&watch.notified, 0);
    atomic_store(&watch.address, (uintptr_t)p);
    return p;
}

static char *map_pages(size_t pages)
{
    char *p = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(p, 1, pages * page);
    return p;
}

static void test_calls_are_reported(void)
{
    EXPECT(open_hooks());
    char *p = watch_address(map_pages(8));
    madvise(p, page, MADV_WILLNEED);
    mprotect(p, page, PROT_READ);
    munmap(p + 7 * page, page);
    mremap(p, 7 * page, 6 * page, 0);
    EXPECT_EQ(watch.notified, 0); /* the watched first page was not released */
    mprotect(p, page, PROT_READ | PROT_WRITE);
    EXPECT_EQ(watch.notified, 1);
    watch_address(p);
    madvise(p, page, MADV_DONTNEED);
    EXPECT_EQ(watch.notified, 1);
    EXPECT_EQ(*p, 0); /* the old page is gone */
    char *q = mremap(p, 6 * page, 64 * page, MREMAP_MAYMOVE);
    EXPECT_EQ(watch.notified, 2);
    watch_address(q + 63 * page);
    EXPECT(mmap(q + 62 * page, 2 * page, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
           q + 62 * page);
    EXPECT_EQ(watch.notified, 1);
    EXPECT_EQ(syscall(SYS_munmap, q + 32 * page, 32 * page), 0);
    EXPECT_EQ(watch.notified, 2);
    watch_address(q);
    EXPECT_EQ(munmap(q, 32 * page), 0);
    EXPECT_EQ(watch.notified, 1);
    int id = shmget(IPC_PRIVATE, page, IPC_CREAT | 0600);
    if (id >= 0) {
        p = watch_address(shmat(id, NULL, 0));
        shmctl(id, IPC_RMID, NULL);
        EXPECT_EQ(watch.notified, 0);
        EXPECT_EQ(shmdt(p), 0);
        EXPECT_EQ(watch.notified, 1);
    }
    close_hooks();
}

static void test_errno_is_preserved(void)
{
    EXPECT(open_hooks());
    errno = 0;
    EXPECT(munmap((void *)1, page) == -1 && errno == EINVAL);
    EXPECT(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
    errno = 0;
    EXPECT(mremap((void *)1, page, page, 0) == MAP_FAILED && errno == EINVAL);
    errno = 0;
    EXPECT(madvise((void *)1, page, MADV_DONTNEED) == -1 && errno == EINVAL);
    errno = 0;
    EXPECT(mprotect((void *)1, page, PROT_READ) == -1 && errno == EINVAL);
    errno = 0;
    EXPECT(shmdt((void *)page) == -1 && errno == EINVAL);
    EXPECT(shmat(-1, NULL, 0) == (void *)-1 && errno == EINVAL);
    errno = 0;
    EXPECT(syscall(SYS_close, -1) == -1 && errno == EBADF);
    errno = 0;
    EXPECT(brk((void *)UINTPTR_MAX) == -1 && errno == ENOMEM);
    errno = 77;
    char *p = map_pages(1);
    munmap(p, page);
    EXPECT_EQ(errno, 77);
    EXPECT_EQ(syscall(SYS_getpid), getpid());
    /* six arguments, of which the last lies on the stack on some processors */
    p = (char *)syscall(SYS_mmap, NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(p != MAP_FAILED);
    munmap(p, page);
    close_hooks();
}

/* libc keeps the break in a variable that sbrk trusts. */
static void test_program_break_is_preserved(void)
{
    EXPECT(open_hooks());
    char *end = sbrk(0);
    EXPECT(sbrk((intptr_t)(8 * page)) == end);
    EXPECT(sbrk(0) == end + 8 * page);
    memset(end, 1, 8 * page);
    watch_address(end + 7 * page - 1);
    EXPECT(sbrk(-(intptr_t)page) == end + 8 * page);
    EXPECT_EQ(watch.notified, 0); /* the page below the new break remains */
    EXPECT_EQ(brk(end), 0);
    EXPECT_EQ(watch.notified, 1);
    EXPECT(sbrk(0) == end);
    EXPECT((uintptr_t)raw_syscall(SYS_brk, 0, 0, 0, 0, 0, 0) == (uintptr_t)end);
    close_hooks();
}

static void test_allocator_is_reported(void)
{
    EXPECT(open_hooks());
    char *volatile p = watch_address(malloc(80 << 20));
    p[0] = 1;
    char *volatile q = realloc(p, 200 << 20);
    EXPECT_EQ(watch.notified, q == p ? 0 : 1);
    watch_address(q + page);
    free(q);
    EXPECT_EQ(watch.notified, 1);

    /* malloc_trim releases memory in the middle of the heap, which a later block keeps below the break. */
    enum { BLOCKS = 64 };
    char *volatile blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        memset(blocks[i] = malloc(50000), 1, 50000);
    watch_address(blocks[10] + 2 * page);
    for (int i = 0; i < BLOCKS - 1; i++)
        free(blocks[i]);
    malloc_trim(0);
    unsigned char resident = 1;
    mincore((void *)((watch.address) & ~(page - 1)), page, &resident);
    EXPECT(!(resident & 1)); /* malloc_trim did release the page */
    EXPECT(watch.notified >= 1);
    free(blocks[BLOCKS - 1]);
    malloc_trim(0);
    close_hooks();
}

enum { THREADS = 4, ROUNDS = 300 };

/* Releases memory of a thread: blocks of the thread's arena, large blocks, and the thread's stack. */
static void *release_thread_memory(void *arg)
{
    struct watch *mine = arg;
    char *volatile small[32];
    for (int round = 0; round < ROUNDS; round++) {
        char *p = map_pages(4);
        atomic_store(&mine->address, (uintptr_t)p);
        int before = atomic_load(&mine->notified);
        munmap(p, 4 * page);
        if (atomic_load(&mine->notified) == before)
            return "no report of a munmap";
        for (int i = 0; i < 32; i++)
            memset(small[i] = malloc(30000), 1, 30000);
        for (int i = 0; i < 32; i++)
            free(small[i]);
    }
    return NULL;
}

static void test_threads_are_reported(void)
{
    pthread_t threads[THREADS];
    static struct watch watches[THREADS];
    const char *why;
    EXPECT(open_hooks());
    for (int i = 0; i < THREADS - 1; i++)
        EXPECT(memhook_open(count_release, &watches[i], &why));
    EXPECT(!memhook_open(count_release, &watches[THREADS - 1], &why)); /* at most four listeners */
    for (int i = 0; i < THREADS - 1; i++)
        pthread_create(&threads[i], NULL, release_thread_memory, &watches[i]);
    for (int i = 0; i < THREADS - 1; i++) {
        void *problem;
        pthread_join(threads[i], &problem);
        if (problem)
            printf("thread %d: %s\n", i, (const char *)problem);
        EXPECT(problem == NULL);
    }
    for (int i = 0; i < THREADS - 1; i++)
        memhook_close(count_release, &watches[i]);
    close_hooks();
}

static _Atomic bool stop;

static void *allocate_and_free_memory(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop)) {
        char *p = map_pages(2), *volatile q = malloc(1 << 20);
        *q = 1;
        free(q);
        madvise(p, page, MADV_DONTNEED);
        if (*p != 0 || syscall(SYS_getpid) != getpid())
            return "a system call failed";
        munmap(p, 2 * page);
    }
    return NULL;
}

/* Hooks are installed and removed while threads execute the patched functions; no patch remains
 * afterwards. */
static void test_patching_under_load(void)
{
    static const char *const names[] = {"munmap", "mmap", "madvise", "brk", "syscall"};
    uint8_t before[COUNT_OF(names)][JUMP_LOOK];
    pthread_t threads[THREADS];
    for (size_t i = 0; i < COUNT_OF(names); i++)
        memcpy(before[i], dlsym(RTLD_DEFAULT, names[i]), JUMP_LOOK);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, allocate_and_free_memory, NULL);
    for (int round = 0; round < 20; round++) {
        EXPECT(open_hooks());
        for (size_t i = 0; i < COUNT_OF(names); i++)
            EXPECT(memcmp(before[i], dlsym(RTLD_DEFAULT, names[i]), JUMP_LOOK) != 0);
        close_hooks();
        for (size_t i = 0; i < COUNT_OF(names); i++)
            EXPECT_EQ(memcmp(before[i], dlsym(RTLD_DEFAULT, names[i]), JUMP_LOOK), 0);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++) {
        void *problem;
        pthread_join(threads[i], &problem);
        EXPECT(problem == NULL);
    }
}

/* After fork the hooks report the child's own releases, and activity of other threads at the time of the
 * fork does not disturb them. */
static void test_hooks_after_fork(void)
{
    EXPECT(open_hooks());
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char *p = watch_address(map_pages(1));
        munmap(p, page);
        _exit(watch.notified == 1 && memhook_is_intact() ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    close_hooks();
}

static void test_closed_hooks_report_nothing(void)
{
    const char *why = "";
    tunable_set(tunables_find("MEM_HOOKS"), "off", SOURCE_PROGRAM);
    EXPECT(!memhook_open(count_release, &watch, &why));
    EXPECT(strstr(why, "MEM_HOOKS") != NULL);
    tunable_set(tunables_find("MEM_HOOKS"), "auto", SOURCE_PROGRAM);
}

/* Another tool's replacement of madvise: counts the calls and executes them. */
static int other_calls;

static int counting_madvise(void *p, size_t length, int advice)
{
    other_calls++;
    return (int)raw_syscall(SYS_madvise, (long)p, (long)length, advice, 0, 0, 0);
}

/* Writes a long jump at the start of the function, as other tools do. */
static void install_foreign_patch(uint8_t *saved)
{
    const struct jump_code *code = jump_find(CPU_NAME);
    uint8_t *entry = dlsym(RTLD_DEFAULT, "madvise");
    uint8_t bytes[JUMP_MAX];
    memcpy(saved, entry, JUMP_MAX);
    code->island(bytes, (uintptr_t)counting_madvise);
    EXPECT(patch_write(code, entry, bytes, code->island_size));
}

static void remove_foreign_patch(const uint8_t *saved)
{
    EXPECT(patch_write(jump_find(CPU_NAME), dlsym(RTLD_DEFAULT, "madvise"), saved, JUMP_MAX));
}

/* A hook that another tool installed before the library's hook is still called. */
static void test_hooks_over_foreign_patch(void)
{
    uint8_t saved[JUMP_MAX];
    install_foreign_patch(saved);
    char *p = map_pages(1);
    other_calls = 0;
    EXPECT(open_hooks());
    int calls = other_calls; /* calls made by the self-test */
    EXPECT(calls > 0);
    watch_address(p);
    EXPECT_EQ(madvise(p, page, MADV_DONTNEED), 0);
    EXPECT_EQ(watch.notified, 1);
    EXPECT_EQ(other_calls, calls + 1);
    close_hooks();
    EXPECT_EQ(madvise(p, page, MADV_DONTNEED), 0); /* the other tool's jump is restored */
    EXPECT_EQ(watch.notified, 1);
    EXPECT_EQ(other_calls, calls + 2);
    remove_foreign_patch(saved);
    madvise(p, page, MADV_DONTNEED);
    EXPECT_EQ(other_calls, calls + 2);
    munmap(p, page);
}

/* A hook that another tool installs over the library's hook is detected and left in place. This is the
 * last test, since the hooks cannot be installed again. */
static void test_foreign_patch_over_hooks(void)
{
    uint8_t saved[JUMP_MAX], now[JUMP_MAX];
    const char *why = "";
    EXPECT(open_hooks());
    EXPECT(memhook_is_intact());
    install_foreign_patch(saved);
    EXPECT(!memhook_is_intact());
    EXPECT(!memhook_open(count_release, &page, &why));
    memcpy(now, dlsym(RTLD_DEFAULT, "madvise"), JUMP_MAX);
    close_hooks();
    EXPECT_EQ(memcmp(now, dlsym(RTLD_DEFAULT, "madvise"), JUMP_MAX), 0);
    EXPECT(!memhook_open(count_release, &watch, &why));
    EXPECT(strstr(why, "another tool") != NULL);
    char *p = map_pages(1);
    munmap(p, page); /* the library's patches are removed */
    /* The other tool restores a jump to the library's hook, which must still work. */
    remove_foreign_patch(saved);
    p = map_pages(1);
    EXPECT_EQ(madvise(p, page, MADV_DONTNEED), 0);
    EXPECT_EQ(*p, 0);
    munmap(p, page);
}

int main(void)
{
    page = (size_t)sysconf(_SC_PAGESIZE);
    alarm(100);
    if (library_find_tool() || !jump_find(CPU_NAME)) {
        const char *why = "";
        EXPECT(!memhook_open(count_release, &watch, &why));
        printf("hooks refused, as expected here: %s\n", why);
        EXPECT(*why != '\0');
        return test_result();
    }
    TEST_RUN(test_program_break_is_preserved);
    TEST_RUN(test_calls_are_reported);
    TEST_RUN(test_errno_is_preserved);
    TEST_RUN(test_allocator_is_reported);
    TEST_RUN(test_threads_are_reported);
    TEST_RUN(test_patching_under_load);
    TEST_RUN(test_hooks_after_fork);
    TEST_RUN(test_closed_hooks_report_nothing);
    TEST_RUN(test_hooks_over_foreign_patch);
    TEST_RUN(test_foreign_patch_over_hooks);
    return test_result();
}
