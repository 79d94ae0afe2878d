/* comm_split.c: MPI_Comm_split on both kinds of communicators: every process receives all colours and keys
 * and finds its own group by sorting.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/comm_split.h"

#include <stdlib.h>

struct candidate {
    int32_t key;
    int rank;
};

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* The group of members whose record has this colour, ordered by key, then by rank. */
static int split_group(const struct split_record *records, const struct group *from, int color, uint32_t me,
                       struct group **out)
{
    size_t size = (size_t)from->size;
    struct candidate *chosen = malloc((size + 1) * sizeof(*chosen));
    uint32_t *table = malloc((size + 1) * sizeof(*table));
    int n = 0, rc = MPI_SUCCESS;
    if (!chosen || !table)
        rc = err_set(MPI_ERR_NO_MEM, "out of memory: cannot split a communicator of %zu processes", size);
    for (int i = 0; i < from->size && !rc; i++)
        if (records[i].color == color)
            chosen[n++] = (struct candidate){records[i].key, i};
    if (!rc) {
        qsort(chosen, (size_t)n, sizeof(*chosen), compare_candidates);
        for (int i = 0; i < n; i++)
            table[i] = group_job_rank(from, chosen[i].rank);
        rc = group_from_table(me, table, n, out);
    }
    free(chosen);
    free(table);
    return rc;
}

int split_build_comm(struct creation *c, const struct split_record *records, int color)
{
    struct comm *parent = c->parent;
    uint32_t me = parent->proc->rank;
    struct group *group, *remote = NULL;
    if (color == MPI_UNDEFINED)
        return MPI_SUCCESS;
    int rc = split_group(records, parent->group, color, me, &group);
    if (rc)
        return rc;
    if (parent->remote) {
        rc = split_group(records + parent->size, parent->remote, color, me, &remote);
        if (rc || remote->size == 0) { /* nobody on the other side has this colour: no communicator */
            group_release(group);
            if (!rc)
                group_release(remote);
            return rc;
        }
    }
    return creation_build_comm(c, group, remote);
}

static int build_split(struct creation *c)
{
    return split_build_comm(c, (const struct split_record *)(void *)c->agree.round.records, c->record[0]);
}

int comm_split(struct comm *parent, int color, int key, struct comm **out)
{
    struct creation *c;
    int rc = creation_open(parent, "part of", build_split, &c);
    if (rc)
        return rc;
    if (color < 0 && color != MPI_UNDEFINED)
        c->agree.local_error =
            err_set(MPI_ERR_ARG, "color is %d; it must not be negative, or be MPI_UNDEFINED", color);
    c->agree.wanted = parent->remote ? 2 : 1;
    c->record[0] = color;
    c->record[1] = key;
    c->agree.round.record_size = sizeof(struct split_record);
    *out = NULL;
    return creation_run(c, out);
}
