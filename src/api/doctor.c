/* doctor.c: the status page of this process (base/status_page.h). A wait that lasts is written there with the call,
 * its caller and what it waits for; message counts are updated from time to time while the process waits. All
 * of it runs when the process has nothing else to do, with the lock held, so that one thread at a time
 * writes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "api/doctor.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api/doctor_items.h"
#include "base/clock.h"
#include "base/tunable.h"
#include "boot/boot.h"
#include "obj/proc.h"
#include "p2p/p2p.h"
#include "p2p/request_view.h"

static TUNABLE_BOOL(
    doctor, "DOCTOR", 1,
    "Keep a page of memory in which `fishplate ps` and `fishplate why` read what each rank does. Only the "
    "user of the job and root can read it. It costs nothing while messages move; set it to 0 to turn it "
    "off.");

/* The page belongs to the process: it outlives MPI_Finalize. */
static struct {
    struct page *page;
    int fd;
} own = {.fd = -1};

static struct page_wait *find_free_wait(struct page *page)
{
    for (int i = 0; i < PAGE_WAITS; i++)
        if (page->waits[i].id == 0)
            return &page->waits[i];
    return NULL;
}

static void write_unexpected(struct page *page, struct proc *p)
{
    struct p2p_view seen[PAGE_MESSAGES];
    const size_t n = p2p_view_unexpected(p->p2p, seen, PAGE_MESSAGES);
    page->nunexpected = (uint32_t)p2p_unexpected_length(p->p2p);
    page->nposted = (uint32_t)p2p_posted_length(p->p2p);
    page->nmessages = 0;
    for (size_t i = 0; i < n; i++) {
        if (seen[i].env.context & 1) /* a message of the library itself */
            continue;
        page->messages_waiting[page->nmessages++] =
            (struct page_message){.peer = (int32_t)seen[i].peer,
                                  .rank = seen[i].env.source,
                                  .tag = seen[i].env.tag,
                                  .context = (uint32_t)seen[i].env.context,
                                  .bytes = seen[i].bytes};
    }
}

static struct page_wait *find_wait_record(struct page *page, const struct net_waiter *w)
{
    for (int i = 0; i < PAGE_WAITS; i++)
        if (page->waits[i].id == w->record_id)
            return &page->waits[i];
    return NULL;
}

/* Writes the items that the wait depends on to its record, replacing former items. */
static void write_items(struct page *page, const struct net_waiter *w, struct page_wait *out)
{
    out->any = out->nitems = out->total = 0;
    memset(out->items, 0, sizeof(out->items));
    memset(out->groups, 0, sizeof(out->groups));
    doctor_items(the_proc, w, out);
    write_unexpected(page, the_proc);
    out->recorded_stirs = out->stirs;
}

static void doctor_wait_begins(struct net *net, struct net_waiter *w)
{
    struct page *page = own.page;
    const bool anew = w->record_id == 0;
    struct page_wait *out = anew ? find_free_wait(page) : find_wait_record(page, w);
    if (!the_proc) /* at exit: the process object is freed */
        return;
    if (anew)
        w->record_id = ++page->last_id;
    page_begin_change(page);
    if (out && anew) {
        out->since = w->begun;
        out->stirs = 0;
        out->thread = (uint32_t)syscall(SYS_gettid);
        memset(&out->caller, 0, sizeof(out->caller));
        doctor_write_caller(out);
        out->id = w->record_id;
    }
    if (out)
        write_items(page, w, out);
    else
        page->waits_lost += anew;
    page_end_change(page);
}

static void doctor_wait_updates(struct net *net, struct net_waiter *w)
{
    struct page_wait *record = find_wait_record(own.page, w);
    if (record)
        record->stirs++;
}

static void doctor_wait_ends(struct net *net, struct net_waiter *w)
{
    struct page *page = own.page;
    struct page_wait *record = find_wait_record(page, w);
    if (!record)
        return;
    page_begin_change(page);
    record->id = 0;
    page->waited_ns += clock_ns() - record->since;
    page_end_change(page);
}

/* Inserts a link into the page's list of the links with the most messages. */
static void insert_busy_link(struct page *page, const struct peer *peer)
{
    uint32_t at = page->nlinks;
    while (at > 0 && page->links[at - 1].messages < peer->sent_messages)
        at--;
    if (at == PAGE_LINKS)
        return;
    const uint32_t last = MIN(page->nlinks, PAGE_LINKS - 1);
    memmove(&page->links[at + 1], &page->links[at], (last - at) * sizeof(page->links[0]));
    struct page_link *l = &page->links[at];
    *l = (struct page_link){
        .peer = (int32_t)peer->rank, .messages = peer->sent_messages, .bytes = peer->sent_bytes};
    peer_describe(peer, l->how, sizeof(l->how));
    page->nlinks = last + 1;
}

static void doctor_update_page(struct net *net, uint64_t now)
{
    struct page *page = own.page;
    uint64_t messages = 0, bytes = 0;
    page_begin_change(page);
    page->npeers = page->nlinks = 0;
    for (uint32_t r = 0; r < net->size; r++) {
        const struct peer *peer = net->peers[r];
        if (!peer)
            continue;
        page->npeers++;
        messages += peer->sent_messages;
        bytes += peer->sent_bytes;
        if (peer->sent_messages > 0)
            insert_busy_link(page, peer);
    }
    page->messages = messages;
    page->bytes = bytes;
    doctor_paces(page, net);
    if (the_proc)
        write_unexpected(page, the_proc);
    page->ticked = now;
    page_end_change(page);
}

static const struct net_doctor doctor_hooks = {.waits = doctor_wait_begins,
                                               .stirs = doctor_wait_updates,
                                               .ends = doctor_wait_ends,
                                               .tick = doctor_update_page};

void doctor_open(struct proc *p)
{
    if (!doctor.value)
        return;
    if (!own.page)
        own.page = page_open(&own.fd);
    struct page *page = own.page;
    if (!page)
        return;
    page->rank = p->rank;
    page->ranks = p->size;
    page->node = p->boot->node;
    page->nodes = p->boot->nnodes;
    page->local_rank = p->boot->local_rank;
    page->life = PAGE_ALIVE;
    snprintf(page->job, sizeof(page->job), "%s", p->boot->job);
    snprintf(page->host, sizeof(page->host), "%s", p->boot->host);
    snprintf(page->launcher, sizeof(page->launcher), "%s", p->boot->launcher);
    atomic_thread_fence(memory_order_release);
    page->magic = PAGE_MAGIC;
    p->page = page;
    p->net->doctor = &doctor_hooks;
}

/* Called after the communicators, and with them their entries of the page, are freed. */
void doctor_close(void)
{
    if (own.page)
        own.page->life = PAGE_FINALIZED;
}

/* Removes the page when the library is unloaded. */
static __attribute__((destructor)) void doctor_unload(void)
{
    page_close(own.page, own.fd);
    own.page = NULL;
}
