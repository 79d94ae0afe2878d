/* measure.c: measures the candidates of an operation and size in turns (pick.h). Then the winner and the
 * built-in rules are measured again in turns: the fastest of several noisy candidates was also lucky, so only
 * new samples show its real gain.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "cli/number.h"
#include "tune.h"

enum { JUDGED = 7, BATCH_MAX = 2000 };

/* Returns the mean seconds per call over n calls, of the slowest rank. */
static double measure_calls(struct coll *c, int n)
{
    double start = MPI_Wtime(), mine, all;
    for (int i = 0; i < n; i++)
        c->kind->call(c, i % c->size);
    mine = (MPI_Wtime() - start) / n;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, c->b->comm);
    return all;
}

static void measure_set_candidate(const struct tune *t, const struct tune_cell *cell, int candidate)
{
    char setting[TUNE_TEXT + 32] = "rules";
    if (candidate > 0 && candidate < PICK_CANDIDATES)
        snprintf(setting, sizeof(setting), "%s=%s", cell->operation, cell->text[candidate]);
    if (t->bench.host->choose(setting) != 0) {
        fprintf(stderr, "fishplate tune: the library does not understand FISHPLATE_COLL=%s.\n", setting);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static double measure_take_sample(const struct tune *t, struct coll *c, const struct tune_cell *cell,
                                  int candidate, int batch)
{
    measure_set_candidate(t, cell, candidate);
    measure_calls(c, 1);
    return measure_calls(c, batch);
}

/* Determines the number of calls that fill a sample; verifies each candidate's results and warms it up. */
static void measure_prepare_cell(struct tune *t, struct coll *c, const struct tune_cell *cell, double seconds,
                                 int *batch)
{
    for (int i = 0; i < cell->candidates && !tune_is_over(t); i++) {
        measure_set_candidate(t, cell, i);
        for (unsigned seed = 1; c->kind->check && seed <= 2; seed++)
            t->bench.errors += c->kind->check(c, seed);
        measure_calls(c, 8); /* barriers open their connections at the eighth call */
        const double one = measure_calls(c, 2), fit = seconds / (one > 1e-9 ? one : 1e-9);
        batch[i] = fit < 2 ? 2 : fit > BATCH_MAX ? BATCH_MAX : (int)fit;
    }
}

static void measure_select_best(struct tune *t, struct coll *c, const int *batch, struct tune_cell *cell)
{
    double rules[JUDGED], best[JUDGED];
    int won = 0;
    for (int i = 0; i < JUDGED && !tune_is_over(t); i++) {
        rules[i] = measure_take_sample(t, c, cell, 0, batch[0]);
        best[i] = cell->best ? measure_take_sample(t, c, cell, cell->best, batch[cell->best]) : rules[i];
        won += best[i] < rules[i];
    }
    if (t->over)
        return;
    cell->rules_us = number_median(rules, JUDGED) * 1e6;
    cell->best_us = number_median(best, JUDGED) * 1e6;
    /* Noise from other programs may make one median better, but hardly six turns of seven. */
    if (cell->best_us * 100 > cell->rules_us * PICK_MARGIN || won < JUDGED - 1)
        cell->best = 0;
}

bool tune_measure(struct tune *t, double seconds, struct tune_cell *cell)
{
    struct coll c;
    struct pick pick;
    double equal[PICK_CANDIDATES];
    int batch[PICK_CANDIDATES], next;
    if (!coll_open(&t->bench, cell->operation, cell->bytes, &c))
        return false;
    for (int i = 0; i < PICK_CANDIDATES; i++)
        equal[i] = 1;
    /* Most candidates are dropped after three samples. */
    const double share = seconds / (5 * cell->candidates + 2 * JUDGED),
                 slice = share < TUNE_SAMPLE_MAX ? share : TUNE_SAMPLE_MAX;
    measure_prepare_cell(t, &c, cell, slice, batch);
    pick_init(&pick, equal, cell->candidates, cell->candidates);
    while (!t->over && (next = pick_next(&pick)) >= 0 && !tune_is_over(t))
        pick_record(&pick, (uint64_t)(measure_take_sample(t, &c, cell, next, batch[next]) * 1e9));
    if (!t->over) {
        cell->best = pick_best(&pick);
        measure_select_best(t, &c, batch, cell);
    }
    measure_set_candidate(t, cell, 0);
    coll_close(&c);
    return !t->over;
}
