/* least.c: see least.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/rails/least.h"

#define NONE UINT16_MAX

/* The first message of each class begins a trial. */
static void forget(struct least *l)
{
    for (unsigned c = 0; c < LEAST_CLASSES; c++)
        l->classes[c] = (struct least_class){.chosen = LEAST_LEVELS};
}

void least_open(struct least *l)
{
    *l = (struct least){.run_of = NONE};
    forget(l);
}

/* LEAST_CLASSES: the message is too long, or too short to be divided. */
static unsigned class_of(uint64_t bytes)
{
    if (bytes < 1u << LEAST_FROM)
        return LEAST_CLASSES;
    unsigned log = 63u - (unsigned)__builtin_clzll(bytes);
    return MIN(log - LEAST_FROM, (unsigned)LEAST_CLASSES);
}

/* A quarter less than the part that the level is named after, so that weights which differ a little do not leave a rail out. */
static uint64_t smallest_of(unsigned class, unsigned level)
{
    uint64_t length = (uint64_t)1 << (LEAST_FROM + class);
    return level == 0 ? 2 * length : (length >> level) / 4 * 3;
}

/* ---- trials ---- */

struct rails_now {
    uint64_t align;
    const double *weight;
    uint32_t up;
    uint64_t bytes; /* of the message */
};

static unsigned parts(const struct rails_now *now, unsigned class, unsigned level)
{
    struct stripe cut[RAILS_MAX];
    struct stripe_rules rules = {.smallest = smallest_of(class, level), .align = now->align};
    return stripe_cut(&rules, now->weight, now->up, 0, now->bytes, cut);
}

/* The next level that divides the message more finely than the one before it; LEAST_LEVELS: none does. */
static unsigned level_after(const struct rails_now *now, unsigned class, unsigned level)
{
    unsigned before = parts(now, class, level);
    for (unsigned p = level + 1; p < LEAST_LEVELS && ((uint64_t)1 << (LEAST_FROM + class)) >> p >= 4096; p++)
        if (parts(now, class, p) != before)
            return p;
    return LEAST_LEVELS;
}

static void begin_level(struct least_class *c, unsigned level)
{
    c->level = (uint8_t)level;
    c->over = false;
    c->group = 0;
    c->time = c->bytes = 0;
    c->asked = 0;
}

static void begin_trial(struct least_class *c)
{
    c->trial = true;
    c->round = 0;
    for (unsigned p = 0; p < LEAST_LEVELS; p++)
        c->best[p] = 0;
    begin_level(c, 0);
}

static unsigned fastest(const struct least_class *c)
{
    unsigned best = LEAST_LEVELS;
    for (unsigned p = 0; p < LEAST_LEVELS; p++)
        if (c->best[p] > 0 && (best == LEAST_LEVELS || c->best[p] < c->best[best]))
            best = p;
    return best;
}

/* True: it has found something. Else all stays as it is. */
static bool end_trial(struct least_class *c, const struct rails_now *now, unsigned class)
{
    unsigned level = fastest(c);
    c->trial = false;
    c->rest = level == LEAST_LEVELS ? LEAST_RESTS : LEAST_LASTS;
    if (level < LEAST_LEVELS)
        c->chosen = (uint8_t)level;
    begin_level(c, c->chosen);
    c->parts = c->chosen < LEAST_LEVELS ? (uint8_t)parts(now, class, c->chosen) : 0;
    return level < LEAST_LEVELS;
}

/* Begins, goes on with and ends trials as the next message comes. True: one has found something. */
static bool look(struct least_class *c, const struct rails_now *now, unsigned class)
{
    if (!c->trial) {
        bool others =
            c->chosen < LEAST_LEVELS && c->asked >= LEAST_WEIGHTS && parts(now, class, c->chosen) != c->parts;
        if (c->asked++ < c->rest && !others)
            return false;
        begin_trial(c);
    }
    if (!c->over && c->asked++ < LEAST_PATIENCE)
        return false;
    unsigned level = level_after(now, class, c->level);
    if (level == LEAST_LEVELS && ++c->round == LEAST_ROUNDS)
        return end_trial(c, now, class);
    begin_level(c, level == LEAST_LEVELS ? 0 : level);
    return false;
}

static void sample(struct least_class *c, uint64_t bytes, uint64_t time)
{
    c->time += time;
    c->bytes += bytes;
    if (++c->group < LEAST_GROUP)
        return;
    double each = (double)MAX(c->time, 1u) / (double)c->bytes;
    if (c->best[c->level] == 0 || each < c->best[c->level])
        c->best[c->level] = each;
    c->over = true;
}

/* ---- messages ---- */

static struct least_ticket ticket(struct least *l, unsigned class, uint64_t smallest, unsigned level)
{
    uint16_t of = (uint16_t)(class * (LEAST_LEVELS + 1) + level);
    if (of != l->run_of) {
        l->others += l->under_way;
        l->under_way = 0;
        l->run_of = of;
        l->run++;
    }
    l->under_way++;
    return (struct least_ticket){.smallest = smallest, .run = l->run, .counts = l->others == 0};
}

/* A probe is a quarter of the message, as stripe_cut asks for. */
struct least_ticket least_next(struct least *l, uint64_t align, const double *weight, uint32_t up, bool probe,
                               uint64_t bytes)
{
    unsigned class = class_of(bytes);
    struct rails_now now = {.align = align, .weight = weight, .up = up, .bytes = bytes};
    if (l->up != up) { /* what was found for other rails means nothing */
        l->up = up;
        forget(l);
    }
    if (class == LEAST_CLASSES)
        return ticket(l, class, LEAST_DEFAULT, 0);
    struct least_class *c = &l->classes[class];
    l->trials += look(c, &now, class);
    if (c->trial)
        return ticket(l, class, smallest_of(class, c->level), c->level);
    if (probe)
        return ticket(l, class, MIN(LEAST_DEFAULT, (uint64_t)1 << (LEAST_FROM + class - 2)), LEAST_LEVELS);
    if (c->chosen == LEAST_LEVELS)
        return ticket(l, class, LEAST_DEFAULT, LEAST_LEVELS);
    return ticket(l, class, smallest_of(class, c->chosen), c->chosen);
}

void least_never(struct least *l, const struct least_ticket *t)
{
    if (t->run == l->run)
        l->under_way--;
    else
        l->others--;
}

void least_done(struct least *l, const struct least_ticket *t, uint64_t bytes, uint64_t started,
                uint64_t found)
{
    uint64_t since = MAX(started, l->done_at);
    unsigned class = class_of(bytes);
    l->done_at = found;
    least_never(l, t);
    if (t->counts && t->run == l->run && class < LEAST_CLASSES && l->classes[class].trial &&
        !l->classes[class].over)
        sample(&l->classes[class], bytes, found > since ? found - since : 0);
}

uint64_t least_found(const struct least *l, uint64_t bytes)
{
    unsigned class = class_of(bytes);
    if (class == LEAST_CLASSES || l->classes[class].chosen == LEAST_LEVELS)
        return 0;
    return l->classes[class].chosen == 0 ? UINT64_MAX : smallest_of(class, l->classes[class].chosen);
}
