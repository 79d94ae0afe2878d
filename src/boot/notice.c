/* notice.c: reads and writes the notices of deaths of ranks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "boot/notice.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"

#define STEP 4096u /* notices by which the file is extended */
_Static_assert(NOTICES_MAX % STEP == 0, "the file never exceeds NOTICES_MAX notices");

int notice_create(void)
{
    int fd = memfd_create("fishplate-notices", MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, offsetof(struct notice_page, notices)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

struct notice_page *notice_map(int fd)
{
    void *page =
        mmap(NULL, sizeof(struct notice_page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    return page == MAP_FAILED ? NULL : page;
}

void notice_unmap(struct notice_page *page)
{
    if (page)
        munmap(page, sizeof(*page));
}

void notice_wake(struct notice_page *page)
{
    syscall(SYS_futex, &page->published, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Extends the file to `wanted` notices. Other processes may extend it concurrently: fallocate never
 * shortens a file. */
static bool extend_file(struct notice_page *page, int fd, uint32_t wanted)
{
    const uint32_t room = (wanted + STEP - 1) / STEP * STEP;
    uint32_t known = atomic_load(&page->room);
    if (known >= wanted)
        return true;
    if (room > NOTICES_MAX ||
        fallocate(fd, 0, 0, (off_t)(offsetof(struct notice_page, notices) + room * sizeof(struct notice))) !=
            0)
        return false;
    while (known < room && !atomic_compare_exchange_weak(&page->room, &known, room))
        ;
    return true;
}

uint64_t notice_hash_job(const char *job)
{
    return hash_text(HASH_START, job);
}

uint64_t notice_hash_departures(const char *job)
{
    return hash_text(notice_hash_job(job), "/departed");
}

bool notice_add(struct notice_page *page, int fd, uint64_t world, uint32_t rank)
{
    uint32_t i = atomic_fetch_add(&page->reserved, 1);
    if (i >= NOTICES_MAX || !extend_file(page, fd, i + 1))
        return false;
    struct notice *n = &page->notices[i];
    n->rank = rank;
    n->when = clock_ns();
    n->world = world;
    atomic_store_explicit(&n->full, 1, memory_order_release);
    atomic_fetch_add(&page->published, 1);
    notice_wake(page);
    return true;
}

const struct notice *notice_get(struct notice_page *page, uint32_t i)
{
    /* The limits are checked because every process of the job can write the page. */
    if (i >= NOTICES_MAX || i >= atomic_load(&page->room) ||
        !atomic_load_explicit(&page->notices[i].full, memory_order_acquire))
        return NULL;
    return &page->notices[i];
}

void notice_wait(struct notice_page *page, uint32_t published, uint64_t at_most_ns)
{
    const struct timespec limit = {.tv_sec = (time_t)(at_most_ns / 1000000000u),
                                   .tv_nsec = (long)(at_most_ns % 1000000000u)};
    syscall(SYS_futex, &page->published, FUTEX_WAIT, published, at_most_ns ? &limit : NULL, NULL, 0);
}
