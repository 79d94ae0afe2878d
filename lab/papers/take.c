/* take.c: extracts the tables of entries from the JSON documents that the benchmarks print.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "papers.h"

static void table_set_json_value(struct table *t, int row, int column, const struct value *v)
{
    if (v->kind == VALUE_NUMBER)
        table_set_number(t, row, column, v->number);
    else if (v->kind == VALUE_STRING && strcmp(v->text, "-") != 0)
        table_set_text(t, row, column, v->text);
}

static char *document_join_texts(const struct value *list)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = list ? open_memstream(&text, &size) : NULL;
    if (!out)
        return NULL;
    for (const struct value *v = list; v; v = v->next)
        if (v->kind == VALUE_STRING)
            fprintf(out, "%s%s", ftell(out) > 0 ? " " : "", v->text);
    fclose(out);
    return text;
}

static struct table *entry_extract_table(const struct entry *e, const struct value *document)
{
    const struct value *v = value_first_element(document, "tables");
    while (v && strncmp(value_text(v, "title"), e->selector, strlen(e->selector)) != 0)
        v = v->next;
    if (!v)
        return NULL;
    const char *adapter = value_text(v, "adapter");
    struct table *t =
        table_new(value_text(v, "title"), adapter[0] ? adapter : value_text(document, "transport"));
    for (const struct value *c = value_first_element(v, "columns"); c; c = c->next)
        table_add_column(t, c->kind == VALUE_STRING ? c->text : "");
    for (const struct value *r = value_first_element(v, "rows"); r && t->columns > 0; r = r->next) {
        int row = table_add_row(t), column = 0;
        for (const struct value *c = r->first; c && column < t->columns; c = c->next)
            table_set_json_value(t, row, column++, c);
    }
    t->here = document_join_texts(value_first_element(v, "here"));
    return t;
}

static bool list_has_word(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += len)
        if ((at == list || at[-1] == ' ') && (at[len] == 0 || at[len] == ' '))
            return true;
    return false;
}

/* The columns are the variants if the source has several, otherwise the tests. */
static struct table *entry_extract_tests(const struct entry *e, const struct source *s,
                                         const struct value *const *documents)
{
    struct table *t = table_new(e->title, value_text(documents[0], "transport"));
    bool by_variant = s->variants[1].label != NULL;
    char words[256];
    table_add_column(t, "bytes");
    snprintf(words, sizeof(words), "%s", e->selector);
    for (int i = 0; by_variant && s->variants[i].label; i++)
        table_add_column(t, s->variants[i].label);
    for (char *save, *w = by_variant ? NULL : strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
        table_add_column(t, w);
    for (int i = 0; i == 0 || (by_variant && s->variants[i].label); i++)
        for (const struct value *r = value_first_element(documents[i], "results"); r; r = r->next) {
            const char *test = value_text(r, "test");
            if (!list_has_word(e->selector, test))
                continue;
            int column = by_variant ? i + 1 : table_find_column(t, test);
            table_set_number(t, table_find_row(t, NULL, value_number(r, "bytes", 0)), column,
                             value_number(r, e->better == BETTER_NEITHER ? "median" : "best", NAN));
        }
    return t;
}

static struct table *entry_extract_kernels(const struct entry *e, const struct source *s,
                                           const struct value *const *documents)
{
    struct table *t = table_new(e->title, value_text(documents[0], "transport"));
    char name[64];
    table_add_column(t, "kernel, class");
    for (int i = 0; s->variants[i].quick; i++)
        table_add_column(t, s->variants[i].label ? s->variants[i].label : "seconds");
    for (int i = 0; s->variants[i].quick; i++)
        for (const struct value *r = value_first_element(documents[i], "results"); r; r = r->next) {
            snprintf(name, sizeof(name), "%s %s", value_text(r, "kernel"), value_text(r, "class"));
            table_set_number(t, table_find_row(t, name, 0), i + 1, value_number(r, "seconds", NAN));
        }
    return t;
}

static struct table *entry_extract_figure(const struct entry *e, const struct value *document)
{
    const struct value *f = value_first_element(document, "figures");
    while (f && strcmp(value_text(f, "figure"), e->selector) != 0)
        f = f->next;
    if (!f)
        return NULL;
    const char *adapter = value_text(document, "adapter");
    struct table *t = table_new(value_text(f, "title"), adapter[0] ? adapter : "simulated");
    int column = 1;
    table_add_column(t, value_text(f, "x"));
    for (const struct value *l = value_first_element(f, "lines"); l; l = l->next)
        table_add_column(t, value_text(l, "name"));
    for (const struct value *l = value_first_element(f, "lines"); l && column < t->columns;
         l = l->next, column++)
        for (const struct value *p = value_first_element(l, "points"); p; p = p->next)
            table_set_number(t, table_find_row(t, NULL, value_number(p, "x", 0)), column,
                             value_number(p, "y", NAN));
    return t;
}

static struct table *entry_extract_statements(const struct entry *e, const struct value *document)
{
    struct table *t = table_new(e->title, "simulated");
    static const char *const names[] = {"where", "statement of the paper", "found here", "agrees"};
    for (int i = 0; i < 4; i++)
        table_add_column(t, names[i]);
    for (const struct value *v = value_first_element(document, "statements"); v; v = v->next) {
        if (strncmp(value_text(v, "where"), e->selector, strlen(e->selector)) != 0)
            continue;
        int row = table_add_row(t);
        table_set_text(t, row, 0, value_text(v, "where"));
        table_set_text(t, row, 1, value_text(v, "claim"));
        table_set_text(t, row, 2, value_text(v, "found"));
        table_set_text(t, row, 3, value_is_true(v, "agrees") ? "yes" : "no");
    }
    return t;
}

static struct table *entry_extract_sim(const struct entry *e, const struct value *document)
{
    struct table *t = table_new(e->title, "simulated");
    table_add_column(t, "nodes");
    for (const struct value *r = value_first_element(document, "results"); r; r = r->next)
        if (table_find_column(t, value_text(r, "algorithm")) < 0)
            table_add_column(t, value_text(r, "algorithm"));
    for (const struct value *r = value_first_element(document, "results"); r; r = r->next) {
        int column = table_find_column(t, value_text(r, "algorithm"));
        if (column > 0)
            table_set_number(t, table_find_row(t, NULL, value_number(r, "nodes", 0)), column,
                             value_number(r, "us", NAN));
    }
    return t;
}

/* Reads one figure of a profile, counted as in [Liu04]: tables 9.1 and 9.3 count messages and collective
 * calls of rank 0, table 9.4 counts all ranks. */
static double profile_read_figure(const struct value *document, const char *column)
{
    static const struct {
        const char *column, *part, *key;
    } direct[] = {{"% reuse", "buffer_reuse", "percent"}, {"% by size", "buffer_reuse", "weighted_percent"}},
      sizes[] = {{"< 2 KiB", "sent_and_received", "below_2k"},
                 {"2 to 16 KiB", "sent_and_received", "2k_to_16k"},
                 {"16 KiB to 1 MiB", "sent_and_received", "16k_to_1m"},
                 {"> 1 MiB", "sent_and_received", "from_1m"}};
    for (size_t i = 0; i < sizeof(direct) / sizeof(direct[0]); i++)
        if (strcmp(column, direct[i].column) == 0)
            return value_number(value_get(document, direct[i].part), direct[i].key, NAN);
    const struct value *rank = value_first_element(document, "ranks");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        if (strcmp(column, sizes[i].column) == 0)
            return value_number(value_get(rank, sizes[i].part), sizes[i].key, NAN);
    const struct value *call =
        value_get(value_get(rank, "operations"), strstr(column, "Isend") ? "MPI_Isend" : "MPI_Irecv");
    const double count = value_number(call, "count", 0);
    return strstr(column, "calls") ? count : count > 0 ? value_number(call, "bytes", 0) / count : 0;
}

static struct table *entry_extract_profile(const struct entry *e, const struct source *s,
                                           const struct value *const *documents)
{
    static const struct {
        const char *kind, *columns[4];
    } kinds[] = {{"sizes", {"< 2 KiB", "2 to 16 KiB", "16 KiB to 1 MiB", "> 1 MiB"}},
                 {"calls", {"Isend: calls", "Isend: mean bytes", "Irecv: calls", "Irecv: mean bytes"}},
                 {"reuse", {"% reuse", "% by size"}}};
    struct table *t = table_new(e->title, value_text(documents[0], "adapter"));
    size_t k = 0;
    while (k < 2 && strcmp(kinds[k].kind, e->selector) != 0)
        k++;
    table_add_column(t, "program"); /* all columns must be added before the first row */
    for (int c = 0; c < 4 && kinds[k].columns[c]; c++)
        table_add_column(t, kinds[k].columns[c]);
    for (int i = 0; i < VARIANTS_MAX && s->variants[i].label; i++)
        for (int c = 1; c < t->columns; c++)
            table_set_number(t, table_find_row(t, s->variants[i].label, 0), c,
                             profile_read_figure(documents[i], kinds[k].columns[c - 1]));
    return t;
}

/* Mean seconds that a rank spends in calls that send, receive or wait. */
static double profile_sum_waiting_seconds(const struct value *document)
{
    double sum = 0;
    for (const struct value *f = value_first_element(document, "functions"); f; f = f->next)
        if (strcmp(value_text(f, "kind"), "p2p") == 0 || strcmp(value_text(f, "kind"), "wait") == 0)
            sum += value_number(f, "mean", 0);
    return sum;
}

static struct table *entry_extract_waits(const struct entry *e, const struct source *s,
                                         const struct value *const *documents)
{
    struct table *t = table_new(e->title, value_text(documents[0], "adapter"));
    table_add_column(t, "program");
    for (int i = 0; i < VARIANTS_MAX && s->variants[i].label; i++) {
        const char *column = strchr(s->variants[i].label, ' ') + 1;
        if (table_find_column(t, column) < 0)
            table_add_column(t, column);
    }
    for (int i = 0; i < VARIANTS_MAX && s->variants[i].label; i++) {
        char program[32];
        const char *column = strchr(s->variants[i].label, ' ') + 1;
        snprintf(program, sizeof(program), "%.*s", (int)(column - 1 - s->variants[i].label),
                 s->variants[i].label);
        table_set_number(t, table_find_row(t, program, 0), table_find_column(t, column),
                         profile_sum_waiting_seconds(documents[i]));
    }
    return t;
}

/* Makes [Liu04 tables 5.1 and 5.2]: credit messages of the static scheme, receive buffers of the dynamic
 * scheme. */
static struct table *entry_extract_flow(const struct entry *e, const struct source *s,
                                        const struct value *const *documents)
{
    struct table *t = table_new(e->title, value_text(documents[0], "transport"));
    static const char *const names[] = {"program", "messages", "credit messages", "% credit messages",
                                        "buffers"};
    for (int i = 0; i < 5; i++)
        table_add_column(t, names[i]);
    for (int i = 0; i < VARIANTS_MAX && s->variants[i].label; i++) {
        const struct value *r = value_first_element(documents[i], "results");
        const int row = table_find_row(t, value_text(r, "kernel"), 0);
        if (strstr(s->variants[i].label, "dynamic")) {
            table_set_number(t, row, 4, value_number(r, "posted_most", NAN));
            continue;
        }
        const double credits = value_number(r, "credit_messages", NAN),
                     all = value_number(r, "frames", NAN) + credits;
        table_set_number(t, row, 1, all);
        table_set_number(t, row, 2, credits);
        table_set_number(t, row, 3, 100 * credits / all);
    }
    return t;
}

struct table *table_collect(const struct entry *e, const struct source *s,
                            const struct value *const *documents)
{
    struct table *t = NULL;
    switch (e->take) {
    case TAKE_TABLE:
        t = entry_extract_table(e, documents[0]);
        break;
    case TAKE_TESTS:
        t = entry_extract_tests(e, s, documents);
        break;
    case TAKE_KERNELS:
        t = entry_extract_kernels(e, s, documents);
        break;
    case TAKE_FIGURE:
        t = entry_extract_figure(e, documents[0]);
        break;
    case TAKE_STATEMENTS:
        t = entry_extract_statements(e, documents[0]);
        break;
    case TAKE_FLOW:
        t = entry_extract_flow(e, s, documents);
        break;
    case TAKE_PROFILE:
        t = entry_extract_profile(e, s, documents);
        break;
    case TAKE_WAITS:
        t = entry_extract_waits(e, s, documents);
        break;
    case TAKE_SIM:
        t = entry_extract_sim(e, documents[0]);
        break;
    }
    if (t && t->rows > 0 && t->columns > 1)
        return t;
    table_free(t);
    return NULL;
}
