/* test_sample.c: pages of other users, which root sees: they do not mix with the pages of a job of the same
 * name, no file that they name is opened, and their memory is limited.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor/source_line.h"
#include "doctor/sample.h"
#include "test.h"

enum { STRANGER = 65533, LARGE_JOBS = 100 };

static char job[64], fifo[] = "/tmp/fishplate-test-sample-XXXXXX";

static void create_page(const char *name, uint32_t ranks)
{
    static struct page page;
    const int fd = memfd_create(PAGE_NAME, MFD_CLOEXEC);
    page = (struct page){
        .magic = PAGE_MAGIC, .size = sizeof(page), .ranks = ranks, .pid = getpid(), .waits = {{.id = 1}}};
    snprintf(page.job, sizeof(page.job), "%s", name);
    snprintf(page.waits[0].caller.module, sizeof(page.waits[0].caller.module), "%s", fifo);
    snprintf(page.waits[0].caller.symbol, sizeof(page.waits[0].caller.symbol), "solve");
    page.waits[0].caller.offset = 64;
    EXPECT(write(fd, &page, sizeof(page)) == sizeof(page));
}

/* Each of these jobs takes 8 MiB in the memory of its reader. */
static void create_large_jobs(void)
{
    for (int i = 0; i < LARGE_JOBS; i++) {
        char name[80];
        snprintf(name, sizeof(name), "large-%d-%d", i, getpid());
        create_page(name, RANKS_MAX);
    }
}

/* Starts a process of another user with a page that names the same job, and many others. */
static pid_t start_stranger(void)
{
    int ready[2];
    char byte = 0;
    EXPECT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (setgid(STRANGER) != 0 || setuid(STRANGER) != 0)
            _exit(1);
        create_page(job, 1);
        create_large_jobs();
        (void)!write(ready[1], "", 1);
        pause();
        _exit(0);
    }
    close(ready[1]);
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

static const struct snapshot *find_snapshot(const struct snapshots *all, uint32_t user)
{
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->jobs[i].job, job) == 0 && all->jobs[i].user == user)
            return &all->jobs[i];
    return NULL;
}

static void expect_page(const struct snapshots *all, uint32_t user, uint32_t ranks, const char *module)
{
    struct places *places = places_open();
    const struct snapshot *found = find_snapshot(all, user);
    EXPECT(found != NULL);
    if (found) {
        const struct page_place *caller = &found->samples[0]->page.waits[0].caller;
        EXPECT_EQ(found->ranks, ranks);
        EXPECT_EQ(found->seen, 1);
        EXPECT(strcmp(caller->module, module) == 0);
        EXPECT(strstr(place_text(places, caller), "solve") != NULL); /* does not wait for the FIFO */
    }
    places_close(places);
}

static void expect_limited_memory(const struct snapshots *all)
{
    size_t large = 0;
    for (size_t i = 0; i < all->count; i++)
        large += all->jobs[i].user == STRANGER && all->jobs[i].ranks == RANKS_MAX;
    EXPECT(large > 0 && large <= FOREIGN_MAX / (RANKS_MAX * sizeof(struct sample *)));
    EXPECT(all->foreign <= FOREIGN_MAX);
    EXPECT(all->is_incomplete);
}

static void test_names(void)
{
    char name[] = "\033[31mred\x7f";
    sample_sanitise_text(name, sizeof(name));
    EXPECT(strcmp(name, "?[31mred?") == 0);
}

int main(void)
{
    struct snapshots all;
    alarm(60);
    test_names();
    snprintf(job, sizeof(job), "test-sample-%d", getpid());
    const int file = mkstemp(fifo);
    close(file);
    unlink(fifo);
    EXPECT_EQ(mkfifo(fifo, 0644), 0);
    const pid_t stranger = geteuid() == 0 ? start_stranger() : 0;
    create_page(job, 2);
    EXPECT_EQ(snapshots_take_host(&all), 0);
    expect_page(&all, geteuid(), 2, fifo);
    if (stranger > 0) {
        expect_page(&all, STRANGER, 1, strrchr(fifo, '/') + 1);
        expect_limited_memory(&all);
        kill(stranger, SIGKILL);
        waitpid(stranger, NULL, 0);
    }
    snapshots_free(&all);
    unlink(fifo);
    return test_result();
}
