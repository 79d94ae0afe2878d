/* candidates.c: lists the algorithms of an operation with the parameter values worth measuring.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <string.h>

#include "../command.h"
#include "api/inside.h"
#include "tune.h"

static void candidate_add(struct tune_cell *cell, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void candidate_add(struct tune_cell *cell, const char *format, ...)
{
    va_list list;
    if (cell->candidates == PICK_CANDIDATES)
        return;
    va_start(list, format);
    vsnprintf(cell->text[cell->candidates++], TUNE_TEXT, format, list);
    va_end(list);
}

/* Adds a barrier algorithm with its preset parameter (partners or children) and with the values 2 and 3. */
static void add_barriers(const struct tune *t, const struct coll_algorithm *a, struct tune_cell *cell)
{
    const struct coll_parameter *p = &a->parameter[0];
    candidate_add(cell, "%s", a->name);
    for (int n = 2; n <= 3 && p->name; n++)
        if (n != p->preset && n >= p->min && n <= p->max && n < t->nodes)
            candidate_add(cell, "%s:%s=%d", a->name, p->name, n);
    if (t->nodes > 1 && t->nodes < t->bench.size && strcmp(a->name, "dissemination") == 0)
        candidate_add(cell, "node+%s", a->name);
}

void tune_candidates(const struct tune *t, enum coll_kind kind, struct tune_cell *cell)
{
    static const size_t segments[] = {16 * KI, 64 * KI, 256 * KI};
    const struct fishplate_inside *in = get_library_table();
    cell->candidates = 0;
    candidate_add(cell, "%s", "");
    for (size_t i = 0; i < in->algorithms_count(); i++) {
        const struct coll_algorithm *a = in->algorithms_get(i);
        if (a->kind != kind || !in->coll_usable(a))
            continue;
        if (kind == COLL_BARRIER) {
            add_barriers(t, a, cell);
            continue;
        }
        candidate_add(cell, "%s", a->name);
        for (size_t k = 0; a->segment && k < sizeof(segments) / sizeof(segments[0]); k++)
            if (segments[k] < cell->bytes)
                candidate_add(cell, "%s:segment=%zuk", a->name, segments[k] / KI);
        if (a->window && t->bench.size > 8)
            candidate_add(cell, "%s:window=8", a->name);
    }
}
