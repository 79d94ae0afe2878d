/* pool.c: the slow half of the pool: blocks from malloc.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"

#include <stdlib.h>

#include "base/err.h"

void pool_init(struct pool *pool, size_t item_size, size_t per_block)
{
    *pool = (struct pool){.item_size = ALIGN_UP(MAX(item_size, sizeof(struct pool_node)), CACHE_LINE),
                          .per_block = per_block};
}

int pool_grow(struct pool *pool)
{
    char *block = NULL;
    if (posix_memalign((void **)&block, CACHE_LINE, CACHE_LINE + pool->item_size * pool->per_block) != 0)
        return err_set(MPI_ERR_NO_MEM, "out of memory for %zu objects of %zu bytes", pool->per_block,
                       pool->item_size);
    struct pool_node *head = (struct pool_node *)block;
    head->next = pool->blocks;
    pool->blocks = head;
    for (size_t i = pool->per_block; i-- > 0;)
        pool_put(pool, block + CACHE_LINE + i * pool->item_size);
    return 0;
}

void pool_destroy(struct pool *pool)
{
    while (pool->blocks) {
        struct pool_node *next = pool->blocks->next;
        free(pool->blocks);
        pool->blocks = next;
    }
    pool->free = NULL;
}
