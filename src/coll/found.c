/* found.c: see found.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/found.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/multicast_trial.h"
#include "coll/size_trial.h"

#define FOUND 64

struct found_all {
    int count;
    struct found found[FOUND];
};

static bool same_trial(const struct found *a, const struct found *b)
{
    return a->kind == b->kind && a->multicast == b->multicast && trial_same_shape(&a->shape, &b->shape);
}

static const struct found *find_like(const struct found_all *all, const struct found *like)
{
    for (int i = 0; all && i < all->count; i++)
        if (all->found[i].class == like->class && same_trial(&all->found[i], like))
            return &all->found[i];
    return NULL;
}

const struct found *found_find(const struct proc *p, const struct trial_shape *s, enum coll_kind kind,
                               int class)
{
    const struct found like = {.shape = *s, .kind = kind, .class = class};
    return find_like(p->coll_found, &like);
}

/* All classes of a trial. */
static void forget(struct found_all *all, const struct found *like)
{
    int left = 0;
    for (int i = 0; i < all->count; i++)
        if (!same_trial(&all->found[i], like))
            all->found[left++] = all->found[i];
    all->count = left;
}

/* Forgets the oldest when there are too many. Without memory nothing is remembered, which costs another trial. */
void found_keep(struct proc *p, const struct found *f)
{
    struct found_all *all = p->coll_found;
    if (!all)
        all = p->coll_found = calloc(1, sizeof(*all));
    if (!all)
        return;
    if (f->multicast && f->class == 0)
        forget(all, f);
    if (find_like(all, f))
        return;
    if (all->count == FOUND)
        memmove(&all->found[0], &all->found[1], sizeof(all->found[0]) * (size_t)--all->count);
    all->found[all->count++] = *f;
}

void found_fill(struct found *f, const struct pick *p, const struct trial_candidate *list)
{
    const int best = pick_best(p);
    f->best = 0;
    f->count = MIN(p->tries, TRIAL_MOST);
    for (int i = 0; i < f->count; i++) {
        const int c = p->order[i];
        f->best = c == best ? i : f->best;
        f->candidate[i] = list[c];
        f->ns[i] = pick_median(p, c);
    }
}

uint64_t found_code(const struct found *f)
{
    uint64_t index = 0;
    if (!f)
        return 0;
    const struct coll_choice *c = &f->candidate[f->best].choice;
    while (index < algorithms_count() && algorithms_get(index) != c->algorithm)
        index++;
    return index << 56 | (uint64_t)(c->window & 0xffff) << 40 | (uint64_t)(c->parameter[0] & 0x3f) << 34 |
           (uint64_t)c->by_node << 33 | (uint64_t)c->named << 32 | (uint32_t)c->segment;
}

/* ---- for people ---- */

static void name_of(const struct found *f, int i, char *out, size_t size)
{
    if (f->multicast && i > 0)
        snprintf(out, size, "multicast");
    else if (f->kind != COLL_BARRIER)
        size_name(&f->candidate[i].choice, out, size);
    else if (i == 0)
        snprintf(out, size, "%s", trial_rule_name(&f->shape));
    else
        trial_name(&f->candidate[i].choice, out, size);
}

/* The fewest bytes of a class of multicast. */
static uint64_t first_of(int class)
{
    return class > 0 ? multicast_trial_limit(class - 1) + 1 : 1;
}

static void describe(const struct found *f, FILE *out)
{
    const bool barrier = f->kind == COLL_BARRIER;
    const int digits = barrier ? 2 : 1;
    char name[64];
    name_of(f, f->best, name, sizeof(name));
    if (f->multicast)
        fprintf(out, "%s of %llu to %llu bytes, by multicast or not (%llu tried), ", coll_kind_name(f->kind),
                (unsigned long long)first_of(f->class), (unsigned long long)multicast_trial_limit(f->class),
                (unsigned long long)f->bytes);
    else if (!barrier)
        fprintf(out, "%s %s %llu bytes, ", coll_kind_name(f->kind), f->class % 2 ? "of" : "up to",
                (unsigned long long)size_limit(f->class));
    fprintf(out, "%d ranks on %d nodes: %s, %.*f us; tried", f->shape.ranks, f->shape.nodes, name, digits,
            (double)f->ns[f->best] * 1e-3);
    for (int i = 0; i < f->count; i++) {
        if (f->ns[i] == 0)
            continue; /* time was up */
        name_of(f, i, name, sizeof(name));
        fprintf(out, " %s%s %.*f", i == 0 ? "rule:" : "", name, digits, (double)f->ns[i] * 1e-3);
        if (!f->multicast)
            fprintf(out, " (predicted %.*f)", digits, f->candidate[i].predicted);
    }
    fputs(f->undecided ? "; time was up" : "", out);
}

/* Which sizes go by multicast, from all classes that were tried. */
static void describe_limits(const struct found_all *all, const struct found *f, FILE *out)
{
    unsigned won = 0;
    int ranges = 0;
    bool refused = false;
    for (int i = 0; i < all->count; i++)
        if (same_trial(&all->found[i], f)) {
            refused = refused || all->found[i].count == 0;
            won |= all->found[i].best > 0 ? 1u << all->found[i].class : 0;
        }
    fprintf(out, "%s, %d ranks on %d nodes: ", coll_kind_name(f->kind), f->shape.ranks, f->shape.nodes);
    for (int from = 0; won >> from; from++)
        if (won >> from & 1) {
            int to = from;
            while (won >> (to + 1) & 1)
                to++;
            fprintf(out, "%s%llu to %llu bytes", ranges++ ? ", " : "by multicast ",
                    (unsigned long long)first_of(from), (unsigned long long)multicast_trial_limit(to));
            from = to;
        }
    if (!ranges)
        fprintf(out, "never by multicast%s", refused ? ": the network refused a group" : "");
}

/* The newest of its trial has the limits before it. */
static bool leads(const struct found_all *all, int i)
{
    for (int later = i + 1; later < all->count; later++)
        if (same_trial(&all->found[later], &all->found[i]))
            return false;
    return all->found[i].multicast;
}

/* A line for each, the newest first. */
static void describe_all(const struct proc *p, bool barriers, const char *none, char *out, size_t size)
{
    const struct found_all *all = p->coll_found;
    int lines = 0;
    FILE *f = fmemopen(out, size, "w");
    if (!f)
        return;
    for (int i = all ? all->count - 1 : -1; i >= 0; i--)
        if ((all->found[i].kind == COLL_BARRIER) == barriers) {
            fputs(lines++ ? "\n" : "", f);
            if (leads(all, i)) {
                describe_limits(all, &all->found[i], f);
                fputs(all->found[i].count ? "\n" : "", f);
            }
            if (all->found[i].count)
                describe(&all->found[i], f);
        }
    fputs(lines ? "" : none, f);
    fclose(f);
}

void trial_describe(const struct proc *p, char *out, size_t size)
{
    describe_all(p, true,
                 "no trial is over: it begins at the 24th barrier of a communicator on several nodes", out,
                 size);
}

void size_describe(const struct proc *p, char *out, size_t size)
{
    describe_all(
        p, false,
        "no trial is over: one begins at the 24th blocking call of an operation and size on several nodes",
        out, size);
}
