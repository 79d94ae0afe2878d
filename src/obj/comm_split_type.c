/* comm_split_type.c: MPI_Comm_split_type: by shared memory, by a kind of hardware that the program names, by
 * the next smaller resource, or by process set. Every process contributes the resources to which it is bound;
 * colours are computed from them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "boot/boot.h"
#include "obj/hints.h"
#include "obj/info.h"
#include "obj/hardware.h"
#include "obj/comm_split.h"
#include "obj/session.h"

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
