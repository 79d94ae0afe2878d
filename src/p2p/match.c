/* match.c: the slow path of matching: growth, wildcards, removal.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/match.h"

#include <stdlib.h>

#include "base/err.h"

#define FIRST_BUCKETS 256u
#define LOAD_MAX      2u /* entries per bucket before the tables double */

static struct list *buckets_new(uint32_t n)
{
    struct list *b = malloc(n * sizeof(*b));
    for (uint32_t i = 0; b && i < n; i++)
        list_init(&b[i]);
    return b;
}

int match_open(struct match_table *t)
{
    *t = (struct match_table){.nbuckets = FIRST_BUCKETS};
    for (int kind = 0; kind < MATCH_KINDS; kind++) {
        t->buckets[kind] = buckets_new(t->nbuckets);
        if (!t->buckets[kind]) {
            match_close(t);
            return err_set(MPI_ERR_NO_MEM, "out of memory for message matching");
        }
    }
    return 0;
}

void match_close(struct match_table *t)
{
    for (int kind = 0; kind < MATCH_KINDS; kind++)
        free(t->buckets[kind]);
}

static void match_insert_entry(struct match_table *t, struct match_entry *e, int kind)
{
    uint32_t hash = match_hash(envelope_with_wildcards(e->env, kind));
    list_append(&t->buckets[kind][hash & (t->nbuckets - 1)], &e->link[kind]);
}

static struct match_entry *entry_of_link(struct list *node, int kind)
{
    return (struct match_entry *)(node - kind);
}

/* Doubling keeps the order within each new bucket, since old buckets are emptied front to back and two
 * entries with the same key come from the same bucket. Out of memory is no error: the buckets only get
 * longer. */
static void match_grow_kind(struct match_table *t, int kind, uint32_t old, struct list *fresh)
{
    struct list *from = t->buckets[kind];
    t->buckets[kind] = fresh;
    for (uint32_t i = 0; i < old; i++)
        list_foreach_safe(pos, after, &from[i]) match_insert_entry(t, entry_of_link(pos, kind), kind);
    free(from);
}

static void match_grow_table(struct match_table *t)
{
    struct list *fresh[MATCH_KINDS] = {0};
    uint32_t old = t->nbuckets;
    for (int kind = 0; kind < MATCH_KINDS; kind++) {
        fresh[kind] = buckets_new(old * 2);
        if (!fresh[kind]) {
            while (kind-- > 0)
                free(fresh[kind]);
            return;
        }
    }
    t->nbuckets = old * 2;
    for (int kind = 0; kind < MATCH_KINDS; kind++)
        match_grow_kind(t, kind, old, fresh[kind]);
}

void posted_insert_hashed(struct match_table *t, struct match_entry *e)
{
    if (unlikely(t->count >= t->nbuckets * LOAD_MAX))
        match_grow_table(t);
    int kind = match_kind(e->env);
    match_insert_entry(t, e, kind);
    t->posted[kind]++;
    t->count++;
}

void posted_remove_hashed(struct match_table *t, struct match_entry *e)
{
    int kind = match_kind(e->env);
    list_remove(&e->link[kind]);
    t->posted[kind]--;
    t->count--;
}

struct match_entry *posted_find_wild(struct match_table *t, struct envelope env)
{
    struct match_entry *best = NULL;
    for (int kind = 0; kind < MATCH_KINDS; kind++) {
        if (t->posted[kind] == 0)
            continue;
        struct match_entry *e = match_find_first(t, envelope_with_wildcards(env, kind), kind);
        if (e && (!best || e->order < best->order))
            best = e;
    }
    return best;
}

void unexpected_add(struct match_table *t, struct match_entry *e)
{
    if (unlikely(t->count >= t->nbuckets * LOAD_MAX))
        match_grow_table(t);
    match_insert_entry(t, e, MATCH_EXACT);
    for (int kind = 1; t->wild && kind < MATCH_KINDS; kind++)
        match_insert_entry(t, e, kind);
    t->count++;
}

void unexpected_remove(struct match_table *t, struct match_entry *e)
{
    for (int kind = 0; kind < (t->wild ? MATCH_KINDS : 1); kind++)
        list_remove(&e->link[kind]);
    t->count--;
}

/* Merges two sorted chains of entries, linked by link[MATCH_ANY].next and ended by NULL. */
static struct list *chain_merge(struct list *a, struct list *b)
{
    struct list first, *last = &first;
    while (a && b) {
        struct list **older =
            entry_of_link(a, MATCH_ANY)->order < entry_of_link(b, MATCH_ANY)->order ? &a : &b;
        last = last->next = *older;
        *older = last->next;
    }
    last->next = a ? a : b;
    return first.next;
}

/* Removes the first n > 0 entries from the chain and sorts them, oldest first. Allocates no memory. */
static struct list *chain_sort(struct list **chain, uint32_t n)
{
    if (n == 1) {
        struct list *only = *chain;
        *chain = only->next;
        only->next = NULL;
        return only;
    }
    struct list *a = chain_sort(chain, n / 2), *b = chain_sort(chain, n - n / 2);
    return chain_merge(a, b);
}

/* Enters the waiting messages under the wildcard keys, oldest first, at the program's first wildcard
 * receive. */
static void index_by_wildcards(struct match_table *t)
{
    struct list *waiting = NULL;
    t->wild = true;
    for (uint32_t i = 0; i < t->nbuckets; i++)
        list_foreach(pos, &t->buckets[MATCH_EXACT][i])
        {
            struct list *node = &entry_of_link(pos, MATCH_EXACT)->link[MATCH_ANY];
            node->next = waiting;
            waiting = node;
        }
    if (t->count)
        waiting = chain_sort(&waiting, t->count);
    while (waiting) {
        struct match_entry *e = entry_of_link(waiting, MATCH_ANY);
        waiting = waiting->next;
        for (int kind = 1; kind < MATCH_KINDS; kind++)
            match_insert_entry(t, e, kind);
    }
}

struct match_entry *unexpected_find(struct match_table *t, struct envelope env)
{
    int kind = match_kind(env);
    if (kind != MATCH_EXACT && !t->wild)
        index_by_wildcards(t);
    return t->count ? match_find_first(t, env, kind) : NULL;
}
