/* graph.c: reads a topology from text; graph.h describes its words. graph_routes.c computes the routes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "graph.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "graph_part.h"

struct reader {
    struct graph *g;
    int line;
    char *why;
    size_t size;
};

static bool graph_fail(const struct reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool graph_fail(const struct reader *r, const char *format, ...)
{
    va_list args;
    int used = r->line ? snprintf(r->why, r->size, "line %d: ", r->line) : 0;
    va_start(args, format);
    if (used >= 0 && (size_t)used < r->size)
        vsnprintf(r->why + used, r->size - (size_t)used, format, args);
    va_end(args);
    return false;
}

/* Reads a number of digits only, at most `most`. */
static bool graph_parse_number(const char *text, const char **end, uint32_t most, uint32_t *out)
{
    uint64_t value = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9' && value <= most; p++)
        value = 10 * value + (uint64_t)(*p - '0');
    *out = (uint32_t)value;
    *end = p;
    return p != text && value <= most;
}

/* Reads "3" or "3-7". */
static bool graph_parse_range(const char *text, const char **end, uint32_t most, uint32_t *from, uint32_t *to)
{
    if (!graph_parse_number(text, end, most, from))
        return false;
    *to = *from;
    return **end != '-' || (graph_parse_number(*end + 1, end, most, to) && *to >= *from);
}

static uint32_t graph_find_switch(const struct graph *g, const char *name)
{
    for (uint32_t i = 0; i < g->switches; i++)
        if (strcmp(g->names[i], name) == 0)
            return i;
    return UINT32_MAX;
}

/* A name such as "leaf3" or a range such as "leaf[0-17]": stem "leaf" and numbers. */
struct words {
    char stem[GRAPH_NAME_MAX];
    bool many;
    uint32_t from, to;
};

static bool words_parse(const struct reader *r, const char *text, struct words *w)
{
    size_t len = strcspn(text, "[");
    const char *end = "";
    *w = (struct words){0};
    if (len == 0 || len > GRAPH_NAME_MAX - 8)
        return graph_fail(r, "'%.40s' is no name of a switch: up to %d letters, then a range in brackets",
                          text, GRAPH_NAME_MAX - 8);
    memcpy(w->stem, text, len);
    if (text[len] == 0)
        return true;
    w->many = true;
    if (!graph_parse_range(text + len + 1, &end, GRAPH_SWITCHES_MAX - 1, &w->from, &w->to) ||
        strcmp(end, "]") != 0)
        return graph_fail(r, "'%.40s': a range is written leaf[0-17], with numbers up to %d", text,
                          GRAPH_SWITCHES_MAX - 1);
    return true;
}

static void words_format_name(const struct words *w, uint32_t i, char name[GRAPH_NAME_MAX])
{
    if (w->many)
        snprintf(name, GRAPH_NAME_MAX, "%.24s%u", w->stem, i);
    else
        snprintf(name, GRAPH_NAME_MAX, "%.24s", w->stem);
}

static bool graph_add_switches(struct reader *r, const char *text)
{
    struct words w;
    char name[GRAPH_NAME_MAX];
    struct graph *g = r->g;
    if (!words_parse(r, text, &w))
        return false;
    for (uint32_t i = w.from; i <= w.to; i++) {
        words_format_name(&w, i, name);
        if (graph_find_switch(g, name) != UINT32_MAX)
            return graph_fail(r, "switch '%s' is there already", name);
        if (g->switches == GRAPH_SWITCHES_MAX)
            return graph_fail(r, "more than %d switches", GRAPH_SWITCHES_MAX);
        memcpy(g->names[g->switches++], name, sizeof(name));
    }
    return true;
}

/* Lists the switches that a word names. */
static bool graph_list_switches(const struct reader *r, const char *text, uint32_t *list, uint32_t *count)
{
    struct words w;
    char name[GRAPH_NAME_MAX];
    *count = 0;
    if (!words_parse(r, text, &w))
        return false;
    for (uint32_t i = w.from; i <= w.to; i++) {
        words_format_name(&w, i, name);
        if ((list[(*count)++] = graph_find_switch(r->g, name)) == UINT32_MAX)
            return graph_fail(r, "there is no switch '%s'; name it first: switch %s", name, name);
    }
    return true;
}

static bool graph_add_cable(struct reader *r, uint32_t a, uint32_t b, double rate)
{
    struct graph *g = r->g;
    if (g->cables == GRAPH_CABLES_MAX)
        return graph_fail(r, "more than %d cables", GRAPH_CABLES_MAX);
    if (g->cables == g->capacity) {
        uint32_t capacity = g->capacity ? 2 * g->capacity : 256;
        struct graph_cable *larger = realloc(g->cable, capacity * sizeof(*larger));
        if (!larger)
            return graph_fail(r, "out of memory");
        g->cable = larger;
        g->capacity = capacity;
    }
    g->cable[g->cables++] = (struct graph_cable){a, b, rate};
    return true;
}

static bool graph_add_nodes(struct reader *r, const char *nodes, const char *where)
{
    uint32_t list[GRAPH_SWITCHES_MAX], count, from, to;
    const char *end;
    struct graph *g = r->g;
    if (!graph_parse_range(nodes, &end, GRAPH_NODES_MAX - 1, &from, &to) || *end)
        return graph_fail(r, "'%.40s' is no number of a node and no range like 0-17 up to %d", nodes,
                          GRAPH_NODES_MAX - 1);
    if (!graph_list_switches(r, where, list, &count))
        return false;
    if ((to - from + 1) % count)
        return graph_fail(r, "%u nodes cannot be shared evenly by %u switches", to - from + 1, count);
    uint32_t each = (to - from + 1) / count;
    for (uint32_t n = from; n <= to; n++) {
        if (g->node_switch[n] != UINT32_MAX)
            return graph_fail(r, "node %u has a switch already", n);
        g->node_switch[n] = list[(n - from) / each];
        g->nodes = n + 1 > g->nodes ? n + 1 : g->nodes;
    }
    return true;
}

static bool graph_add_links(struct reader *r, const char *one, const char *other, const char *times,
                            const char *rate)
{
    uint32_t a[GRAPH_SWITCHES_MAX], b[GRAPH_SWITCHES_MAX], na, nb, count = 1;
    const char *end;
    char *stop = NULL;
    double value = rate ? strtod(rate, &stop) : 0;
    if (!graph_list_switches(r, one, a, &na) || !graph_list_switches(r, other, b, &nb))
        return false;
    if (times && (!graph_parse_number(times, &end, 1024, &count) || *end || count == 0))
        return graph_fail(r, "'%.40s' is no number of cables from 1 to 1024", times);
    if (rate && (*stop || !(value >= 1e-6 && value <= 1e6)))
        return graph_fail(r, "'%.40s' is no rate in GB/s", rate);
    for (uint32_t i = 0; i < na; i++)
        for (uint32_t k = 0; k < nb; k++)
            for (uint32_t c = 0; c < count; c++)
                if (a[i] == b[k])
                    return graph_fail(r, "switch '%s' cannot have a cable to itself", r->g->names[a[i]]);
                else if (!graph_add_cable(r, a[i], b[k], value))
                    return false;
    return true;
}

static bool graph_read_line(struct reader *r, char *line)
{
    char *words[6], *save = NULL;
    int n = 0;
    line[strcspn(line, "#\n")] = 0;
    for (char *w = strtok_r(line, " \t\r", &save); w; w = strtok_r(NULL, " \t\r", &save)) {
        if (n > 0 && strcmp(words[0], "switch") == 0) {
            if (!graph_add_switches(r, w))
                return false;
            n = 2;
            continue;
        }
        if (n == 5)
            return graph_fail(r, "'%.40s' is one word too many", w);
        words[n++] = w;
    }
    if (n == 0 || (n == 2 && strcmp(words[0], "switch") == 0))
        return true;
    if (n == 3 && strcmp(words[0], "node") == 0)
        return graph_add_nodes(r, words[1], words[2]);
    if (n >= 3 && strcmp(words[0], "link") == 0)
        return graph_add_links(r, words[1], words[2], n > 3 ? words[3] : NULL, n > 4 ? words[4] : NULL);
    return graph_fail(
        r,
        "'%.40s': expected switch NAME..., node NUMBERS SWITCHES, or link SWITCHES SWITCHES [CABLES [GB/s]]",
        words[0]);
}

/* Moves the cables of nodes to the front of the array, so that node n has cable n. */
static bool graph_move_node_cables(struct reader *r)
{
    struct graph *g = r->g;
    uint32_t between = g->cables;
    r->line = 0;
    if (g->nodes == 0)
        return graph_fail(r, "there are no nodes");
    for (uint32_t n = 0; n < g->nodes; n++)
        if (g->node_switch[n] == UINT32_MAX)
            return graph_fail(r, "node %u has no switch, but node %u has", n, g->nodes - 1);
        else if (!graph_add_cable(r, n, g->node_switch[n], 0))
            return false;
    struct graph_cable *sorted = malloc(g->cables * sizeof(*sorted));
    if (!sorted)
        return graph_fail(r, "out of memory");
    memcpy(sorted, g->cable + between, g->nodes * sizeof(*sorted));
    if (between)
        memcpy(sorted + g->nodes, g->cable, between * sizeof(*sorted));
    free(g->cable);
    g->cable = sorted;
    g->capacity = g->cables;
    return true;
}

bool graph_read(struct graph *g, FILE *in, char *why, size_t size)
{
    struct reader r = {.g = g, .why = why, .size = size};
    char line[1024];
    *g = (struct graph){.names = calloc(GRAPH_SWITCHES_MAX, sizeof(*g->names)),
                        .node_switch = malloc(GRAPH_NODES_MAX * sizeof(*g->node_switch))};
    bool good = g->names && g->node_switch;
    if (good)
        memset(g->node_switch, 0xff, GRAPH_NODES_MAX * sizeof(*g->node_switch));
    else
        graph_fail(&r, "out of memory");
    while (good && fgets(line, sizeof(line), in)) {
        r.line++;
        if (strlen(line) == sizeof(line) - 1)
            good = graph_fail(&r, "the line is longer than %zu characters", sizeof(line) - 2);
        else
            good = graph_read_line(&r, line);
    }
    good = good && graph_move_node_cables(&r);
    if (good) {
        const char *sentence = graph_make_routes(g);
        good = !sentence || graph_fail(&r, "%s", sentence);
    }
    if (!good)
        graph_free(g);
    return good;
}

void graph_free(struct graph *g)
{
    free(g->names);
    free(g->cable);
    free(g->node_switch);
    free(g->first);
    free(g->next_links);
    free(g->up);
    free(g->down_first);
    free(g->down);
    *g = (struct graph){0};
}
