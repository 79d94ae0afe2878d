/* match.h: finds the matching receive of a message and the matching message of a receive. Entries are in hash
 * buckets by (context, source, tag), so that the cost does not depend on how many receives are posted or how
 * many messages wait.
 *
 * A posted receive is stored under its own key, wildcards included; an incoming message is searched under at
 * most four keys, and only under those for which a receive is posted. An unexpected message is stored under
 * its full key and, once the program has used a wildcard, under the three keys that a wildcard receive may
 * use. When several match, the oldest is taken, as MPI's ordering rules require.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_MATCH_H
#define FP_P2P_MATCH_H

#include <mpi.h>

#include "base/list.h"
#include "p2p/envelope.h"

enum { MATCH_EXACT, MATCH_ANY_SOURCE, MATCH_ANY_TAG, MATCH_ANY, MATCH_KINDS };

struct match_entry {
    struct list link[MATCH_KINDS];
    struct envelope env;
    uint64_t order;
    bool posted; /* the entry is a receive in the table of posted receives */
};

struct match_table {
    struct list *buckets[MATCH_KINDS]; /* a hash table for each kind of key, of entries by their link[kind] */
    uint32_t nbuckets;                 /* buckets of each hash table, a power of two */
    uint32_t count;                    /* entries in the hash tables */
    uint32_t posted[MATCH_KINDS];      /* posted receives of each kind */
    struct match_entry *lone;          /* the only posted receive, outside of the hash tables; NULL: none */
    bool wild;                         /* unexpected messages are also stored under the wildcard keys */
};

int match_open(struct match_table *t);
void match_close(struct match_table *t);

static inline int match_kind(struct envelope env)
{
    return (env.source == MPI_ANY_SOURCE ? MATCH_ANY_SOURCE : 0) +
           (env.tag == MPI_ANY_TAG ? MATCH_ANY_TAG : 0);
}

static inline uint32_t match_hash(struct envelope env)
{
    uint64_t h = (env.context << 32 | (uint32_t)env.tag) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 32) + (uint64_t)(uint32_t)env.source * 0xc2b2ae3d27d4eb4fu;
    return (uint32_t)(h >> 32);
}

static inline bool envelope_equal(struct envelope a, struct envelope b)
{
    return a.context == b.context && a.source == b.source && a.tag == b.tag;
}

/* Returns the envelope with source or tag replaced by the wildcards of `kind`: the key of such receives. */
static inline struct envelope envelope_with_wildcards(struct envelope env, int kind)
{
    if (kind & MATCH_ANY_SOURCE)
        env.source = MPI_ANY_SOURCE;
    if (kind & MATCH_ANY_TAG)
        env.tag = MPI_ANY_TAG;
    return env;
}

/* Adds a posted receive to the hash tables. */
void posted_insert_hashed(struct match_table *t, struct match_entry *e);
void posted_remove_hashed(struct match_table *t, struct match_entry *e);
struct match_entry *posted_find_wild(struct match_table *t, struct envelope env);

static inline void posted_add(struct match_table *t, struct match_entry *e)
{
    e->posted = true;
    if (likely(t->count == 0 && !t->lone)) {
        t->lone = e;
        return;
    }
    if (t->lone)
        posted_insert_hashed(t, t->lone);
    t->lone = NULL;
    posted_insert_hashed(t, e);
}

static inline void posted_remove(struct match_table *t, struct match_entry *e)
{
    e->posted = false;
    if (likely(t->lone == e))
        t->lone = NULL;
    else
        posted_remove_hashed(t, e);
}

static inline bool envelope_matches(struct envelope receive, struct envelope message)
{
    return receive.context == message.context &&
           (receive.source == message.source || receive.source == MPI_ANY_SOURCE) &&
           (receive.tag == message.tag || receive.tag == MPI_ANY_TAG);
}

static inline struct match_entry *match_find_first(struct match_table *t, struct envelope key, int kind)
{
    struct list *head = &t->buckets[kind][match_hash(key) & (t->nbuckets - 1)];
    list_foreach(pos, head)
    {
        struct match_entry *e = (struct match_entry *)(pos - kind); /* link is the entry's first member */
        if (likely(envelope_equal(envelope_with_wildcards(e->env, kind), key)))
            return e;
    }
    return NULL;
}

/* The oldest posted receive that matches this message, or NULL. Not removed. */
static inline struct match_entry *posted_find(struct match_table *t, struct envelope env)
{
    if (likely(t->lone != NULL))
        return likely(envelope_matches(t->lone->env, env)) ? t->lone : NULL;
    if (likely(t->posted[MATCH_EXACT] == t->count))
        return t->count ? match_find_first(t, env, 0) : NULL;
    return posted_find_wild(t, env);
}

void unexpected_add(struct match_table *t, struct match_entry *e);
void unexpected_remove(struct match_table *t, struct match_entry *e);
/* The oldest unexpected message that matches this receive (with wildcards), or NULL. Not removed. */
struct match_entry *unexpected_find(struct match_table *t, struct envelope env);

#endif
