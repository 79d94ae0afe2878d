/* pins.h: simulated pinning of memory for tests of the registration cache. The pin functions count calls,
 * fail above a limit, and record the content of each page when it is pinned, so that a stale registration
 * is detected.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_UNIT_NET_PINS_H
#define FP_TESTS_UNIT_NET_PINS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/err.h"
#include "net/regcache.h"
#include "test.h"

enum { PIN_PAGES = 512 };

struct pins {
    uintptr_t base; /* address of the PIN_PAGES pages */
    size_t page;    /* bytes */
    size_t limit;   /* bytes that may be pinned; 0: no limit */
    int pinned, unpinned, refused;
    size_t bytes;
    /* Identifies the present content of a page; 0: the page cannot be pinned. */
    uint64_t (*content)(struct pins *p, size_t index);
};

struct pin {
    uintptr_t start;
    size_t length;
    uint64_t contents_when_pinned[];
};

static int pins_register(void *ctx, void *address, size_t len, void **handle)
{
    struct pins *p = ctx;
    size_t first = ((uintptr_t)address - p->base) / p->page, n = len / p->page;
    EXPECT((uintptr_t)address % p->page == 0 && len % p->page == 0 && len > 0);
    EXPECT((uintptr_t)address >= p->base && first + n <= PIN_PAGES);
    if (p->limit && p->bytes + len > p->limit) {
        p->refused++;
        return err_set(MPI_ERR_NO_MEM, "the test allows %zu bytes", p->limit);
    }
    struct pin *pin = malloc(sizeof(*pin) + n * sizeof(pin->contents_when_pinned[0]));
    pin->start = (uintptr_t)address;
    pin->length = len;
    for (size_t i = 0; i < n; i++) {
        pin->contents_when_pinned[i] = p->content(p, first + i);
        if (pin->contents_when_pinned[i] == 0) {
            free(pin);
            p->refused++;
            return err_set(MPI_ERR_BUFFER, "a page is not there");
        }
    }
    p->pinned++;
    p->bytes += len;
    *handle = pin;
    return 0;
}

static void pins_release(void *ctx, void *handle)
{
    struct pins *p = ctx;
    struct pin *pin = handle;
    p->unpinned++;
    p->bytes -= pin->length;
    free(pin);
}

static const struct regcache_ops pins_ops = {pins_register, pins_release};

/* True if the entry covers the range and every page of the range still has the content that was pinned. */
static bool pins_are_current(struct pins *p, const struct regcache_entry *e, uintptr_t start, size_t len)
{
    const struct pin *pin = e->handle;
    if (e->address != pin->start || e->length != pin->length || e->address > start ||
        e->address + e->length < start + len)
        return false;
    for (uintptr_t a = start & ~(p->page - 1); a < start + len; a += p->page)
        if (pin->contents_when_pinned[(a - pin->start) / p->page] != p->content(p, (a - p->base) / p->page))
            return false;
    return true;
}

#endif
