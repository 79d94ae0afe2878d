/* tables.c: the results as text and as JSON.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "barrier.h"

static void tables_print_number(double value, int width, int digits)
{
    if (isnan(value))
        printf(" %*s", width, "-");
    else
        printf(" %*.*f", width, digits, value);
}

/* Shape for [Hoefler05 table 2.1]: the largest shape with one rank a node, so that every message crosses
 * the network. */
static const struct barrier_shape *study_find_counted_shape(const struct barrier_study *s)
{
    const struct barrier_shape *found = NULL;
    for (int i = 0; i < s->nshapes; i++)
        if (s->shape[i].ranks == s->shape[i].nodes && (!found || s->shape[i].ranks > found->ranks))
            found = &s->shape[i];
    return found;
}

static void text_print_operations(const struct barrier_study *s)
{
    const struct barrier_shape *shape = study_find_counted_shape(s);
    if (!shape)
        return;
    printf("\nTable 2.1: network operations and memory of one barrier of %d nodes, one rank each\n\n"
           "%-20s %10s %10s %10s %10s %7s %10s\n",
           shape->nodes, "algorithm", "all ranks", "schedule", "one rank", "schedule", "rounds", "bytes");
    for (int i = 0; i < barrier_nsettings; i++) {
        const struct barrier_figures *f = &shape->figures[i];
        struct barrier_counts c;
        const bool known = barrier_count_operations(&barrier_settings[i], shape->ranks, &c);
        if (isnan(f->messages))
            continue;
        printf("%-20s", barrier_setting_label(i));
        tables_print_number(f->messages, 10, 1);
        tables_print_number(known ? (double)c.messages : NAN, 10, 0);
        tables_print_number(f->max_messages, 10, 1);
        tables_print_number(known ? (double)c.max_messages : NAN, 10, 0);
        tables_print_number(known ? (double)c.rounds : NAN, 7, 0);
        tables_print_number(f->bytes, 10, 0);
        putchar('\n');
    }
}

static void text_print_times(const struct barrier_study *s)
{
    printf("\nTime of one barrier in us (ranks x nodes); * is the fastest\n\n%-20s", "algorithm");
    for (int k = 0; k < s->nshapes; k++) {
        char name[32];
        snprintf(name, sizeof(name), "%dx%d", s->shape[k].ranks, s->shape[k].nodes);
        printf(" %10s ", name);
    }
    for (int i = 0; i < barrier_nsettings; i++) {
        printf("\n%-20s", barrier_setting_label(i));
        for (int k = 0; k < s->nshapes; k++) {
            int best;
            barrier_regret(&s->shape[k], &best);
            tables_print_number(s->shape[k].figures[i].us, 10, 2);
            putchar(i == best ? '*' : ' ');
        }
    }
    putchar('\n');
}

static void text_print_regret(const struct barrier_study *s)
{
    printf("\nTime of the library's choice divided by that of the fastest barrier (half of the batches "
           "select the fastest,\nthe other half measure it):\n");
    for (int k = 0; k < s->nshapes; k++) {
        int best;
        const double regret = barrier_regret(&s->shape[k], &best);
        printf("  %3dx%-3d %6.3f  the best is %s\n", s->shape[k].ranks, s->shape[k].nodes, regret,
               barrier_setting_label(best));
    }
    printf("  geometric mean %.3f\n", barrier_regret_mean(s));
}

void barrier_print_text(const struct barrier_study *s)
{
    struct chart *c = malloc(sizeof(*c));
    if (!c)
        return;
    printf("fishplate-lab barrier: %s, %d cores\n", s->driver.adapter, s->driver.cores);
    text_print_operations(s);
    text_print_times(s);
    barrier_chart_kinds(s, c);
    chart_table(c, stdout);
    barrier_chart_lop(2, c);
    chart_table(c, stdout);
    barrier_chart_lop(5000, c);
    chart_table(c, stdout);
    barrier_chart_nway(true, c);
    chart_table(c, stdout);
    barrier_chart_nway(false, c);
    chart_table(c, stdout);
    text_print_regret(s);
    if (s->skipped)
        printf("\n%d shapes were skipped because the budget of %.0f s was used up; raise --budget to measure "
               "them.\n",
               s->skipped, s->budget);
    printf("\n%d jobs, %d failed; %.0f s.\n", s->driver.jobs, s->driver.failures,
           ib_now_seconds() - s->driver.started);
    free(c);
}

static void json_write_real(struct json *j, const char *key, double value)
{
    if (isfinite(value))
        json_real(j, key, value);
}

static void json_write_shape(struct json *j, const struct barrier_shape *shape)
{
    int best;
    json_object(j, NULL);
    json_int(j, "ranks", shape->ranks);
    json_int(j, "nodes", shape->nodes);
    json_write_real(j, "regret", barrier_regret(shape, &best));
    json_string(j, "best", barrier_setting_label(best));
    json_array(j, "barriers");
    for (int i = 0; i < barrier_nsettings; i++) {
        const struct barrier_figures *f = &shape->figures[i];
        struct barrier_counts c;
        if (isnan(f->us))
            continue;
        json_object(j, NULL);
        json_string(j, "setting", barrier_setting_label(i));
        json_write_real(j, "us", f->us);
        json_write_real(j, "operations", f->messages);
        json_write_real(j, "operations_of_one_rank", f->max_messages);
        json_write_real(j, "bytes", f->bytes);
        if (barrier_count_operations(&barrier_settings[i], shape->ranks, &c)) {
            json_int(j, "messages_of_schedule", c.messages);
            json_int(j, "rounds_of_schedule", c.rounds);
        }
        json_end(j);
    }
    json_end(j);
    json_end(j);
}

void barrier_write_json(const struct barrier_study *s)
{
    struct json j = {.out = stdout};
    struct chart *c = malloc(sizeof(*c));
    if (!c)
        return;
    json_object(&j, NULL);
    json_string(&j, "program", "fishplate-lab barrier");
    json_string(&j, "adapter", s->driver.adapter);
    json_int(&j, "cores", s->driver.cores);
    json_array(&j, "shapes");
    for (int k = 0; k < s->nshapes; k++)
        json_write_shape(&j, &s->shape[k]);
    json_end(&j);
    json_write_real(&j, "regret", barrier_regret_mean(s));
    json_array(&j, "figures");
    barrier_chart_kinds(s, c);
    chart_json(c, &j);
    barrier_chart_lop(2, c);
    chart_json(c, &j);
    barrier_chart_lop(5000, c);
    chart_json(c, &j);
    barrier_chart_nway(true, c);
    chart_json(c, &j);
    barrier_chart_nway(false, c);
    chart_json(c, &j);
    json_end(&j);
    json_int(&j, "skipped", s->skipped);
    json_int(&j, "jobs", s->driver.jobs);
    json_int(&j, "failures", s->driver.failures);
    json_write_real(&j, "seconds", ib_now_seconds() - s->driver.started);
    json_end(&j);
    putchar('\n');
    free(c);
}
