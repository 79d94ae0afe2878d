/* info_tunables.c: prints the settings and the counters as text and as JSON, and the settings as a Markdown
 * table for the documentation.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <mpi.h>
#include <string.h>

#include "base/tunable.h"
#include "cli/options.h"
#include "info.h"

enum advice_group { START, NET, COLL, EXPERT, ADVICE_GROUPS };

static const char *const advice_titles[ADVICE_GROUPS] = {"Start here", "Network", "Collectives", "Expert"};
static const char *const advice_words[ADVICE_GROUPS] = {"start", "network", "collectives",
                                                        "expert"}; /* in JSON */

struct advice {
    const char *name;        /* without FISHPLATE_ */
    enum advice_group group; /* list in which the setting is shown */
    const char *when;        /* when a user changes it */
    const char *counter;     /* counter (FISHPLATE_STATS=1) that shows the need; NULL: none */
};

/* Each new setting gets a line here; tests/tools/tunables.sh finds settings without a line, and unknown counters. */
static const struct advice table[] = {
    {"CHECK", START, "Set 0 for a program that is known to be correct and sends very many small messages.",
     NULL},
    {"COLL", COLL,
     "Set it when `fishplate bench` shows another algorithm to be faster for your sizes and ranks.",
     "coll_schedules_made"},
    {"COLL_TRY", COLL,
     "Set 0 if every run must use the same algorithms. Raise it for short programs if the MPI_T variable "
     "`coll_choices` is empty at their "
     "end.",
     "coll_tuning_us"},
    {"CRASH_NOTE", START, "Set 0 when another tool reports crashes and conflicts with these handlers.", NULL},
    {"DEBUG", START,
     "Set coll when a job hangs in a collective or its results are wrong, rma when results of one-sided "
     "operations are wrong.",
     NULL},
    {"DOCTOR", START,
     "Set 0 when every kilobyte or open file of a rank counts; then `fishplate why` cannot see it.", NULL},
    {"EAGER_MAX", NET,
     "Raise it when many medium messages wait for their receiver; lower it to save memory for unexpected "
     "messages.",
     "p2p_rendezvous"},
    {"IB_BUFFERS", NET, "Raise it when senders wait for credits; lower it to save memory with many peers.",
     "ib_credit_waits"},
    {"IB_CONNECT", NET, "Set static to move the cost of connecting from the first messages into MPI_Init.",
     "ib_connections_opened"},
    {"IB_CONNECT_TIMEOUT", NET, "Set it where the launcher cannot notice that a rank has died.",
     "ib_hellos_repeated"},
    {"IB_DEVICES", START,
     "Set it when a node has several adapters and the wrong one is used (fishplate info --devices).", NULL},
    {"IB_GID_INDEX", NET,
     "Set it on RoCE when the network needs another address or RoCE version than the one chosen.", NULL},
    {"IB_MAX_CONNECTIONS", NET,
     "Set it when the adapter runs out of queue pairs or memory with very many peers.",
     "ib_connections_opened"},
    {"IB_PATHS", NET,
     "Raise it where the network between two ports is the bottleneck and there are several paths.",
     "ib_rails_joined"},
    {"IB_PKEY_INDEX", NET, "Set it when the administrator has put your job into another partition.", NULL},
    {"IB_POLLSET", NET, "Raise it when more than 16 peers send many small messages; set 0 to save memory.",
     "ib_rings_added"},
    {"IB_RAIL_PATIENCE", NET, "Raise it where a switch restarts or a cable is changed while jobs run.",
     "ib_connections_moved"},
    {"IB_RECEIVE", NET, "Set shared to save memory when a rank talks to very many peers.", "ib_buffer_bytes"},
    {"IB_RETRIES", NET, "Lower it to notice a broken link sooner.", NULL},
    {"IB_SERVICE_LEVEL", NET, "Set it when the administrator has given your traffic another service level.",
     NULL},
    {"IB_STRIPE", NET,
     "Set even or weighted when the ports are never shared with other jobs, dynamic when adapters slow down "
     "while they send and receive at once.",
     "ib_striped"},
    {"IB_TIMEOUT", NET,
     "Raise it on a congested network where connections fail although the cables are "
     "good.",
     NULL},
    {"IB_WEIGHTS", NET, "Set it when the ports differ in what they can deliver and not in their rate.",
     "ib_rail1_bytes"},
    {"INITIAL_ERRHANDLER", EXPERT,
     "Set it for a program that handles errors before it can set an error handler.", NULL},
    {"INIT_TIMEOUT", NET, "Raise it when hosts start slowly and the job ends in MPI_Init.", "start_fence_us"},
    {"LAB", EXPERT, "Set it for experiments with the library itself, not for programs.", NULL},
    {"GPU", EXPERT,
     "Set cuda to end a job at its start where CUDA cannot be used; set off if classifying addresses "
     "disturbs a program.",
     "gpu_address_queries"},
    {"LOG", START, "Set info when a job uses the wrong network, debug when you report a problem.", NULL},
    {"NAME_DIR", EXPERT,
     "Name a folder on a shared file system when servers and clients run on different hosts.", NULL},
    {"MEM_HOOKS", EXPERT,
     "Set off when another tool changes the same functions of the C library and the two conflict.",
     "reg_invalidations"},
    {"PROGRESS", START,
     "Set thread when nonblocking messages should move while the program computes without MPI calls.",
     "net_thread_wakes"},
    {"REG_CACHE", NET, "Raise it when buffers are registered again and again; lower it when memory is short.",
     "reg_evictions"},
    {"RENDEZVOUS", NET, "Set it to compare the protocols of large messages; auto measures them by itself.",
     "p2p_rendezvous"},
    {"REQUIRE", START, "Set ib in job scripts, so that a job never runs on software by mistake.", NULL},
    {"SHM_CMA", NET, "Set 0 when the system forbids it and records that in its log.", "shm_cma_bytes"},
    {"SHM_RING", EXPERT, "Raise it when senders wait for room at a receiver that seldom calls MPI.",
     "shm_ring_full"},
    {"SPIN_US", NET, "Lower it to save power; raise it when ranks fall asleep between messages.",
     "net_sleeps"},
    {"STATS", START, "Set 1 to see what the library did: every counter named on this page is in its summary.",
     NULL},
    {"TUNE", START,
     "Set off when two runs must make the same choices, or to compare the built-in rules with the tuner.",
     NULL},
    {"VERBS", START, "Set softib to use the software adapter on purpose, system to forbid it.", NULL},
};

/* Returns the advice for a setting, never NULL: a setting without an entry is for experts. */
static const struct advice *advice_find(const struct tunable *t)
{
    static const struct advice none = {.group = EXPERT, .when = ""};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (strcmp(table[i].name, t->name) == 0)
            return &table[i];
    return &none;
}

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

void info_tunables_markdown(const struct fishplate_inside *in)
{
    printf("# Tunables\n\n"
           "Written by `fishplate info --tunables --markdown`; do not edit. MPI_Init reads each setting from "
           "the "
           "environment, from\n"
           "`~/.config/fishplate.conf`, or from `PREFIX/etc/fishplate.conf` for all users of an "
           "installation, in this "
           "order. A line of a\n"
           "file is `NAME = value`, without `FISHPLATE_`. Files must be the same on all hosts of a job. "
           "Sizes may be "
           "written `64k`, `2m`, `1g`.\n"
           "A mistyped name is reported with the nearest right one.\n"
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

void info_tunables_text(const struct fishplate_inside *in)
{
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

void info_tunables_json(const struct fishplate_inside *in, struct json *j)
{
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

void info_changed_text(const struct fishplate_inside *in)
{
    char value[VALUE_MAX], first[VALUE_MAX];
    int n = 0;
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

void info_changed_json(const struct fishplate_inside *in, struct json *j)
{
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

void info_pvars_text(const struct fishplate_inside *in)
{
    struct pvar v;
    int provided;
    (void)in;
    printf("What the library counts (FISHPLATE_STATS=1 prints the counters of a job)\n");
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    for (int i = 0; pvar_get(i, &v); i++)
        printf("  %-28s %-8s %s%s\n", v.name, class_name(v.class), v.doc,
               v.bind == MPI_T_BIND_MPI_COMM ? " (of a communicator)" : "");
    MPI_T_finalize();
}

void info_pvars_json(const struct fishplate_inside *in, struct json *j)
{
    struct pvar v;
    int provided;
    (void)in;
    json_array(j, "pvars");
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    for (int i = 0; pvar_get(i, &v); i++) {
        json_record(j, NULL, "name=%s class=%s bound=%s doc=%s", v.name, class_name(v.class),
                    v.bind == MPI_T_BIND_MPI_COMM ? "communicator" : "nothing", v.doc);
    }
    MPI_T_finalize();
    json_end(j);
}
