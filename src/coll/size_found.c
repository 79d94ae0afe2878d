/* size_found.c: what trials of sizes have found in this process, so that the next communicator of the shape has it for nothing, and
 * people can read it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/size_trial.h"

#define FOUND 48

struct size_all {
    int count;
    struct size_found found[FOUND];
};

const struct size_found *size_find(const struct proc *p, const struct trial_shape *s, enum coll_kind kind,
                                   int class)
{
    const struct size_all *all = p->coll_sizes;
    for (int i = 0; all && i < all->count; i++) {
        const struct size_found *f = &all->found[i];
        if (f->kind == kind && f->class == class && trial_same_shape(&f->shape, s))
            return f;
    }
    return NULL;
}

/* Forgets the oldest when there are too many. Without memory nothing is remembered, which costs another trial. */
void size_keep(struct proc *p, const struct size_found *f)
{
    struct size_all *all = p->coll_sizes;
    if (!all)
        all = p->coll_sizes = calloc(1, sizeof(*all));
    if (!all || size_find(p, &f->shape, f->kind, f->class))
        return;
    if (all->count == FOUND)
        memmove(&all->found[0], &all->found[1], sizeof(all->found[0]) * (size_t)--all->count);
    all->found[all->count++] = *f;
}

static void describe(const struct size_found *f, FILE *out)
{
    char name[64];
    size_name(&f->candidate[f->best].choice, name, sizeof(name));
    fprintf(out, "%s %s %llu bytes, %d ranks on %d nodes: %s, %.1f us; tried", coll_kind_name(f->kind),
            f->class % 2 ? "of" : "up to", (unsigned long long)size_limit(f->class), f->shape.ranks,
            f->shape.nodes, name, (double)f->ns[f->best] * 1e-3);
    for (int i = 0; i < f->count; i++) {
        if (f->ns[i] == 0)
            continue; /* time was up */
        size_name(&f->candidate[i].choice, name, sizeof(name));
        fprintf(out, " %s%s %.1f (predicted %.1f)", i == 0 ? "rule:" : "", name, (double)f->ns[i] * 1e-3,
                f->candidate[i].predicted);
    }
}

void size_describe(const struct proc *p, char *out, size_t size)
{
    const struct size_all *all = p->coll_sizes;
    FILE *f = fmemopen(out, size, "w");
    if (!f)
        return;
    if (!all || all->count == 0)
        fprintf(f,
                "no trial is over: one begins at the %dth blocking call of an operation and size on "
                "several nodes",
                SIZE_TRIAL_AT);
    for (int i = all ? all->count - 1 : -1; i >= 0; i--) {
        describe(&all->found[i], f);
        fputs(i > 0 ? "\n" : "", f);
    }
    fclose(f);
}
