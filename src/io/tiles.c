/* tiles.c: see tiles.h. A view repeats with the extent of its tile. If all ranks have the same extent E,
 * each of the E bytes of one period is covered some number of times. Whether all these numbers are 1 is
 * computed without lists of pieces: a piece [from, to) contributes z^to - z^from modulo a prime, and the
 * sum over all ranks is z^E - 1 if every byte is covered once. Any other cover has that sum for at most E
 * of the 2^61 values of z.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/tiles.h"

#include <stdlib.h>

#include "dt/number.h"
#include "io/agree.h"

#define PRIME (((uint64_t)1 << 61) - 1)
#define BASE  0x11d0e9c3a6b5f27u /* z, an arbitrary number below PRIME */
/* Limit of the pieces of a tile; views with more pieces are not checked. */
#define PIECES_MAX 4096

static uint64_t tiles_multiply(uint64_t a, uint64_t b)
{
    const num_u128 product = (num_u128)a * b;
    const uint64_t sum = (uint64_t)(product & PRIME) + (uint64_t)(product >> 61);
    return sum >= PRIME ? sum - PRIME : sum;
}

static uint64_t tiles_power(uint64_t exponent)
{
    uint64_t result = 1;
    for (uint64_t base = BASE; exponent > 0; exponent >>= 1, base = tiles_multiply(base, base))
        if (exponent & 1)
            result = tiles_multiply(result, base);
    return result;
}

static uint64_t tiles_add(uint64_t a, uint64_t b)
{
    return (a + b) % PRIME;
}

static uint64_t tiles_range_sum(uint64_t from, uint64_t to)
{
    return tiles_add(tiles_power(to), PRIME - tiles_power(from));
}

/* Returns the contribution of piece [at, at + n) to the sum. The piece may continue in the next period. */
static uint64_t piece_range_sum(uint64_t at, uint64_t n, uint64_t period)
{
    at %= period;
    return at + n <= period ? tiles_range_sum(at, at + n)
                            : tiles_add(tiles_range_sum(at, period), tiles_range_sum(0, at + n - period));
}

bool tiles_describe_view(const struct file *f, const struct view *v, int64_t out[TILE_WORDS])
{
    const struct dtype *tile = v->tile;
    struct dt_cursor c;
    void *piece;
    size_t n;
    uint64_t sum = 0;
    if (f->comm->size == 1 || !file_writes(f) || !file_reads(f) || !f->guards || v->contiguous ||
        tile->size == 0 || !v->sorted || tile->true_lb + tile->true_extent > tile->extent)
        return false;
    dt_cursor_open(&c, v->tile, 1, NULL);
    for (int i = 0; (n = dt_cursor_next(&c, SIZE_MAX / 2, &piece)) > 0; i++) {
        if (i == PIECES_MAX)
            return false;
        sum =
            tiles_add(sum, piece_range_sum((uint64_t)v->disp + (uintptr_t)piece, n, (uint64_t)tile->extent));
    }
    out[TILE_DISP] = v->disp;
    out[TILE_EXTENT] = tile->extent;
    out[TILE_SUM] = (int64_t)sum;
    return true;
}

int tiles_agree(struct file *f, const int64_t mine[TILE_WORDS])
{
    const int ranks = f->comm->size;
    int64_t from = 0;
    struct coll_args args;
    uint64_t sum = 0;
    int64_t *all = malloc((size_t)ranks * TILE_WORDS * sizeof(*all));
    CHECK_MEMORY(all, "the views of a file");
    agree_args_gather(&args, f->comm, mine, all, TILE_WORDS);
    const int rc = agree_map_failure(f->comm, f->name, coll_run(&args));
    bool tiled = !rc;
    for (int r = 0; tiled && r < ranks; r++) {
        const int64_t *other = all + (size_t)r * TILE_WORDS;
        tiled = other[TILE_EXTENT] == all[TILE_EXTENT];
        sum = tiles_add(sum, (uint64_t)other[TILE_SUM]);
        from = MAX(from, other[TILE_DISP]);
    }
    if (tiled && sum == tiles_range_sum(0, (uint64_t)all[TILE_EXTENT]))
        f->view.tiled_from = from;
    free(all);
    return rc;
}
