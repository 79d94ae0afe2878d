/* comm_split.c: MPI_Comm_split and MPI_Comm_split_type: by colours, by shared memory, by a kind of hardware that the program names, by
 * the next smaller resource, or by process set. Every process contributes the resources to which it is bound;
 * colours are computed from them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "obj/create.h"
#include "base/hash.h"
#include "boot/boot.h"
#include "obj/hints.h"
#include "obj/info.h"
#include "obj/hardware.h"
#include "obj/session.h"

/* The last step of MPI_Comm_split and MPI_Comm_split_type. MPI_Comm_split on both kinds of communicators:
 * every process receives all colours and keys and finds its own group by sorting. */

struct split_record {
    int32_t color, key;
};

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

/* Creates the communicator of the processes whose record has this colour, ordered by key, then by rank.
 * `records` lists the local group, then the remote group of an intercommunicator. Creates nothing for
 * MPI_UNDEFINED or if no process of the remote group has this colour. */
static int split_build_comm(struct creation *c, const struct split_record *records, int color)
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

struct place_record {
    struct split_record split;
    int32_t type;
    int32_t level;                  /* hardware level that determines the colour; -1: none */
    int32_t place[HARDWARE_LEVELS]; /* number of the resource at each level; -1: not bound to one */
};
_Static_assert(sizeof(struct place_record) <= sizeof(((struct creation *)0)->record), "the record fits");

/* hardware: the resource type of the split, or NULL for another kind of split. */
static int make_typed_comm(struct creation *c, const struct split_record *records, int color,
                           const char *hardware)
{
    int rc = split_build_comm(c, records, color);
    if (rc || !hardware || !c->made)
        return rc;
    rc = info_create(&c->made->info);
    return rc ? rc : info_set(c->made->info, HINT_HARDWARE, hardware);
}

/* The first level at which the processes are bound to different resources; -1 if there is none. */
static int find_dividing_level(const struct place_record *all, int n)
{
    for (int level = 0; level < HARDWARE_LEVELS; level++)
        for (int i = 1; i < n; i++)
            if (all[i].place[level] != all[0].place[level])
                return level;
    return -1;
}

static int build_split_type(struct creation *c)
{
    const struct place_record *all = (const struct place_record *)(void *)c->agree.round.records;
    const struct place_record *mine = &all[c->parent->rank];
    int n = c->parent->size + (c->parent->remote ? c->parent->remote->size : 0);
    struct split_record *records = malloc(((size_t)n + 1) * sizeof(*records));
    if (!records)
        return err_set(MPI_ERR_NO_MEM, "out of memory: cannot split a communicator of %d processes", n);
    int level = find_dividing_level(all, n);
    for (int i = 0; i < n; i++) {
        records[i] = all[i].split;
        /* MPI_COMM_TYPE_HW_UNGUIDED: split at the next smaller resource, if it divides this communicator. */
        if (all[i].type == MPI_COMM_TYPE_HW_UNGUIDED)
            records[i].color = level < 0 || all[i].place[level] < 0 ? MPI_UNDEFINED : all[i].place[level];
    }
    int color = records[c->parent->rank].color;
    if (mine->type != MPI_COMM_TYPE_HW_UNGUIDED)
        level = mine->level;
    int rc = make_typed_comm(c, records, color, level < 0 ? NULL : hardware_level_name(level));
    free(records);
    return rc;
}

/* The colour for a split by an info key that names a kind of hardware: the resource that this process is
 * bound to. */
static int hardware_color(struct place_record *r, const char *kind)
{
    r->level = kind ? hardware_level(kind) : -1;
    return r->level < 0 || r->place[r->level] < 0 ? MPI_UNDEFINED : r->place[r->level];
}

static int pset_color(const struct proc *p, const char *name)
{
    switch (pset_find(name)) {
    case PSET_WORLD:
        return 0;
    case PSET_SELF:
        return (int)p->rank;
    }
    return MPI_UNDEFINED;
}

static int choose_color(struct comm *parent, int type, struct info *info, struct place_record *r, int *color)
{
    const char *kind = info ? info_get(info, HINT_HARDWARE) : NULL;
    const char *pset = info ? info_get(info, "mpi_pset_name") : NULL;
    switch (type) {
    case MPI_UNDEFINED:
    case MPI_COMM_TYPE_HW_UNGUIDED:
        *color = MPI_UNDEFINED;
        return MPI_SUCCESS;
    case MPI_COMM_TYPE_SHARED:
        *color = r->place[HARDWARE_NODE];
        return MPI_SUCCESS;
    case MPI_COMM_TYPE_HW_GUIDED:
        *color = hardware_color(r, kind);
        return MPI_SUCCESS;
    case MPI_COMM_TYPE_RESOURCE_GUIDED:
        *color = !kind && pset ? pset_color(parent->proc, pset) : hardware_color(r, kind);
        return MPI_SUCCESS;
    }
    return err_set(MPI_ERR_ARG, "split_type is %d, which is not one of MPI_COMM_TYPE_...", type);
}

/* Resource numbers are unique only within a job: hash them together with the id of the job. */
static void split_separate_worlds(const struct proc *p, int32_t *place)
{
    for (int i = 0; i < HARDWARE_LEVELS; i++)
        if (place[i] >= 0)
            place[i] = hash_positive(hash_add(hash_add(HASH_START, &p->net->world, sizeof(p->net->world)),
                                              &place[i], sizeof(place[i])));
}

int comm_split_type(struct comm *parent, int type, int key, struct info *info, struct comm **out)
{
    struct creation *c;
    int rc = creation_open(parent, "part of", build_split_type, &c);
    if (rc)
        return rc;
    struct place_record *r = (struct place_record *)(void *)c->record;
    hardware_find_places(parent->proc->boot, r->place);
    if (parent->guests)
        split_separate_worlds(parent->proc, r->place);
    r->type = type;
    r->level = -1;
    r->split.key = key;
    c->agree.wanted = parent->remote ? 2 : 1;
    c->agree.local_error = choose_color(parent, type, info, r, &r->split.color);
    c->agree.round.record_size = sizeof(*r);
    *out = NULL;
    rc = creation_run(c, out);
    if (!rc && *out)
        rc = hints_apply(&(*out)->info, info);
    /* The program did not name the hardware, so its info object returns the name. */
    if (!rc && *out && info && type == MPI_COMM_TYPE_HW_UNGUIDED)
        rc = info_set(info, HINT_HARDWARE, info_get((*out)->info, HINT_HARDWARE));
    return rc;
}
