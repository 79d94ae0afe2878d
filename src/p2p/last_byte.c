/* last_byte.c: polls the last bytes of transfers in flight. See last_byte.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/last_byte.h"

/* Polls all bytes; restarts after a change, because completing one request may add or remove others. */
static int last_byte_poll(struct net_hook *hook)
{
    struct last_bytes *all = container_of(hook, struct last_bytes, hook);
    int events = 0;
    for (struct list *pos = all->watched.next; pos != &all->watched;) {
        struct last_byte *b = list_entry(pos, struct last_byte, link);
        pos = pos->next;
        if (!last_byte_changed(b))
            continue;
        last_byte_forget(all, b);
        b->changed(b);
        events++;
        pos = all->watched.next;
    }
    return events;
}

void last_bytes_open(struct last_bytes *all, struct net *net)
{
    *all = (struct last_bytes){.net = net, .hook.progress = last_byte_poll};
    list_init(&all->watched);
    list_init(&all->hook.link);
}

void last_bytes_close(struct last_bytes *all)
{
    list_foreach_safe(pos, after, &all->watched)
        last_byte_forget(all, list_entry(pos, struct last_byte, link));
}

void last_byte_watch(struct last_bytes *all, struct last_byte *b, bool unrung,
                     void (*changed)(struct last_byte *b))
{
    b->changed = changed;
    b->watched = true;
    b->unrung = unrung;
    if (all->count++ == 0)
        list_append(&all->net->hooks, &all->hook.link);
    all->net->unrung += unrung;
    list_append(&all->watched, &b->link);
}

void last_byte_forget(struct last_bytes *all, struct last_byte *b)
{
    if (!b->watched)
        return;
    b->watched = false;
    list_remove(&b->link);
    all->net->unrung -= b->unrung;
    if (--all->count == 0)
        list_remove(&all->hook.link);
}
