/* nodemap.c: parses and writes node maps. The text may come from another launcher: numbers are limited,
 * and the number of ranks limits the work.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "boot/nodemap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODE_MAX (1u << 24)

struct block {
    uint32_t first, nodes, per_node;
};

static bool read_number(const char **p, uint32_t min, uint32_t *out)
{
    uint32_t v = 0;
    const char *s = *p + strspn(*p, " ");
    if (*s < '0' || *s > '9')
        return false;
    for (; *s >= '0' && *s <= '9'; s++) {
        v = v * 10 + (uint32_t)(*s - '0');
        if (v > NODE_MAX)
            return false;
    }
    *p = s + strspn(s, " ");
    *out = v;
    return v >= min;
}

static bool read_char(const char **p, char c)
{
    if (**p != c)
        return false;
    (*p)++;
    *p += strspn(*p, " ");
    return true;
}

static bool read_block(const char **p, struct block *b)
{
    return read_char(p, '(') && read_number(p, 0, &b->first) && read_char(p, ',') &&
           read_number(p, 1, &b->nodes) && read_char(p, ',') && read_number(p, 1, &b->per_node) &&
           read_char(p, ')');
}

/* Assigns the ranks of one block from rank *r on; stops at size. */
static void place_block(const struct block *b, uint32_t size, uint32_t *node_of, uint32_t *r)
{
    for (uint32_t i = 0; i < b->nodes; i++)
        for (uint32_t j = 0; j < b->per_node; j++) {
            if (*r == size)
                return;
            node_of[(*r)++] = b->first + i;
        }
}

/* Renumbers nodes densely in order of first use. */
static bool nodemap_renumber(uint32_t size, uint32_t *node_of, uint32_t *nnodes)
{
    uint32_t max = 0, used = 0;
    for (uint32_t r = 0; r < size; r++)
        max = node_of[r] > max ? node_of[r] : max;
    uint32_t *dense = calloc((size_t)max + 1, sizeof(*dense));
    if (!dense)
        return false;
    for (uint32_t r = 0; r < size; r++) {
        uint32_t *d = &dense[node_of[r]];
        if (*d == 0)
            *d = ++used;
        node_of[r] = *d - 1;
    }
    free(dense);
    *nnodes = used;
    return true;
}

bool nodemap_parse(const char *text, uint32_t size, uint32_t *node_of, uint32_t *nnodes)
{
    static const char head[] = "(vector,";
    if (strncmp(text, head, sizeof(head) - 1) != 0)
        return false;
    const char *blocks = text + sizeof(head) - 1;
    uint32_t r = 0;
    do {
        const char *p = blocks;
        do {
            struct block b;
            if (!read_block(&p, &b))
                return false;
            place_block(&b, size, node_of, &r);
        } while (read_char(&p, ','));
        if (!read_char(&p, ')') || *p)
            return false;
    } while (r < size);
    return nodemap_renumber(size, node_of, nnodes);
}

/* The longest block that describes the ranks from r on. */
static struct block nodemap_find_longest_block(const uint32_t *node_of, uint32_t size, uint32_t r)
{
    struct block b = {node_of[r], 0, 0};
    uint32_t end = r;
    while (end < size && node_of[end] == b.first)
        end++;
    b.per_node = end - r;
    b.nodes = 1;
    for (;;) {
        uint32_t next = b.first + b.nodes, n = 0;
        while (n < b.per_node && end + n < size && node_of[end + n] == next)
            n++;
        /* A run of another length on the next node begins the next block. */
        if (n < b.per_node || (end + n < size && node_of[end + n] == next))
            break;
        b.nodes++;
        end += n;
    }
    return b;
}

static bool nodemap_block_repeats(const struct block *b, const uint32_t *node_of, uint32_t size)
{
    uint32_t period = b->nodes * b->per_node;
    for (uint32_t r = 0; r < size; r++)
        if (node_of[r] != b->first + r % period / b->per_node)
            return false;
    return true;
}

char *nodemap_format(const uint32_t *node_of, uint32_t size)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    if (!f)
        return NULL;
    fputs("(vector", f);
    for (uint32_t r = 0; r < size;) {
        struct block b = nodemap_find_longest_block(node_of, size, r);
        fprintf(f, ",(%u,%u,%u)", b.first, b.nodes, b.per_node);
        if (r == 0 && nodemap_block_repeats(&b, node_of, size))
            break;
        r += b.nodes * b.per_node;
    }
    fputc(')', f);
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
