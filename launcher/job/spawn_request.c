/* spawn_request.c: parses the PMI-1 lines of an MPI_Comm_spawn request.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "job/spawn_request.h"

#include <stdlib.h>
#include <string.h>

#include "boot/pmi_line.h"
#include "core/util.h"
#include "cli/number.h"

/* Parses a "key=value" line; values of our own library are escaped. */
static bool read_line(char *line, char **key, char **value, bool escaped)
{
    char *eq = strchr(line, '=');
    if (!eq)
        return false;
    *eq = '\0';
    *key = line;
    *value = eq + 1;
    if (escaped)
        pmi_unescape_all(*value);
    return true;
}

static void parse_env(struct spawn_program *w, char *value)
{
    char *save = NULL;
    for (char *line = strtok_r(value, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (strchr(line, '=') && line[0] != '=')
            strings_add(&w->env, line);
}

static void parse_info(struct spawn_program *w, const char *key, char *value)
{
    if (strcmp(key, "host") == 0 || strcmp(key, "hosts") == 0)
        w->host = value;
    else if (strcmp(key, "wdir") == 0 || strcmp(key, "wd") == 0)
        w->wdir = value;
    else if (strcmp(key, "path") == 0)
        w->path = value;
    else if (strcmp(key, "env") == 0)
        parse_env(w, value);
}

static void add_preput(struct spawn_request *r, const char *key, const char *value)
{
    char *text = xstrf("%s=%s", key, value);
    strings_add(&r->preputs, text);
    free(text);
}

/* The last keys received, because key and value of a PMI pair are separate lines; NULL: none in this
 * program. */
struct pair_keys {
    const char *info, *preput;
};

static void parse_word(struct spawn_request *r, struct pair_keys *keys, const char *key, char *value)
{
    struct spawn_program *w = &r->programs[r->n - 1];
    if (strcmp(key, "nprocs") == 0)
        number_parse_integer(value, 1, 1 << 20, &w->n);
    else if (strcmp(key, "execname") == 0)
        w->command = value;
    else if (strncmp(key, "argcnt", 6) == 0)
        return;
    else if (strncmp(key, "arg", 3) == 0)
        strings_add(&w->args, value);
    else if (strncmp(key, "info_key_", 9) == 0)
        keys->info = value;
    else if (strncmp(key, "info_val_", 9) == 0 && keys->info)
        parse_info(w, keys->info, value);
    else if (strncmp(key, "preput_key_", 11) == 0)
        keys->preput = value;
    else if (strncmp(key, "preput_val_", 11) == 0 && keys->preput)
        add_preput(r, keys->preput, value);
}

const char *spawn_request_parse(char *lines, struct spawn_request *r)
{
    struct pair_keys keys = {0};
    bool escaped = false;
    *r = (struct spawn_request){0};
    for (char *next, *line = lines; *line; line = next) {
        char *key, *value;
        size_t len = strcspn(line, "\n");
        next = line + len + (line[len] == '\n');
        line[len] = '\0';
        if (!read_line(line, &key, &value, escaped))
            continue;
        if (strcmp(key, "escaped") == 0) {
            escaped = true;
        } else if (strcmp(key, "mcmd") == 0) {
            r->programs = xrealloc(r->programs, (r->n + 1) * sizeof(*r->programs));
            r->programs[r->n++] = (struct spawn_program){0};
            keys = (struct pair_keys){0};
        } else if (r->n > 0) {
            parse_word(r, &keys, key, value);
        }
    }
    for (unsigned i = 0; i < r->n; i++)
        if (!r->programs[i].command || !*r->programs[i].command || r->programs[i].n == 0)
            return "the request names no program, or no number of processes";
    return r->n ? NULL : "the request names no program";
}

void spawn_request_free(struct spawn_request *r)
{
    for (unsigned i = 0; i < r->n; i++) {
        strings_free(&r->programs[i].args);
        strings_free(&r->programs[i].env);
    }
    strings_free(&r->preputs);
    free(r->programs);
}

long spawn_request_ranks(const struct spawn_request *r)
{
    long ranks = 0;
    for (unsigned i = 0; i < r->n; i++)
        ranks += r->programs[i].n;
    return ranks;
}
