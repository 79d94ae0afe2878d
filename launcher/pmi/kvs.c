/* kvs.c: a chained hash table that doubles when it is full.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "pmi/kvs.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/util.h"

static uint64_t kvs_hash(const char *key)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (; *key; key++)
        h = (h ^ (unsigned char)*key) * 1099511628211u;
    return h;
}

static struct kvs_entry **kvs_find_slot(const struct kvs *s, const char *key)
{
    struct kvs_entry **p = &s->bucket[kvs_hash(key) & (s->nbuckets - 1)];
    while (*p && strcmp((*p)->key, key) != 0)
        p = &(*p)->next;
    return p;
}

static void kvs_grow(struct kvs *s)
{
    struct kvs old = *s;
    s->nbuckets = old.nbuckets ? old.nbuckets * 2 : 64;
    s->bucket = xcalloc(s->nbuckets, sizeof(*s->bucket));
    for (size_t i = 0; i < old.nbuckets; i++)
        for (struct kvs_entry *e = old.bucket[i], *next; e; e = next) {
            struct kvs_entry **at = &s->bucket[kvs_hash(e->key) & (s->nbuckets - 1)];
            next = e->next;
            e->next = *at;
            *at = e;
        }
    free(old.bucket);
}

void kvs_put(struct kvs *s, const char *key, const char *value)
{
    if (s->n >= s->nbuckets)
        kvs_grow(s);
    struct kvs_entry **p = kvs_find_slot(s, key);
    if (*p) {
        free((*p)->value);
        (*p)->value = xstrdup(value);
        return;
    }
    struct kvs_entry *e = xcalloc(1, sizeof(*e));
    e->key = xstrdup(key);
    e->value = xstrdup(value);
    *p = e;
    s->n++;
}

const char *kvs_get(const struct kvs *s, const char *key)
{
    struct kvs_entry *e = s->nbuckets ? *kvs_find_slot(s, key) : NULL;
    return e ? e->value : NULL;
}

bool kvs_remove(struct kvs *s, const char *key)
{
    struct kvs_entry **p = s->nbuckets ? kvs_find_slot(s, key) : NULL;
    if (!p || !*p)
        return false;
    struct kvs_entry *e = *p;
    *p = e->next;
    free(e->key);
    free(e->value);
    free(e);
    s->n--;
    return true;
}

void kvs_free(struct kvs *s)
{
    for (size_t i = 0; i < s->nbuckets; i++)
        while (s->bucket[i])
            kvs_remove(s, s->bucket[i]->key);
    free(s->bucket);
    *s = (struct kvs){0};
}
