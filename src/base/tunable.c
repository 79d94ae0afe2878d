/* tunable.c: reads the values of the tunables, which the linker collects in one section, from files and
 * from the environment, and reports unknown names and invalid values. No other file of the library calls
 * getenv.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/tunable.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err_state.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/settings_file.h"

#define PREFIX       "FISHPLATE_"
#define PROBLEMS_MAX 16

extern char **environ;
extern struct tunable *const __start_fp_tunables[] __attribute__((weak, visibility("hidden")));
extern struct tunable *const __stop_fp_tunables[] __attribute__((weak, visibility("hidden")));

static TUNABLE_CHOICE(log_level, "LOG", LOG_WARN, "error|warn|info|debug",
                      "How much the library writes to standard error.");

static TUNABLE_STRING(laboratory, "LAB",
                      "Control variables for experiments with the library itself, NAME=VALUE separated by "
                      "commas, for example IB_GROWTH=linear,IB_RING_SLOTS=2. lab/README.md lists them.");

/* Environment variables that mpiexec, the wrappers and the tools set for their own use. The library does not
 * report them as unknown. */
static const char *const reserved[] = {
    "WORLD_RANK",   "WORLD_SIZE",    "LOCAL_RANK", "LOCAL_SIZE",  "NODE_FD",       "NODE_MAP",
    "NOTICES_FD",   "VNODE",         "TRACER",     "ONE_MACHINE", "JOB",           "LAUNCHER",
    "CC",           "CXX",           "FC",         "HOST",        "AGENT",         "VERSION",
    "APPNUM",       "UNIVERSE_SIZE", "SOFTIB_LIB", "PROF",        "SEVERAL_NODES", "PARENT_PORT",
    "PROF_TIMELINE"};

/* Settings of earlier versions that were removed, and advice for users who still set them. */
static const struct {
    const char *name, *instead;
} retired[] = {
    {"MALLOC",
     "malloc is left alone if one of its own variables is set, for example MALLOC_TRIM_THRESHOLD_=131072"},
    {"STARVED_RENDEZVOUS", "sends that wait for credits are announced from 1 KiB on"},
};

/* Value of a string. It is not freed when the setting changes, since readers have pointers to it. */
struct tunable_text {
    struct tunable_text *next;
    char text[];
};

static struct {
    struct tunable **sorted;
    struct tunable_text *texts; /* all values of strings since the start */
    size_t count;
    char problems[PROBLEMS_MAX][512];
    char place[320]; /* "FILE:LINE: " while a file is read; prefix of its problems */
    int nproblems;
} table;

static int tunable_compare_by_name(const void *a, const void *b)
{
    return strcmp((*(struct tunable *const *)a)->name, (*(struct tunable *const *)b)->name);
}

static void table_open(void)
{
    if (table.sorted)
        return;
    size_t n = (size_t)(__stop_fp_tunables - __start_fp_tunables);
    table.sorted = calloc(n + 1, sizeof(*table.sorted));
    if (!table.sorted)
        return;
    memcpy(table.sorted, __start_fp_tunables, n * sizeof(*table.sorted));
    qsort(table.sorted, n, sizeof(*table.sorted), tunable_compare_by_name);
    table.count = n;
}

size_t tunables_count(void)
{
    table_open();
    return table.count;
}

struct tunable *tunables_get(size_t index)
{
    table_open();
    return index < table.count ? table.sorted[index] : NULL;
}

struct tunable *tunables_find(const char *name)
{
    for (size_t i = 0; i < tunables_count(); i++)
        if (strcmp(table.sorted[i]->name, name) == 0)
            return table.sorted[i];
    return NULL;
}

const char *env_get(const char *name)
{
    return getenv(name);
}

static bool parse_bool(const char *text, int64_t *out)
{
    static const struct {
        const char *word;
        int value;
    } words[] = {{"1", 1}, {"yes", 1}, {"on", 1}, {"true", 1}, {"0", 0}, {"no", 0}, {"off", 0}, {"false", 0}};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strcmp(text, words[i].word) == 0) {
            *out = words[i].value;
            return true;
        }
    return false;
}

bool tunable_parse_number(const char *text, bool units, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || errno)
        return false;
    int shift = 0;
    if (units && *end) {
        switch (tolower((unsigned char)*end)) {
        case 'k':
            shift = 10;
            break;
        case 'm':
            shift = 20;
            break;
        case 'g':
            shift = 30;
            break;
        default:
            return false;
        }
        end++;
        if (tolower((unsigned char)*end) == 'b')
            end++;
    }
    if (*end || value > (INT64_MAX >> shift) || value < (INT64_MIN >> shift))
        return false;
    *out = (int64_t)((uint64_t)value << shift);
    return true;
}

static bool parse_choice(const char *choices, const char *text, int64_t *out)
{
    size_t len = strlen(text);
    int64_t index = 0;
    for (const char *p = choices; *p; index++) {
        size_t word = strcspn(p, "|");
        if (word == len && memcmp(p, text, len) == 0) {
            *out = index;
            return true;
        }
        p += word + (p[word] == '|');
    }
    return false;
}

static int tunable_error_unknown_choice(const struct tunable *t, const char *text)
{
    char words[512];
    char *save = NULL;
    int64_t level;
    struct nearest best = nearest_start_search(text);
    snprintf(words, sizeof(words), "%s", t->choices);
    for (char *word = strtok_r(words, "|", &save); word; word = strtok_r(NULL, "|", &save))
        nearest_compare_candidate(&best, word);
    if (best.word)
        return err_set(MPI_ERR_ARG, PREFIX "%s=%s is not one of %s; did you mean %s?", t->name, text,
                       t->choices, best.word);
    if (parse_choice(log_level.choices, text, &level))
        return err_set(MPI_ERR_ARG, PREFIX "%s=%s is not one of %s; did you mean " PREFIX "%s=%s?", t->name,
                       text, t->choices, log_level.name, text);
    return err_set(MPI_ERR_ARG, PREFIX "%s=%s is not one of %s", t->name, text, t->choices);
}

static int check_words(const struct tunable *t, const char *text)
{
    char word[64];
    int64_t index;
    for (const char *at = text; *at;) {
        const size_t n = strcspn(at, ",");
        snprintf(word, sizeof(word), "%.*s", (int)MIN(n, sizeof(word) - 1), at);
        at += n + (at[n] == ',');
        if (n && !parse_choice(t->choices, word, &index))
            return tunable_error_unknown_choice(t, word);
    }
    return 0;
}

bool tunable_has_word(const struct tunable *t, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = t->text; *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, word, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return true;
    return false;
}

int tunable_set(struct tunable *t, const char *text, enum tunable_source source)
{
    int64_t value = 0;
    bool ok = true;
    switch (t->type) {
    case TUNABLE_IS_BOOL:
        ok = parse_bool(text, &value);
        if (!ok)
            return err_set(MPI_ERR_ARG, PREFIX "%s=%s is neither 1 nor 0", t->name, text);
        break;
    case TUNABLE_IS_INT:
    case TUNABLE_IS_SIZE:
        ok = tunable_parse_number(text, t->type == TUNABLE_IS_SIZE, &value);
        if (!ok)
            return err_set(MPI_ERR_ARG, PREFIX "%s=%s is not a number%s", t->name, text,
                           t->type == TUNABLE_IS_SIZE ? " (64k, 2m and 1g are understood)" : "");
        if (value < t->min || value > t->max)
            return err_set(MPI_ERR_ARG, PREFIX "%s=%s is outside %" PRId64 "..%" PRId64, t->name, text,
                           t->min, t->max);
        break;
    case TUNABLE_IS_CHOICE:
        ok = parse_choice(t->choices, text, &value);
        if (!ok)
            return tunable_error_unknown_choice(t, text);
        break;
    case TUNABLE_IS_STRING: {
        const int rc = t->choices ? check_words(t, text) : t->check ? t->check(text) : 0;
        if (rc)
            return rc;
        const size_t size = strlen(text) + 1;
        struct tunable_text *copy = malloc(sizeof(*copy) + size);
        if (!copy)
            return err_set(MPI_ERR_NO_MEM, "out of memory for " PREFIX "%s", t->name);
        memcpy(copy->text, text, size);
        copy->next = table.texts;
        table.texts = copy;
        t->text = copy->text;
        break;
    }
    }
    t->value = value;
    t->source = source;
    return 0;
}

void tunable_format(const struct tunable *t, char *out, size_t size)
{
    switch (t->type) {
    case TUNABLE_IS_STRING:
        snprintf(out, size, "%s", t->text);
        break;
    case TUNABLE_IS_CHOICE: {
        const char *p = t->choices;
        for (int64_t i = 0; i < t->value; i++)
            p += strcspn(p, "|") + 1;
        snprintf(out, size, "%.*s", (int)strcspn(p, "|"), p);
        break;
    }
    case TUNABLE_IS_SIZE:
        if (t->value && t->value % (1 << 20) == 0)
            snprintf(out, size, "%" PRId64 "m", t->value >> 20);
        else if (t->value && t->value % 1024 == 0)
            snprintf(out, size, "%" PRId64 "k", t->value >> 10);
        else
            snprintf(out, size, "%" PRId64, t->value);
        break;
    default:
        snprintf(out, size, "%" PRId64, t->value);
    }
}

static void __attribute__((format(printf, 1, 2))) problem_add(const char *format, ...)
{
    va_list args;
    if (table.nproblems == PROBLEMS_MAX)
        return;
    char *out = table.problems[table.nproblems++];
    const size_t size = sizeof(table.problems[0]);
    const int n = snprintf(out, size, "%s", table.place);
    va_start(args, format);
    vsnprintf(out + n, size - (size_t)n, format, args);
    va_end(args);
}

static void tunable_report_unknown_name(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(reserved); i++)
        if (strcmp(reserved[i], name) == 0)
            return;
    for (size_t i = 0; i < COUNT_OF(retired); i++)
        if (strcmp(retired[i].name, name) == 0) {
            problem_add(PREFIX "%s no longer exists and is ignored: %s.", name, retired[i].instead);
            return;
        }
    struct nearest best = nearest_start_search(name);
    for (size_t i = 0; i < table.count; i++)
        nearest_compare_candidate(&best, table.sorted[i]->name);
    if (best.word)
        problem_add(PREFIX "%s is not a tunable; did you mean " PREFIX "%s? It is ignored.", name, best.word);
    else
        problem_add(PREFIX "%s is not a tunable and is ignored; `fishplate info --tunables` lists them.",
                    name);
}

/* True if the tunable, or this value of a choice, is for experiments only. */
static bool is_experiment(const struct tunable *t, const char *text)
{
    int64_t value;
    return t->laboratory || (t->users > 0 && parse_choice(t->choices, text, &value) && value >= t->users);
}

static void set_or_report(struct tunable *t, const char *text, enum tunable_source source)
{
    char value[64];
    if (tunable_set(t, text, source) == 0)
        return;
    tunable_format(t, value, sizeof(value));
    const char *why = err_detail(MPI_ERR_ARG);
    const bool question = why[0] && why[strlen(why) - 1] == '?';
    if (value[0])
        problem_add("%s%s %s is used instead.", why, question ? "" : ";", value);
    else
        problem_add("%s%s", why, question ? " It is ignored." : "; it is ignored.");
}

static void load_laboratory(void)
{
    char item[128];
    snprintf(table.place, sizeof(table.place), PREFIX "LAB: ");
    for (const char *at = laboratory.text; *at;) {
        size_t n = strcspn(at, ",");
        snprintf(item, sizeof(item), "%.*s", (int)MIN(n, sizeof(item) - 1), at);
        at += n + (at[n] == ',');
        char *equals = strchr(item, '=');
        if (equals)
            *equals = '\0';
        struct tunable *t = equals ? tunables_find(item) : NULL;
        if (!equals)
            problem_add("%.100s is not NAME=VALUE and is ignored.", item);
        else if (!t)
            tunable_report_unknown_name(item);
        else if (t->source != SOURCE_PROGRAM)
            set_or_report(t, equals + 1, laboratory.source);
    }
    table.place[0] = '\0';
}

static void load_setting(const char *name, const char *text, enum tunable_source source)
{
    struct tunable *t = tunables_find(name);
    if (!t)
        tunable_report_unknown_name(name);
    else if (t->source == SOURCE_PROGRAM)
        return; /* the value that the program set by MPI_T takes precedence */
    else if (is_experiment(t, text))
        problem_add(PREFIX "%s=%s is for experiments only and is ignored; " PREFIX "LAB=%s=%s sets it.", name,
                    text, name, text);
    else
        set_or_report(t, text, source);
}

struct settings_place {
    const char *path;
    enum tunable_source source;
};

static void load_line(const char *name, const char *value, unsigned line, void *arg)
{
    const struct settings_place *file = arg;
    snprintf(table.place, sizeof(table.place), "%.300s:%u: ", file->path, line);
    if (value)
        load_setting(name, value, file->source);
    else
        problem_add("%.100s is not NAME = value and is ignored.", name);
    table.place[0] = '\0';
}

static void load_file(const char *path, enum tunable_source source)
{
    struct settings_place file = {path, source};
    const int error = settings_file_read(path, source == SOURCE_USER_FILE, load_line, &file);
    if (error == EPERM)
        problem_add("%.300s is ignored: another user owns it or can write it, or it is no regular file.",
                    path);
    else if (error == EILSEQ)
        problem_add("%.300s is ignored: it is not a text file.", path);
    else if (error)
        problem_add("%.300s is ignored: %s.", path, strerror(error));
}

static void load_environment(void)
{
    for (char **entry = environ; entry && *entry; entry++) {
        char key[64];
        const char *name = *entry + strlen(PREFIX);
        if (strncmp(*entry, PREFIX, strlen(PREFIX)) != 0)
            continue;
        const char *equals = strchr(name, '=');
        if (!equals)
            continue;
        snprintf(key, sizeof(key), "%.*s", (int)MIN(equals - name, (ptrdiff_t)sizeof(key)), name);
        load_setting(key, equals + 1, SOURCE_ENVIRONMENT);
    }
}

int tunables_load(void)
{
    char path[PATH_MAX];
    const struct err_state before =
        err_save(); /* an error before MPI_Init loads the settings to find its handler */
    table_open();
    table.nproblems = 0;
    if (settings_site_path(path, sizeof(path)))
        load_file(path, SOURCE_SITE_FILE);
    if (settings_user_path(path, sizeof(path)))
        load_file(path, SOURCE_USER_FILE);
    load_environment();
    load_laboratory();
    log_threshold = (int)log_level.value;
    err_restore(&before);
    return table.nproblems;
}

void tunables_report(void)
{
    for (int i = 0; i < table.nproblems; i++)
        log_warn("%s", table.problems[i]);
}
