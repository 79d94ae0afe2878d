/* site.c: reads a site's file of selection rules (site.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/select/site.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "coll/select/parse.h"

#define FILE_MOST  (1u << 20) /* limit of the file size in bytes */
#define RULES_MOST 4096
#define BLANKS     " \t\r"
#define PREFIX     "FISHPLATE_COLL: "

static bool bounds_contain(const struct coll_site_bounds *b, uint64_t value)
{
    return value >= b->min && value <= b->max;
}

/* True if a rule applies. Rules with a condition on nodes need a known number of nodes. */
bool site_rule_applies(const struct coll_site_rule *rule, int ranks, int nodes, uint64_t bytes)
{
    return bounds_contain(&rule->ranks, (uint64_t)ranks) && bounds_contain(&rule->bytes, bytes) &&
           (nodes > 0 ? bounds_contain(&rule->nodes, (uint64_t)nodes)
                      : rule->nodes.min == 0 && rule->nodes.max == UINT64_MAX);
}

/* Parses bounds such as "4", "4-8" or "4-". */
static int parse_bounds(const char *key, char *text, struct coll_site_bounds *out)
{
    struct coll_site_bounds b = {0, UINT64_MAX};
    char *dash = strchr(text, '-');
    if (dash)
        *dash = '\0';
    bool valid = coll_parse_size(text, &b.min);
    if (!dash)
        b.max = b.min;
    else if (dash[1] != '\0')
        valid = valid && coll_parse_size(dash + 1, &b.max);
    if (!valid || b.min > b.max)
        return err_set(MPI_ERR_ARG, PREFIX "%s= needs a number or a range such as 4-8 or 64k-, not '%s%s%s'",
                       key, text, dash ? "-" : "", dash ? dash + 1 : "");
    *out = b;
    return 0;
}

static int parse_word(char *word, struct coll_site_rule *rule)
{
    static const char *const keys[] = {"ranks", "nodes", "bytes"};
    struct coll_site_bounds *const bounds[] = {&rule->ranks, &rule->nodes, &rule->bytes};
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        const size_t length = strlen(keys[i]);
        if (strncmp(word, keys[i], length) == 0 && word[length] == '=')
            return parse_bounds(keys[i], word + length + 1, bounds[i]);
    }
    if (rule->choice.algorithm)
        return err_set(MPI_ERR_ARG,
                       PREFIX "'%s' follows the algorithm; a line is operation [ranks=A-B] [nodes=A-B] "
                              "[bytes=A-B] algorithm[:option=number]",
                       word);
    return coll_parse(rule->kind, word, &rule->choice);
}

/* Parses a line; sets *empty if the line has no operation. */
static int parse_line(char *line, struct coll_site_rule *rule, bool *empty)
{
    char *save = NULL;
    line[strcspn(line, "#")] = '\0';
    char *word = strtok_r(line, BLANKS, &save);
    *empty = word == NULL;
    int rc = word ? coll_parse_kind(word, &rule->kind) : 0;
    while (!rc && word && (word = strtok_r(NULL, BLANKS, &save)) != NULL)
        rc = parse_word(word, rule);
    if (!rc && !*empty && !rule->choice.algorithm)
        rc = err_set(MPI_ERR_ARG, PREFIX "no algorithm for %s; `fishplate info --coll` lists them",
                     coll_kind_name(rule->kind));
    rule->choice.lazy = true;
    return rc;
}

static int site_add_rule(struct site *s, const struct coll_site_rule *rule)
{
    if (s->count == RULES_MOST)
        return err_set(MPI_ERR_ARG, PREFIX "more than %d rules", RULES_MOST);
    /* The array is full at every power of two and is then doubled. */
    if ((s->count & (s->count - 1)) == 0) {
        void *more = realloc(s->rule, (s->count ? 2 * s->count : 1) * sizeof(*rule));
        if (!more)
            return err_set(MPI_ERR_NO_MEM, "out of memory for the rules of a file that FISHPLATE_COLL names");
        s->rule = more;
    }
    s->rule[s->count++] = *rule;
    return 0;
}

/* Adds the file name and line number to the error text. */
static int prefix_error_place(int rc, const char *name, int line)
{
    char said[512];
    const char *detail = err_detail(rc);
    if (strncmp(detail, PREFIX, strlen(PREFIX)) == 0)
        detail += strlen(PREFIX);
    snprintf(said, sizeof(said), "%s", detail);
    return err_set(rc, PREFIX "line %d of %s: %s", line, name, said);
}

int site_parse(char *text, const char *name, struct site *out)
{
    int number = 0, rc = 0;
    for (char *line = text, *next; line && !rc; line = next) {
        struct coll_site_rule rule = {
            .ranks = {0, UINT64_MAX}, .nodes = {0, UINT64_MAX}, .bytes = {0, UINT64_MAX}, .line = ++number};
        bool empty;
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        rc = parse_line(line, &rule, &empty);
        if (!rc && !empty)
            rc = site_add_rule(out, &rule);
        if (rc)
            rc = prefix_error_place(rc, name, number);
    }
    return rc;
}

int site_read(const char *path, struct site *out)
{
    FILE *f = fopen(path, "r");
    if (!f)
        return err_set(MPI_ERR_ARG, PREFIX "cannot read %s: %s. Every host of the job needs the file.", path,
                       strerror(errno));
    int rc;
    char *text = malloc(FILE_MOST + 1);
    if (!text) {
        fclose(f);
        return err_set(MPI_ERR_NO_MEM, "out of memory for the file that FISHPLATE_COLL names");
    }
    const size_t length = fread(text, 1, FILE_MOST + 1, f);
    if (ferror(f))
        rc = err_set(MPI_ERR_ARG, PREFIX "cannot read %s: %s", path, strerror(errno));
    else if (length > FILE_MOST || memchr(text, '\0', length))
        rc = err_set(MPI_ERR_ARG, PREFIX "%s is not a file of rules: %s", path,
                     length > FILE_MOST ? "it is longer than 1 MiB" : "it has bytes of 0");
    else {
        text[length] = '\0';
        rc = site_parse(text, path, out);
    }
    free(text);
    fclose(f);
    return rc;
}

void site_free(struct site *s)
{
    free(s->rule);
    *s = (struct site){0};
}
