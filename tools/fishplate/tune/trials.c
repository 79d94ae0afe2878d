/* trials.c: --trials: measures programs without a rule file, whose communicators choose by trial, against the
 * built-in rules without trials. Both take turns on one communicator, so that other programs on the machine
 * disturb both alike. If a trial selected the rules' choice, both run the same schedule, and the difference
 * of their times is noise.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "cli/number.h"
#include "tune.h"

/* SETTLE: number of calls in which every trial starts and finishes */
enum { TURNS = 15, SETTLE = 224, BATCH_MAX = 2000 };

/* MPI_T counter of trials that selected an algorithm other than the rules' choice. */
static struct {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
} won;

void tune_trials_begin(void)
{
    int provided, index, count;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&won.session);
    MPI_T_pvar_get_index("coll_tuned_changed", MPI_T_PVAR_CLASS_COUNTER, &index);
    MPI_T_pvar_handle_alloc(won.session, index, NULL, &won.handle, &count);
    MPI_T_pvar_start(won.session, won.handle);
}

static unsigned long long trials_count_changes(void)
{
    unsigned long long value = 0;
    MPI_T_pvar_read(won.session, won.handle, &value);
    return value;
}

static void trials_set_coll(const struct tune *t, const char *setting)
{
    if (t->bench.host->choose(setting) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
}

static double trials_run_setting(const struct tune *t, struct coll *c, const char *setting, int n)
{
    double all = 0;
    trials_set_coll(t, setting);
    for (int i = 0; i < 2; i++)
        c->kind->call(c, i % c->size);
    const double start = MPI_Wtime();
    for (int i = 0; i < n; i++)
        c->kind->call(c, i % c->size);
    const double mine = (MPI_Wtime() - start) / n;
    trials_set_coll(t, "rules"); /* without trials: the allreduce below must not start one */
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, c->b->comm);
    return all;
}

static double trials_quartile(const double *sorted, int quarters)
{
    return sorted[(TURNS - 1) * quarters / 4];
}

bool tune_trials(struct tune *t, double seconds, struct tune_cell *cell)
{
    struct coll c;
    double rules[TURNS], chosen[TURNS], ratio[TURNS];
    if (!coll_open(&t->bench, cell->operation, cell->bytes, &c))
        return false;
    const unsigned long long before = trials_count_changes();
    trials_run_setting(t, &c, "", SETTLE);
    cell->best = trials_count_changes() > before;
    for (unsigned seed = 1; c.kind->check && seed <= 2; seed++)
        t->bench.errors += c.kind->check(&c, seed);
    const double one = trials_run_setting(t, &c, "rules", 3), share = seconds / (2 * TURNS),
                 fit = (share < TUNE_SAMPLE_MAX ? share : TUNE_SAMPLE_MAX) / (one > 1e-9 ? one : 1e-9);
    const int n = fit < 3 ? 3 : fit > BATCH_MAX ? BATCH_MAX : (int)fit;
    for (int i = 0; i < TURNS && !tune_is_over(t); i++) {
        if (i % 2 == 0)
            rules[i] = trials_run_setting(t, &c, "rules", n);
        chosen[i] = trials_run_setting(t, &c, "", n);
        if (i % 2 == 1)
            rules[i] = trials_run_setting(t, &c, "rules", n);
        ratio[i] = chosen[i] / rules[i];
    }
    if (t->over) {
        coll_close(&c);
        return false;
    }
    cell->rules_us = number_median(rules, TURNS) * 1e6;
    cell->best_us = number_median(chosen, TURNS) * 1e6;
    cell->ratio = number_median(ratio, TURNS); /* number_median sorts `ratio`, for the quartiles */
    cell->ratio_low = trials_quartile(ratio, 1);
    cell->ratio_high = trials_quartile(ratio, 3);
    t->logs[cell->best] += log(cell->ratio);
    t->cells[cell->best]++;
    coll_close(&c);
    return true;
}

void tune_trials_show(const struct tune_cell *c)
{
    printf("%-12s %9zu bytes  rules %10.2f us  by trial %10.2f us  ratio %.3f (%.3f to %.3f)  %s\n",
           c->operation, c->bytes, c->rules_us, c->best_us, c->ratio, c->ratio_low, c->ratio_high,
           c->best ? "another choice" : "the rules' choice");
    fflush(stdout);
}

void tune_trials_end(const struct tune *t)
{
    static const char *const of[2] = {"where the rules' choice was kept, which is the noise",
                                      "where another choice was found"};
    for (int i = 0; i < 2; i++)
        if (t->bench.rank == 0 && t->cells[i])
            printf("geometric mean of %d ratios %s: %.3f\n", t->cells[i], of[i],
                   exp(t->logs[i] / t->cells[i]));
    MPI_T_pvar_session_free(&won.session);
    MPI_T_finalize();
}
