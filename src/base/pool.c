/* pool.c: allocates the blocks of a pool, from malloc or from the memory of objects.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/objmem.h"

void pool_init(struct pool *pool, size_t item_size, size_t per_block)
{
    *pool = (struct pool){.item_size = ALIGN_UP(MAX(item_size, sizeof(struct pool_node)), CACHE_LINE),
                          .per_block = per_block};
}

void pool_init_objects(struct pool *pool, size_t item_size, size_t per_block)
{
    pool_init(pool, item_size, per_block);
    pool->objects = true;
}

int pool_grow(struct pool *pool)
{
    /* A cache line for the link between blocks, and one to align the items. */
    const size_t size = 2 * CACHE_LINE + pool->item_size * pool->per_block;
    char *block = pool->objects ? objmem_new(size) : malloc(size);
    if (!block)
        return err_set(MPI_ERR_NO_MEM, "out of memory for %zu objects of %zu bytes", pool->per_block,
                       pool->item_size);
    struct pool_node *head = (struct pool_node *)block;
    head->next = pool->blocks;
    pool->blocks = head;
    char *items = (char *)ALIGN_UP((uintptr_t)block + sizeof(*head), CACHE_LINE);
    for (size_t i = pool->per_block; i-- > 0;)
        pool_put(pool, items + i * pool->item_size);
    return 0;
}

void pool_destroy(struct pool *pool)
{
    while (pool->blocks) {
        struct pool_node *next = pool->blocks->next;
        if (pool->objects)
            objmem_free(pool->blocks);
        else
            free(pool->blocks);
        pool->blocks = next;
    }
    pool->free = NULL;
}
