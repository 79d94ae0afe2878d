/* results.c: stores the measured times of algorithms in the process and prints them (results.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/select/results.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "obj/proc.h"

#define RESULTS 64

struct results {
    int count;
    struct result result[RESULTS];
};

static bool same_class(const struct result *r, const struct result_shape *s, enum coll_kind kind, int class)
{
    return r->kind == kind && r->class == class && r->shape.ranks == s->ranks && r->shape.nodes == s->nodes &&
           r->shape.max_node_ranks == s->max_node_ranks;
}

static int find_result_index(const struct results *all, const struct result_shape *s, enum coll_kind kind,
                             int class)
{
    for (int i = 0; all && i < all->count; i++)
        if (same_class(&all->result[i], s, kind, class))
            return i;
    return -1;
}

const struct result *result_find(const struct proc *p, const struct result_shape *s, enum coll_kind kind,
                                 int class)
{
    const struct results *all = p->coll_results;
    const int i = find_result_index(all, s, kind, class);
    return i < 0 ? NULL : &all->result[i];
}

uint32_t result_get_cost(const struct result *r, const struct coll_choice *choice)
{
    for (int i = 0; r && i < r->count; i++) {
        const struct coll_choice *c = &r->candidate[i].choice;
        if (c->algorithm == choice->algorithm && c->segment == choice->segment && c->window == choice->window)
            return r->ns[i];
    }
    return 0;
}

/* Stores a result; drops the oldest one if the table is full. If memory is exhausted, nothing is stored,
 * and the next communicator measures again. */
void result_store(struct proc *p, const struct result *r)
{
    struct results *all = p->coll_results;
    if (!all)
        all = p->coll_results = calloc(1, sizeof(*all));
    if (!all)
        return;
    int old = find_result_index(all, &r->shape, r->kind, r->class);
    if (old < 0 && all->count == RESULTS)
        old = 0;
    if (old >= 0)
        memmove(&all->result[old], &all->result[old + 1],
                sizeof(all->result[0]) * (size_t)(--all->count - old));
    all->result[all->count++] = *r;
}

static void result_print(const struct result *r, FILE *out)
{
    char name[64];
    tuning_name(&r->candidate[r->best].choice, name, sizeof(name));
    fprintf(out, "%s %s %llu bytes, %d ranks on %d nodes: %s, %.1f us; tried", coll_kind_name(r->kind),
            r->class % 2 ? "of" : "up to", (unsigned long long)tuning_limit(r->class), r->shape.ranks,
            r->shape.nodes, name, r->ns[r->best] * 1e-3);
    for (int i = 0; i < r->count; i++) {
        if (r->ns[i] == 0)
            continue;
        tuning_name(&r->candidate[i].choice, name, sizeof(name));
        fprintf(out, " %s%s %.1f", i == 0 ? "rule:" : "", name, r->ns[i] * 1e-3);
        if (r->candidate[i].predicted > 0)
            fprintf(out, " (predicted %.1f)", r->candidate[i].predicted);
    }
}

void results_describe(const struct proc *p, char *out, size_t size)
{
    const struct results *all = p->coll_results;
    FILE *f = fmemopen(out, size, "w");
    if (!f)
        return;
    if (!all)
        fputs("nothing was measured: that begins at the 24th blocking call of an operation and size on "
              "several nodes",
              f);
    for (int i = all ? all->count - 1 : -1; i >= 0; i--) {
        result_print(&all->result[i], f);
        fputs(i ? "\n" : "", f);
    }
    fclose(f);
}
