/* pool.h: objects of one size on a free list that grows by blocks; for objects that are allocated and
 * freed for each message.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_POOL_H
#define FP_BASE_POOL_H

#include <stdbool.h>
#include <stddef.h>

struct pool_node {
    struct pool_node *next;
};

struct pool {
    struct pool_node *free;
    struct pool_node *blocks; /* every block, for pool_destroy */
    size_t item_size;
    size_t per_block;
    bool objects; /* the user has handles of the items: blocks are allocated by objmem.h */
};

void pool_init(struct pool *pool, size_t item_size, size_t per_block);
void pool_init_objects(struct pool *pool, size_t item_size, size_t per_block);
void pool_destroy(struct pool *pool);
int pool_grow(struct pool *pool); /* adds a block; 0 or MPI_ERR_NO_MEM */

/* An object with undefined contents; NULL: out of memory. */
static inline void *pool_get(struct pool *pool)
{
    if (__builtin_expect(pool->free == NULL, 0) && pool_grow(pool) != 0)
        return NULL;
    struct pool_node *node = pool->free;
    pool->free = node->next;
    return node;
}

static inline void pool_put(struct pool *pool, void *item)
{
    struct pool_node *node = item;
    node->next = pool->free;
    pool->free = node;
}

#endif
