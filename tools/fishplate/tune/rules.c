/* rules.c: writes the winners as lines of a rule file (coll/select/site.h). A line is valid up to the
 * geometric mean of its size and the next measured size, and for numbers of ranks and nodes near the measured
 * ones, so that measuring at 8, 16, 32 ... ranks covers all numbers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "tune.h"

/* Writes a range of numbers around n: " ranks=6-11" for 8. */
static void write_range_around(FILE *out, const char *name, int n)
{
    if (n < 4)
        fprintf(out, " %s=%d", name, n);
    else
        fprintf(out, " %s=%d-%d", name, n - n / 4, n + n / 2 - 1);
}

static size_t rules_geometric_middle(size_t a, size_t b)
{
    return (size_t)sqrt((double)a * (double)b);
}

static const char *rules_get_winner(const struct tune_cell *c)
{
    return c->best ? c->text[c->best] : "";
}

static void write_line(const struct tune *t, const struct tune_cell *cell, int n, int first, int last,
                       FILE *out)
{
    const struct tune_cell *c = &cell[first];
    fputs(c->operation, out);
    write_range_around(out, "ranks", t->bench.size);
    write_range_around(out, "nodes", t->nodes);
    if (c->bytes > 0)
        fprintf(out, " bytes=%zu-%zu",
                first == 0 ? 0 : rules_geometric_middle(cell[first - 1].bytes, c->bytes) + 1,
                last + 1 < n ? rules_geometric_middle(cell[last].bytes, cell[last + 1].bytes)
                             : 2 * cell[last].bytes);
    fprintf(out, " %s  #", rules_get_winner(c));
    for (int i = first; i <= last; i++) {
        fputs(i > first ? "," : "", out);
        if (cell[i].bytes > 0)
            fprintf(out, " %zu bytes:", cell[i].bytes);
        fprintf(out, " %.2f us, built-in rules %.2f", cell[i].best_us, cell[i].rules_us);
    }
    fputc('\n', out);
}

int tune_write(const struct tune *t, const struct tune_cell *cell, int n, FILE *out)
{
    int lines = 0;
    for (int first = 0, last; first < n; first = last + 1) {
        last = first;
        while (last + 1 < n && strcmp(rules_get_winner(&cell[last + 1]), rules_get_winner(&cell[first])) == 0)
            last++;
        if (cell[first].best == 0)
            continue;
        write_line(t, cell, n, first, last, out);
        lines++;
    }
    return lines;
}
