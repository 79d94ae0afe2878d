/* info_tunables.c: prints the settings and the counters as text and as JSON, and the settings as a Markdown
 * table for the documentation.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <mpi.h>
#include <string.h>

#include "advice.h"
#include "base/tunable.h"
#include "cli/options.h"
#include "info.h"

static const char *const type_names[] = {[TUNABLE_IS_BOOL] = "0 or 1",
                                         [TUNABLE_IS_INT] = "number",
                                         [TUNABLE_IS_SIZE] = "size",
                                         [TUNABLE_IS_STRING] = "text",
                                         [TUNABLE_IS_CHOICE] = "choice"};
static const char *const source_names[] = {[SOURCE_DEFAULT] = "default",
                                           [SOURCE_SITE_FILE] = "site file",
                                           [SOURCE_USER_FILE] = "user file",
                                           [SOURCE_ENVIRONMENT] = "environment",
                                           [SOURCE_PROGRAM] = "program"};

enum { VALUE_MAX = 256 };

static void format_default(const struct fishplate_inside *in, const struct tunable *t, char *out)
{
    struct tunable copy = *t;
    copy.value = t->initial;
    copy.text = "";
    in->tunable_format(&copy, out, VALUE_MAX);
}

/* Returns the length of the part of t->choices that users may set: the first t->users choices (0: all). */
static int user_choices_length(const struct tunable *t)
{
    size_t n = 0;
    for (int64_t i = 0; t->choices[n] && (t->users == 0 || i < t->users); i++) {
        n += i > 0;
        n += strcspn(t->choices + n, "|");
    }
    return (int)n;
}

/* Formats the values that a user may enter: the choices, or the range. */
static void format_range(const struct fishplate_inside *in, const struct tunable *t, char *out)
{
    char low[VALUE_MAX / 4], high[VALUE_MAX / 4];
    if (t->type == TUNABLE_IS_CHOICE) {
        snprintf(out, VALUE_MAX, "%.*s", user_choices_length(t), t->choices);
        for (char *p = out; *p; p++)
            if (*p == '|')
                *p = ' ';
        return;
    }
    if (t->type != TUNABLE_IS_INT && t->type != TUNABLE_IS_SIZE) {
        snprintf(out, VALUE_MAX, "%s", type_names[t->type]);
        return;
    }
    struct tunable copy = *t;
    copy.value = t->min;
    in->tunable_format(&copy, low, sizeof(low));
    copy.value = t->max;
    in->tunable_format(&copy, high, sizeof(high));
    snprintf(out, VALUE_MAX, "%s to %s", low, high);
}

static void markdown_row(const struct fishplate_inside *in, const struct tunable *t)
{
    char value[VALUE_MAX], range[VALUE_MAX];
    const struct advice *a = advice_find(t);
    format_default(in, t, value);
    format_range(in, t, range);
    printf("| `FISHPLATE_%s` | %s | %s | %s | %s | ", t->name, value[0] ? value : "unset", range, t->doc,
           a->when);
    printf(a->counter ? "`%s` |\n" : "|\n", a->counter);
}

/* True if a setting is printed in this group; settings of the laboratory are not for users. */
static bool is_listed(const struct tunable *t, int group)
{
    return !t->laboratory && (int)advice_find(t)->group == group;
}

static void print_markdown(const struct fishplate_inside *in)
{
    printf("# Tunables\n\n"
           "Written by `fishplate info --tunables --markdown`; do not edit. Each is an environment variable, "
           "read once in\n"
           "MPI_Init, or a line `NAME = value` (without `FISHPLATE_`) of `~/.config/fishplate.conf`, or of "
           "`PREFIX/etc/fishplate.conf`\n"
           "for all users of an installation; the environment takes precedence over the user's file, and "
           "that one "
           "over the site's.\n"
           "Files must be the same on all hosts of a job. Sizes may be written `64k`, `2m`, `1g`. A "
           "mistyped name is reported with the nearest "
           "right one.\n"
           "`fishplate info --changed` shows those that are set, and where; `FISHPLATE_STATS=1` prints the "
           "counters.\n");
    for (int g = 0; g < ADVICE_GROUPS; g++) {
        printf("\n## %s\n\n| variable | default | may be | what it does | when to change it | counter |\n"
               "|---|---|---|---|---|---|\n",
               advice_titles[g]);
        for (size_t i = 0; i < in->tunables_count(); i++)
            if (is_listed(in->tunables_get(i), g))
                markdown_row(in, in->tunables_get(i));
    }
}

static void print_tunable(const struct fishplate_inside *in, const struct tunable *t)
{
    char value[VALUE_MAX], range[VALUE_MAX], text[512];
    const struct advice *a = advice_find(t);
    in->tunable_format(t, value, sizeof(value));
    format_range(in, t, range);
    printf("%c FISHPLATE_%s = %s   (%s; %s)\n", t->source == SOURCE_DEFAULT ? ' ' : '*', t->name,
           value[0] ? value : "unset", source_names[t->source], range);
    cli_print_text(t->doc, 0, 6, stdout);
    if (a->counter)
        snprintf(text, sizeof(text), "%s Counter: %s.", a->when, a->counter);
    else
        snprintf(text, sizeof(text), "%s", a->when);
    cli_print_text(text, 0, 6, stdout);
}

void info_tunables_text(const struct fishplate_inside *in, const struct info_options *o)
{
    if (o->markdown) {
        print_markdown(in);
        return;
    }
    printf("Tunables (environment variables; * marks those that are set)\n");
    for (int g = 0; g < ADVICE_GROUPS; g++) {
        printf("%s\n", advice_titles[g]);
        for (size_t i = 0; i < in->tunables_count(); i++)
            if (is_listed(in->tunables_get(i), g))
                print_tunable(in, in->tunables_get(i));
    }
}

static void json_tunable(const struct fishplate_inside *in, const struct tunable *t, struct json *j)
{
    char value[VALUE_MAX];
    const struct advice *a = advice_find(t);
    json_object(j, NULL);
    json_string(j, "name", t->name);
    in->tunable_format(t, value, sizeof(value));
    json_string(j, "value", value);
    format_default(in, t, value);
    json_string(j, "default", value);
    format_range(in, t, value);
    json_members(j, "range=%s source=%s group=%s doc=%s when=%s counter=%s", value, source_names[t->source],
                 advice_words[a->group], t->doc, a->when, a->counter ? a->counter : "");
    json_end(j);
}

void info_tunables_json(const struct fishplate_inside *in, const struct info_options *o, struct json *j)
{
    (void)o;
    json_array(j, "tunables");
    for (size_t i = 0; i < in->tunables_count(); i++)
        if (!in->tunables_get(i)->laboratory)
            json_tunable(in, in->tunables_get(i), j);
    json_end(j);
}

/* ---- changed settings ---- */

static bool tunable_is_changed(const struct fishplate_inside *in, const struct tunable *t)
{
    char value[VALUE_MAX], first[VALUE_MAX];
    in->tunable_format(t, value, sizeof(value));
    format_default(in, t, first);
    return strcmp(value, first) != 0;
}

void info_changed_text(const struct fishplate_inside *in, const struct info_options *o)
{
    char value[VALUE_MAX], first[VALUE_MAX];
    int n = 0;
    (void)o;
    for (size_t i = 0; i < in->tunables_count(); i++) {
        const struct tunable *t = in->tunables_get(i);
        if (t->source == SOURCE_DEFAULT)
            continue;
        in->tunable_format(t, value, sizeof(value));
        format_default(in, t, first);
        printf("%sFISHPLATE_%s%s=%s (%s; %s%s)\n", n++ ? "" : "Settings that were set\n",
               t->laboratory ? "LAB=" : "", t->name, value, source_names[t->source],
               tunable_is_changed(in, t) ? "default: " : "the same as its default, ",
               first[0] ? first : "unset");
    }
    if (n == 0)
        printf("Every setting has its default.\n");
}

void info_changed_json(const struct fishplate_inside *in, const struct info_options *o, struct json *j)
{
    (void)o;
    json_array(j, "changed");
    for (size_t i = 0; i < in->tunables_count(); i++)
        if (in->tunables_get(i)->source != SOURCE_DEFAULT)
            json_tunable(in, in->tunables_get(i), j);
    json_end(j);
}

/* A performance variable, read through MPI_T as any tool would. */
struct pvar {
    char name[128], doc[512];
    int class, bind;
};

static bool pvar_get(int index, struct pvar *v)
{
    int name = sizeof(v->name), doc = sizeof(v->doc);
    return MPI_T_pvar_get_info(index, v->name, &name, NULL, &v->class, NULL, NULL, v->doc, &doc, &v->bind,
                               NULL, NULL, NULL) == MPI_SUCCESS;
}

static const char *class_name(int class)
{
    switch (class) {
    case MPI_T_PVAR_CLASS_COUNTER:
        return "counter";
    case MPI_T_PVAR_CLASS_LEVEL:
        return "level";
    case MPI_T_PVAR_CLASS_SIZE:
        return "size";
    case MPI_T_PVAR_CLASS_HIGHWATERMARK:
        return "peak";
    case MPI_T_PVAR_CLASS_AGGREGATE:
        return "sum";
    case MPI_T_PVAR_CLASS_GENERIC:
        return "text";
    default:
        return "other";
    }
}

void info_pvars_text(const struct fishplate_inside *in, const struct info_options *o)
{
    struct pvar v;
    int provided;
    (void)in;
    (void)o;
    printf("What the library counts (FISHPLATE_STATS=1 prints the counters of a job)\n");
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    for (int i = 0; pvar_get(i, &v); i++)
        printf("  %-28s %-8s %s%s\n", v.name, class_name(v.class), v.doc,
               v.bind == MPI_T_BIND_MPI_COMM ? " (of a communicator)" : "");
    MPI_T_finalize();
}

void info_pvars_json(const struct fishplate_inside *in, const struct info_options *o, struct json *j)
{
    struct pvar v;
    int provided;
    (void)in;
    (void)o;
    json_array(j, "pvars");
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    for (int i = 0; pvar_get(i, &v); i++) {
        json_record(j, NULL, "name=%s class=%s bound=%s doc=%s", v.name, class_name(v.class),
                    v.bind == MPI_T_BIND_MPI_COMM ? "communicator" : "nothing", v.doc);
    }
    MPI_T_finalize();
    json_end(j);
}
