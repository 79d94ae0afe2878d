/* document.c: the report as JSON and as text.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <mpi.h>
#include <string.h>

#include "cli/json.h"
#include "papers.h"

static void document_write_row(struct json *j, const struct table *t, int row)
{
    const struct cell *name = table_cell(t, row, 0);
    json_object(j, NULL);
    if (name->text)
        json_string(j, "row", name->text);
    else
        json_real(j, "row", isnan(name->value) ? 0 : name->value);
    json_object(j, "values");
    for (int c = 1; c < t->columns; c++) {
        const struct cell *cell = table_cell(t, row, c);
        if (cell->text)
            json_string(j, t->names[c], cell->text);
        else if (!isnan(cell->value))
            json_real(j, t->names[c], cell->value);
    }
    json_end(j);
    json_object(j, "samples");
    for (int c = 1; c < t->columns; c++) {
        const struct cell *cell = table_cell(t, row, c);
        if (cell->samples == 0)
            continue;
        json_array(j, t->names[c]);
        for (int i = 0; i < cell->samples; i++)
            json_real(j, NULL, cell->sample[i]);
        json_end(j);
    }
    json_end(j);
    json_end(j);
}

static void document_write_result(struct json *j, const struct papers_run *run, const struct result *r)
{
    const struct entry *e = r->entry;
    json_object(j, NULL);
    json_string(j, "id", e->id);
    json_string(j, "paper", papers[e->paper].key);
    json_string(j, "chapter", e->chapter);
    json_string(j, "figure", e->figure);
    json_string(j, "title", e->title);
    json_string(j, "claim", e->claim);
    json_array(j, "points");
    for (const struct point *p = e->points; p < e->points + POINTS_MAX && p->name; p++) {
        json_object(j, NULL);
        json_string(j, "what", p->name);
        json_real(j, "value", p->value);
        json_string(j, "unit", p->unit);
        json_end(j);
    }
    json_end(j);
    json_array(j, "commands");
    for (int v = 0; v < VARIANTS_MAX && r->source->variants[v].quick; v++) {
        char command[1024];
        papers_command(run, &r->source->variants[v], command, sizeof(command));
        json_string(j, NULL, command);
    }
    json_end(j);
    json_string(j, "over", r->table->over);
    json_string(j, "verdict", verdict_names[r->finding.verdict]);
    json_string(j, "finding", r->finding.text);
    json_real(j, "others", r->others);
    if (r->change != CHANGE_NONE) {
        json_string(j, "change", change_names[r->change]);
        if (r->change != CHANGE_UNKNOWN) {
            json_real(j, "ratio", r->ratio);
            json_real(j, "p", r->p);
        }
    }
    json_array(j, "rows");
    for (int row = 0; row < r->table->rows; row++)
        document_write_row(j, r->table, row);
    json_end(j);
    json_end(j);
}

bool papers_write_json(const struct papers_run *run, const char *path)
{
    FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    if (!out)
        return false;
    struct json j = {.out = out};
    json_object(&j, NULL);
    json_string(&j, "program", "fishplate-lab papers");
    json_string(&j, "version", FISHPLATE_VERSION);
    json_bool(&j, "quick", run->quick);
    json_int(&j, "rounds", run->rounds);
    json_string(&j, "machine", run->machine);
    json_int(&j, "cores", run->cores);
    json_string(&j, "kernel", run->kernel);
    json_string(&j, "date", run->date);
    json_string(&j, "settings", run->settings);
    json_real(&j, "load_before", run->load_before);
    json_real(&j, "load_after", run->load_after);
    json_real(&j, "seconds", run->seconds);
    json_array(&j, "entries");
    for (int i = 0; i < run->results_count; i++)
        if (run->results[i].table)
            document_write_result(&j, run, &run->results[i]);
    json_end(&j);
    json_array(&j, "not_measured");
    for (int i = 0; i < run->results_count; i++)
        if (!run->results[i].table) {
            json_object(&j, NULL);
            json_string(&j, "id", run->results[i].entry->id);
            json_string(&j, "why", run->results[i].missing);
            json_end(&j);
        }
    json_end(&j);
    json_end(&j);
    bool good = ferror(out) == 0;
    return out == stdout ? fflush(out) == 0 && good : fclose(out) == 0 && good;
}

void papers_print(const struct papers_run *run)
{
    int count[VERDICTS] = {0}, missing = 0;
    printf("%-14s %-32s %-12s %s\n", "entry", "figure", "verdict", run->against ? "change" : "");
    for (int i = 0; i < run->results_count; i++) {
        const struct result *r = &run->results[i];
        if (!r->table) {
            missing++;
            continue;
        }
        count[r->finding.verdict]++;
        printf("%-14s %-32s %-12s", r->entry->id, r->entry->figure, verdict_names[r->finding.verdict]);
        if (r->change == CHANGE_UNKNOWN)
            printf(" not comparable");
        else if (r->change != CHANGE_NONE)
            printf(" %s (%+.1f %%, p = %.3f)", change_names[r->change], 100 * (r->ratio - 1), r->p);
        printf("\n               %s\n", r->finding.text);
    }
    putchar('\n');
    for (int v = 0; v < VERDICTS; v++)
        printf("%d %s, ", count[v], verdict_names[v]);
    printf("%d not measured. This %s took %.0f s.\n", missing, run->quick ? "quick run" : "run",
           run->seconds);
}
