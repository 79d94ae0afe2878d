/* papers.c: `fishplate-lab papers`: options, help, description of the machine, and the sequence of a run.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "papers.h"
#include "cli/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static const struct cli_option options[] = {
    CLI_TEXT_LINE("--html", "FILE", struct papers_run, html,
                  "write the report as one HTML page that needs no other files"),
    CLI_TEXT_LINE("--json", "FILE", struct papers_run, json,
                  "write the report with all samples as JSON; - is standard output"),
    CLI_FLAG_LINE("--quick", struct papers_run, quick,
                  "a few points of each figure; a full run takes many times as long"),
    CLI_INT_LINE("--rounds", "3", struct papers_run, rounds, 1, ROUNDS_MAX,
                 "number of times to measure everything (default 3, with --quick 2)"),
    CLI_TEXT_LINE("--only", "liu-5", struct papers_run, only,
                  "only entries whose name begins with this text; separate several by commas"),
    CLI_TEXT_LINE("--against", "FILE", struct papers_run, against,
                  "compare with the JSON document of an earlier run: better, worse or within noise, by "
                  "Welch's t-test on "
                  "the geometric means of rounds, 5 % over all entries (Holm)"),
    CLI_FLAG_LINE("--fresh", struct papers_run, fresh,
                  "start again instead of continuing an interrupted run"),
    CLI_FLAG_LINE("--list", struct papers_run, list,
                  "print the entries, their commands and the expected time"),
    CLI_END};

static void print_usage(void)
{
    cli_print_page(
        "Usage: fishplate-lab papers [options]\n"
        "\n"
        "Repeats the measurements of the five papers that Fishplate is based on, as far as this machine "
        "allows, and shows each figure and table beside the paper's. It starts its own jobs: on one node, "
        "over virtual nodes (mpiexec -vnodes), and in the simulator.\n"
        "\n"
        "Options:\n",
        stdout);
    cli_print_options(options, stdout);
    cli_print_page(
        "\n"
        "Results are kept in FILE.runs until the report is written: after an interruption the same command "
        "continues where the run stopped. The exit status is 1 when a command failed; its output is kept.\n"
        "\n"
        "Examples:\n"
        "  fishplate-lab papers --quick --html report.html --json report.json\n"
        "  fishplate-lab papers --quick --only takagi,liu-6 --json new.json --against report.json\n",
        stdout);
}

static int papers_parse(struct papers_run *run, int argc, char **argv)
{
    const struct cli c = {.program = "fishplate-lab papers", .options = options};
    const int next = cli_parse(&c, argc, argv, run);
    if (run->rounds == 0)
        run->rounds = run->quick ? 2 : 3;
    return next;
}

static bool papers_find_programs(struct papers_run *run)
{
    char path[PATH_MAX + 16];
    ssize_t n = readlink("/proc/self/exe", run->program, sizeof(run->program) - 1);
    if (n <= 0)
        return false;
    run->program[n] = 0;
    snprintf(run->folder, sizeof(run->folder), "%.*s", (int)(strrchr(run->program, '/') - run->program),
             run->program);
    snprintf(path, sizeof(path), "%s/mpiexec", run->folder);
    if (access(path, X_OK) == 0)
        return true;
    fprintf(stderr,
            "fishplate-lab papers: there is no mpiexec in the directory of %s; use fishplate from a complete "
            "installation.\n",
            run->program);
    return false;
}

static void papers_describe_machine(struct papers_run *run)
{
    char line[256];
    struct utsname name;
    double load[1] = {0};
    time_t t = time(NULL);
    FILE *f = fopen("/proc/cpuinfo", "r");
    snprintf(run->machine, sizeof(run->machine), "unknown processor");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            snprintf(run->machine, sizeof(run->machine), "%.*s", (int)strcspn(strchr(line, ':') + 2, "\n"),
                     strchr(line, ':') + 2);
            break;
        }
    if (f)
        fclose(f);
    if (uname(&name) == 0)
        snprintf(run->kernel, sizeof(run->kernel), "%.60s %.80s, %.60s", name.sysname, name.release,
                 name.machine);
    run->cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    strftime(run->date, sizeof(run->date), "%Y-%m-%d %H:%M", localtime(&t));
    if (getloadavg(load, 1) == 1)
        run->load_before = load[0];
    for (char **e = environ; *e; e++) {
        size_t used = strlen(run->settings);
        if (strncmp(*e, "FISHPLATE_", 10) == 0 || strncmp(*e, "SOFTIB_", 7) == 0)
            snprintf(run->settings + used, sizeof(run->settings) - used, "%s%s", used ? " " : "", *e);
    }
}

static bool papers_selects_entry(const char *only, const char *id)
{
    while (only && *only) {
        size_t len = strcspn(only, ",");
        if (strncmp(id, only, len) == 0)
            return true;
        only += len + (only[len] == ',');
    }
    return !only;
}

static const struct source *papers_find_source(const char *name)
{
    for (int i = 0; i < sources_count; i++)
        if (strcmp(sources[i].name, name) == 0)
            return &sources[i];
    return NULL;
}

/* Sorts by paper and chapter; entries of one chapter keep their order. */
static void papers_sort_results(struct papers_run *run)
{
    for (int i = 1; i < run->results_count; i++) {
        struct result r = run->results[i];
        int k = i;
        for (; k > 0; k--) {
            const struct entry *before = run->results[k - 1].entry;
            if (before->paper < r.entry->paper ||
                (before->paper == r.entry->paper && strcmp(before->chapter, r.entry->chapter) <= 0))
                break;
            run->results[k] = run->results[k - 1];
        }
        run->results[k] = r;
    }
}

static bool papers_choose_entries(struct papers_run *run)
{
    const struct {
        const struct entry *entries;
        int count;
    } lists[] = {{entries_liu, entries_liu_count},
                 {entries_multicast, entries_multicast_count},
                 {entries_programs, entries_programs_count},
                 {entries_rails, entries_rails_count},
                 {entries_others, entries_others_count}};
    const size_t lists_count = sizeof(lists) / sizeof(lists[0]);
    size_t all = 0;
    for (size_t l = 0; l < lists_count; l++)
        all += (size_t)lists[l].count;
    run->results = calloc(all, sizeof(*run->results));
    for (size_t l = 0; run->results && l < lists_count; l++)
        for (const struct entry *e = lists[l].entries; e < lists[l].entries + lists[l].count; e++)
            if (papers_selects_entry(run->only, e->id))
                run->results[run->results_count++] =
                    (struct result){.entry = e, .source = papers_find_source(e->source)};
    papers_sort_results(run);
    if (run->results_count == 0)
        fprintf(stderr, "fishplate-lab papers: no entry begins with '%s'; --list shows all.\n",
                run->only ? run->only : "");
    return run->results_count > 0;
}

/* Expected seconds of all selected commands, as measured on two cores. */
static double papers_sum_expected_seconds(const struct papers_run *run)
{
    double sum = 0;
    for (int i = 0; i < sources_count; i++) {
        const struct source *s = &sources[i];
        bool is_used = false;
        for (int k = 0; k < run->results_count; k++)
            is_used = is_used || run->results[k].source == s;
        if (is_used)
            sum += (run->quick ? s->quick_seconds : s->full_seconds) * (s->same_always ? 1 : run->rounds);
    }
    return sum;
}

static void papers_print_list(const struct papers_run *run)
{
    char command[1024];
    for (int i = 0; i < run->results_count; i++) {
        const struct result *r = &run->results[i];
        printf("%-14s [%s %s] %s\n", r->entry->id, papers[r->entry->paper].key, r->entry->figure,
               r->entry->title);
        for (int v = 0; v < VARIANTS_MAX && r->source->variants[v].quick; v++) {
            papers_command(run, &r->source->variants[v], command, sizeof(command));
            printf("               %s\n", command);
        }
    }
    printf("About %.0f min on an idle machine of two cores.\n", ceil(papers_sum_expected_seconds(run) / 60));
}

static bool papers_write_reports(const struct papers_run *run)
{
    bool good = true;
    if (run->html && !papers_write_page(run, run->html)) {
        fprintf(stderr, "fishplate-lab papers: cannot write %s: %s\n", run->html, strerror(errno));
        good = false;
    }
    if (run->json && !papers_write_json(run, run->json)) {
        fprintf(stderr, "fishplate-lab papers: cannot write %s: %s\n", run->json, strerror(errno));
        good = false;
    }
    return good;
}

static int papers_measure_and_report(struct papers_run *run)
{
    double load[1];
    const char *named = run->html                                  ? run->html
                        : run->json && strcmp(run->json, "-") != 0 ? run->json
                                                                   : "papers";
    snprintf(run->work, sizeof(run->work), "%.*s.runs", (int)sizeof(run->work) - 8, named);
    if (!papers_measure(run))
        return 1;
    if (getloadavg(load, 1) == 1)
        run->load_after = load[0];
    if (run->against && !papers_compare(run, run->against))
        return 1;
    bool good = papers_write_reports(run);
    if (!run->json || strcmp(run->json, "-") != 0)
        papers_print(run);
    if (run->resumed)
        fprintf(stderr, "fishplate-lab papers: used %d results of an earlier, interrupted run.\n",
                run->resumed);
    if (run->failures)
        fprintf(stderr, "fishplate-lab papers: %d commands failed; their output is in %s.\n", run->failures,
                run->work);
    else if (good)
        papers_remove_files(run);
    return good && run->failures == 0 ? 0 : 1;
}

static void papers_free_results(struct papers_run *run)
{
    for (int i = 0; i < run->results_count; i++)
        table_free(run->results[i].table);
    free(run->results);
}

int bench_papers_main(int argc, char **argv)
{
    struct papers_run *run = calloc(1, sizeof(*run));
    int status = 2;
    if (!run)
        return 1;
    const int next = papers_parse(run, argc, argv);
    if (next == CLI_HELP) {
        print_usage();
        status = 0;
    } else if (next != CLI_INVALID) {
        run->terminal = isatty(STDERR_FILENO);
        papers_describe_machine(run);
        if (papers_find_programs(run) && papers_choose_entries(run)) {
            status = 0;
            if (run->list)
                papers_print_list(run);
            else
                status = papers_measure_and_report(run);
        }
    }
    papers_free_results(run);
    free(run);
    return status;
}
