/* prof.c: `fishplate prof`: runs a command with the profiler in its MPI programs, or reads stored records,
 * and writes the reports.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "prof.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options.h"
#include "command.h"
#include "doctor/source_line.h"

#define TIMELINE_CALLS "200000" /* default number of calls that a rank records */

struct options {
    const char *html, *json, *record, *timeline;
    bool all, quiet, read;
    char **rest; /* the command, or with --read the files */
};

static const struct cli_option options[] = {
    CLI_TEXT_LINE("--html", "FILE", struct options, html,
                  "also as one HTML page with charts; needs no other files"),
    CLI_TEXT_LINE("--json", "FILE", struct options, json, "also as JSON; - is standard output"),
    CLI_TEXT_LINE("--timeline", "FILE", struct options, timeline,
                  "also every call with its time, for https://ui.perfetto.dev or chrome://tracing"),
    CLI_FLAG_LINE("--all", struct options, all,
                  "all functions and pairs of ranks, not only the first twenty"),
    CLI_FLAG_LINE("--quiet", struct options, quiet, "no report on standard output"),
    CLI_TEXT_LINE("--record", "FILE", struct options, record, "store the record, for --read"),
    CLI_FLAG_LINE("--read", struct options, read, NULL),
    CLI_END};

static void prof_print_usage(void)
{
    cli_print_page(
        "Usage: fishplate prof [options] [--] mpiexec ...    run a program, then report\n"
        "       fishplate prof [options] --read FILE...      report on stored records\n"
        "\n"
        "The program needs no change and no recompilation, in C or Fortran. After its own output comes "
        "the report: "
        "what is wrong, calls and time of each function with its imbalance over ranks, message sizes, "
        "nonblocking calls, waiting, reuse of buffers, who sent how much to whom, and the slowest links.\n"
        "\n"
        "Options:\n",
        stdout);
    cli_print_options(options, stdout);
    cli_print_page(
        "\n"
        "Examples:\n"
        "  fishplate prof -- mpiexec -n 4 ./program\n"
        "  fishplate prof --html report.html -- mpiexec -n 4 ./program\n"
        "\n"
        "In the program, MPI_Pcontrol(0) stops recording and MPI_Pcontrol(1) goes on with it. To see one "
        "phase only, call MPI_Pcontrol(0) after MPI_Init.\n"
        "\n"
        "How to read it:\n"
        "  verdict          what costs at least a twentieth of the time, the most expensive first\n"
        "  waiting, moving  a collective call of all ranks waits until the last rank comes; what that rank's "
        "own call takes is moving data. Calls on smaller communicators are not split\n"
        "  of MPI           share of all time that ranks spend in MPI, between MPI_Init and MPI_Finalize\n"
        "  imbalance        how much longer the slowest rank takes than the mean; large: work is spread "
        "unevenly, and the others probably wait for it elsewhere\n"
        "  sizes            a message counts where it is sent; a collective call counts once on each rank, "
        "with what that rank hands in, or gets when it hands in nothing; receives by the room they offer\n"
        "  buffer reuse     high is good: an address used before is registered with the network already. Up "
        "to 196608 addresses a rank are remembered; the report states if there were more\n"
        "  lines            of the program that call MPI, the most expensive first; file and line need -g "
        "and addr2line (package binutils); not in Fortran\n"
        "  slowest links    messages of 32 KiB and more, compared with links of the same kind that do not "
        "touch the same node; slow: at least twice the time, at its fastest and in sum\n"
        "  One-sided and file calls are timed; their data is not counted.\n"
        "\n"
        "Rank 0 collects the records of all ranks in MPI_Finalize. A program that uses only sessions, "
        "aborts, or ends without MPI_Finalize (a crash, a timeout) leaves one record for each rank; those of "
        "other machines are not found. A program can also be linked with the profiler, ahead of MPI: mpicc "
        "program.c -lfishplate-prof. It then leaves a record file in its working folder.\n",
        stdout);
}

/* Parses the options, which end at `--` or at the first other word. */
static int prof_parse(struct options *o, int argc, char **argv)
{
    const struct cli c = {.program = "fishplate prof", .options = options, .stops = true};
    const int next = cli_parse(&c, argc, argv, o);
    if (next < 0)
        return next;
    o->rest = argv + next;
    if (*o->rest)
        return next;
    fprintf(stderr, o->read
                        ? "fishplate prof: --read needs the names of one or more record files.\n"
                        : "fishplate prof: no command was given. For example: fishplate prof -- mpiexec -n 4 "
                          "./program; --help explains.\n");
    return CLI_INVALID;
}

static bool prof_report_file_error(const char *path)
{
    fprintf(stderr, "fishplate prof: cannot write %s: %s.\n", path, strerror(errno));
    return false;
}

/* Makes the file name for a job: a command may run several jobs, and the second one's file is name-2.html. */
static void file_name(const char *wanted, int job, char *out, size_t size)
{
    const char *slash = strrchr(wanted, '/'), *dot = strrchr(wanted, '.');
    if (job == 1)
        snprintf(out, size, "%s", wanted);
    else if (dot && dot != wanted && (!slash || dot > slash + 1))
        snprintf(out, size, "%.*s-%d%s", (int)(dot - wanted), wanted, job, dot);
    else
        snprintf(out, size, "%s-%d", wanted, job);
}

static bool write_file(const struct prof_job *job, const char *wanted, int number,
                       void (*write)(const struct prof_job *, FILE *))
{
    char path[PATH_MAX];
    if (strcmp(wanted, "-") == 0) {
        write(job, stdout);
        return true;
    }
    file_name(wanted, number, path, sizeof(path));
    FILE *out = fopen(path, "w");
    if (!out)
        return prof_report_file_error(path);
    write(job, out);
    return fclose(out) == 0 || prof_report_file_error(path);
}

static bool report_timeline(const struct prof_job *job, const char *wanted, int number)
{
    if (job->nevents == 0) {
        fprintf(stderr, "fishplate prof: the record has no time line: it was not made with --timeline.\n");
        return false;
    }
    if (!write_file(job, wanted, number, prof_write_timeline))
        return false;
    fprintf(stderr,
            "fishplate prof: the time line is in %s: %zu calls. Open it in https://ui.perfetto.dev (Open "
            "trace file; the file "
            "stays in your browser) or in Chrome's chrome://tracing (Load).\n",
            wanted, job->nevents);
    if (job->dropped)
        fprintf(stderr,
                "fishplate prof: %llu later calls are not in it. FISHPLATE_PROF_TIMELINE=N keeps N calls a "
                "rank (%s); or "
                "record one phase with MPI_Pcontrol.\n",
                (unsigned long long)job->dropped, TIMELINE_CALLS);
    return true;
}

/* Resolves file and line of the most expensive call sites. */
static void resolve_call_sites(struct prof_job *job)
{
    struct places *places = places_open();
    for (size_t i = 0; i < job->nsites && i < PROF_SITES; i++) {
        struct prof_site *s = &job->sites[i];
        struct page_place at = {.offset = s->offset};
        snprintf(at.module, sizeof(at.module), "%s", s->path);
        snprintf(s->text, sizeof(s->text), "%s", place_text(places, &at));
    }
    places_close(places);
}

static bool prof_write_reports(const struct options *o, struct prof_job *jobs, const char *command)
{
    bool good = true;
    int number = 0;
    for (struct prof_job *job = jobs; job; job = job->next) {
        number++;
        job->command = command;
        prof_job_sum_up(job);
        resolve_call_sites(job);
        if (!o->quiet) {
            printf("\n");
            prof_write_text(job, o->all, stdout);
        }
        if (o->html)
            good = write_file(job, o->html, number, prof_write_html) && good;
        if (o->timeline)
            good = report_timeline(job, o->timeline, number) && good;
        if (o->json)
            good = write_file(job, o->json, number, prof_write_json) && good;
    }
    return good;
}

static bool prof_copy_file(const char *path, FILE *out)
{
    char block[8192];
    size_t n;
    FILE *in = fopen(path, "r");
    if (!in)
        return prof_report_file_error(path);
    while ((n = fread(block, 1, sizeof(block), in)) > 0)
        fwrite(block, 1, n, out);
    fclose(in);
    return true;
}

static bool read_folder(const char *folder, FILE *kept, struct prof_job **jobs)
{
    char path[PATH_MAX + 256];
    bool good = true;
    struct dirent **names;
    int n = scandir(folder, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *name = names[i]->d_name, *end = strrchr(name, '.');
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        if (end && strcmp(end, ".txt") == 0) {
            good = prof_read_file(path, jobs) && good;
            if (kept)
                good = prof_copy_file(path, kept) && good;
        }
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    return good;
}

static char *prof_join_words(char **words)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    for (char **w = words; *w; w++)
        fprintf(f, "%s%s", w == words ? "" : " ", *w);
    fclose(f);
    return text;
}

/* Runs the command and writes the reports. Returns the status of the command, or 1 if a report failed. */
static int run_and_report(const struct options *o)
{
    char folder[PATH_MAX];
    struct prof_job *jobs = NULL;
    FILE *kept = NULL;
    /* the command may take hours */
    if (!command_can_write("fishplate prof", o->html) || !command_can_write("fishplate prof", o->json) ||
        !command_can_write("fishplate prof", o->timeline))
        return 1;
    if (o->record && !(kept = fopen(o->record, "w")))
        return prof_report_file_error(o->record) ? 0 : 1;
    if (!prof_folder_make(folder, sizeof(folder))) {
        if (kept)
            fclose(kept);
        return 1;
    }
    if (o->timeline)
        setenv("FISHPLATE_PROF_TIMELINE", TIMELINE_CALLS, 0);
    int status = prof_run(o->rest, folder);
    bool good = read_folder(folder, kept, &jobs);
    prof_folder_remove(folder);
    if (kept && fclose(kept) != 0)
        good = prof_report_file_error(o->record);
    if (!jobs && status != 0 && status != 126 && status != 127)
        fprintf(
            stderr,
            "fishplate prof: the command ended with status %d and left no record, so there is nothing to "
            "report: no MPI "
            "program got as far as MPI_Init, or its ranks were killed (SIGKILL) or ran on other machines.\n",
            status);
    if (!jobs && status == 0) {
        fprintf(
            stderr,
            "fishplate prof: no record was left on this machine. Did the command run an MPI program, linked "
            "dynamically, until MPI_Finalize?\n");
        good = false;
    }
    char *command = prof_join_words(o->rest);
    good = prof_write_reports(o, jobs, command) && good;
    free(command);
    prof_jobs_free(jobs);
    return status ? status : !good;
}

/* Refuses to run once for each rank of a job: each would record only its own program. Rank 0 prints the command
 * and fails; other ranks do not fail, since their failure could end rank 0 before it prints. Returns the
 * exit status, or -1 to continue. */
static int refuse_in_job(const struct options *o)
{
    const char *rank = getenv("PMI_RANK"), *size = getenv("PMI_SIZE");
    if (!rank || !size || strcmp(size, "1") == 0)
        return -1;
    if (strcmp(rank, "0") != 0)
        return 0;
    char *command = prof_join_words(o->rest);
    fprintf(
        stderr,
        "fishplate prof starts mpiexec, so mpiexec must not start it. Run: fishplate prof -- mpiexec -n %s "
        "%s\n",
        size, command ? command : "./program");
    free(command);
    return 2;
}

int command_prof(int argc, char **argv)
{
    struct options o = {0};
    struct prof_job *jobs = NULL;
    const int next = prof_parse(&o, argc, argv);
    if (next == CLI_HELP)
        prof_print_usage();
    if (next < 0)
        return next == CLI_HELP ? 0 : 2;
    if (!o.read) {
        const int status = refuse_in_job(&o);
        return status >= 0 ? status : run_and_report(&o);
    }
    bool good = true;
    for (char **file = o.rest; *file; file++)
        good = prof_read_file(*file, &jobs) && good;
    good = good && prof_write_reports(&o, jobs, NULL);
    prof_jobs_free(jobs);
    return !good;
}
