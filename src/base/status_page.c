/* status_page.c: creates the status page of this process. Its memfd stays open, so that readers find the
 * page.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/status_page.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mapping.h"

struct page *page_open(int *fd)
{
    struct mapping m;
    if (!mapping_open(&m, PAGE_NAME, sizeof(struct page)))
        return NULL;
    struct page *page = m.at;
    page->size = sizeof(*page);
    page->pid = getpid();
    page->started = clock_ns();
    *fd = m.file;
    return page;
}

void page_close(struct page *page, int fd)
{
    if (!page)
        return;
    munmap(page, sizeof(*page));
    close(fd);
}

struct page_comm *page_comm_open(struct page *page, uint32_t context, int rank, int size, const char *label)
{
    if (!page)
        return NULL;
    for (int i = 0; i < PAGE_COMMS; i++) {
        struct page_comm *c = &page->comms[i];
        if (atomic_load_explicit(&c->used, memory_order_relaxed))
            continue;
        c->context = context;
        c->rank = rank;
        c->size = size;
        c->calls = 0;
        memset(c->kinds, 0, sizeof(c->kinds));
        snprintf(c->label, sizeof(c->label), "%s", label);
        atomic_store_explicit(&c->used, 1, memory_order_release);
        return c;
    }
    page->comms_lost++;
    return NULL;
}

void page_comm_close(struct page_comm *c)
{
    if (c)
        atomic_store_explicit(&c->used, 0, memory_order_release);
}
