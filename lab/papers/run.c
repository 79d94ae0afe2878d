/* run.c: runs the commands of the sources, round by round, and stores their output in a folder until the
 * report is written, so that an interrupted run can be resumed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "load.h"
#include "papers.h"

enum { WORDS_MAX = 64, COMMAND_MAX = 1024, BAR = 30, PATH_ROOM = PATH_MAX + 128, SECONDS_TO_END = 10 };

static volatile sig_atomic_t running; /* process group of the running command, for the signal handler */

struct job {
    int source, variant, round;
    double seconds; /* expected run time */
    bool done;
};

struct plan {
    struct job *jobs;
    int count, at;
    double expected, took; /* seconds of the completed jobs: expected, and measured */
};

static double run_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void papers_command(const struct papers_run *run, const struct variant *v, char *out, size_t size)
{
    snprintf(out, size, "%s", run->quick ? v->quick : v->full);
}

static int source_count_variants(const struct source *s)
{
    int n = 0;
    while (n < VARIANTS_MAX && s->variants[n].quick)
        n++;
    return n;
}

static void job_file_path(const struct papers_run *run, const struct job *j, const char *ending,
                          char out[PATH_ROOM])
{
    snprintf(out, PATH_ROOM, "%s/%s.%d.%d.%s", run->work, sources[j->source].name, j->variant, j->round,
             ending);
}

/* ---- One command ---- */

static void run_exec_command(const struct papers_run *run, char *command, const char *out, const char *err)
{
    char *argv[WORDS_MAX], mpiexec[PATH_ROOM], tool[PATH_ROOM];
    int n = 0, in = open("/dev/null", O_RDONLY), to = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0644),
        errors = open(err, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (in < 0 || to < 0 || errors < 0 || dup2(in, 0) < 0 || dup2(to, 1) < 0 || dup2(errors, 2) < 0)
        _exit(126);
    snprintf(mpiexec, sizeof(mpiexec), "%s/mpiexec", run->folder);
    snprintf(tool, sizeof(tool), "%s/fishplate", run->folder);
    for (char *save = NULL, *w = strtok_r(command, " ", &save); w && n < WORDS_MAX - 1;
         w = strtok_r(NULL, " ", &save))
        argv[n++] = strcmp(w, "fishplate-lab") == 0 ? (char *)run->program
                    : strcmp(w, "fishplate") == 0   ? tool
                    : strcmp(w, "mpiexec") == 0     ? mpiexec
                                                    : w;
    argv[n] = NULL;
    unsetenv("FISHPLATE_STATS");
    setpgid(0, 0);
    execv(argv[0], argv);
    fprintf(stderr, "cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

/* Waits at most `seconds`. A command that takes longer is terminated, so that mpiexec can end its ranks, and
 * killed with all its descendants if it has not ended `SECONDS_TO_END` later. Returns 0, or -1 with the
 * reason in `why`. */
static int run_wait_command(pid_t child, double seconds, char why[64])
{
    int status = -1;
    bool is_terminated = false;
    const double until = run_clock() + seconds;
    const struct timespec nap = {0, 20000000};
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (run_clock() > until && !is_terminated)
            is_terminated = kill(child, SIGTERM) == 0;
        if (run_clock() > until + SECONDS_TO_END)
            kill(-child, SIGKILL);
        nanosleep(&nap, NULL);
    }
    running = 0;
    if (is_terminated)
        snprintf(why, 64, "did not end within %.0f s", seconds);
    else if (WIFEXITED(status))
        snprintf(why, 64, "exit status %d", WEXITSTATUS(status));
    else
        snprintf(why, 64, "signal %d", WTERMSIG(status));
    return !is_terminated && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

static int run_command(const struct papers_run *run, const char *words, const char *out, const char *err,
                       double seconds, char why[64])
{
    char command[COMMAND_MAX];
    snprintf(command, sizeof(command), "%s", words);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        run_exec_command(run, command, out, err);
    if (child < 0) {
        snprintf(why, 64, "fork: %s", strerror(errno));
        return -1;
    }
    setpgid(child, child);
    running = child;
    return run_wait_command(child, seconds, why);
}

static void run_handle_interrupt(int signal_number)
{
    static const char text[] =
        "\nfishplate-lab papers: interrupted. Run the same command again to continue.\n";
    if (running > 0)
        kill(-(pid_t)running, SIGTERM);
    ssize_t ignored = write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)ignored;
    _exit(128 + signal_number);
}

/* ---- The plan ---- */

static bool run_needs_source(const struct papers_run *run, const struct source *s)
{
    for (int i = 0; i < run->results_count; i++)
        if (run->results[i].source == s)
            return true;
    return false;
}

static void plan_make(const struct papers_run *run, struct plan *p)
{
    p->jobs = calloc((size_t)(sources_count * VARIANTS_MAX * run->rounds), sizeof(*p->jobs));
    if (!p->jobs)
        return;
    for (int round = 0; round < run->rounds; round++)
        for (int i = 0; i < sources_count; i++) {
            const struct source *s = &sources[i];
            if (!run_needs_source(run, s) || (round > 0 && s->same_always))
                continue;
            int n = source_count_variants(s);
            for (int v = 0; v < n; v++)
                p->jobs[p->count++] =
                    (struct job){i, v, round, (run->quick ? s->quick_seconds : s->full_seconds) / n, false};
        }
}

static double plan_seconds_left(const struct plan *p)
{
    double left = 0;
    for (int i = 0; i < p->count; i++)
        left += p->jobs[i].done ? 0 : p->jobs[i].seconds;
    return p->expected > 0 ? left * p->took / p->expected : left;
}

static void plan_print_progress(const struct papers_run *run, const struct plan *p, const char *what)
{
    int left = (int)ceil(plan_seconds_left(p)), filled = p->count ? BAR * p->at / p->count : BAR;
    if (!run->terminal) {
        fprintf(stderr, "fishplate-lab papers: %d of %d, %s, about %d min %02d s left\n", p->at, p->count,
                what, left / 60, left % 60);
        return;
    }
    fprintf(stderr, "\r\033[K[%.*s%.*s] %d/%d  %s  about %d:%02d left", filled,
            "##############################", BAR - filled, "..............................", p->at, p->count,
            what, left / 60, left % 60);
}

static void job_store_load(const struct papers_run *run, const struct job *j, double others, double seconds)
{
    char path[PATH_ROOM];
    job_file_path(run, j, "load", path);
    FILE *f = fopen(path, "w");
    if (!f)
        return;
    fprintf(f, "%.4f %.3f\n", others, seconds);
    fclose(f);
}

/* Counts a command that failed, prints it, and appends the reason to the file with its messages. The run
 * goes on with the next command. */
static void run_report_failure(struct papers_run *run, const char *command, const char *err, const char *why)
{
    FILE *f = fopen(err, "a");
    run->failures++;
    if (f) {
        fprintf(f, "\n%s\n", why);
        fclose(f);
    }
    fprintf(stderr, "%sfishplate-lab papers: failed (%s): %s\n", run->terminal ? "\r\033[K" : "", why,
            command);
}

/* Runs one job unless its result is stored already. */
static void plan_run_job(struct papers_run *run, struct plan *p, struct job *j)
{
    char answer[PATH_ROOM], part[PATH_ROOM], err[PATH_ROOM], command[COMMAND_MAX];
    const struct source *s = &sources[j->source];
    job_file_path(run, j, "json", answer);
    job_file_path(run, j, "part", part);
    job_file_path(run, j, "err", err);
    if (access(answer, R_OK) == 0) {
        run->resumed++;
    } else {
        papers_command(run, &s->variants[j->variant], command, sizeof(command));
        plan_print_progress(run, p, s->name);
        struct load before, after;
        double began = run_clock();
        const bool known = load_read(&before);
        char why[64] = "";
        int status = run_command(run, command, part, err, 60 + 20 * j->seconds, why);
        struct value *v = value_read(part);
        if (known && load_read(&after))
            job_store_load(run, j, load_share_of_others(&before, &after), run_clock() - began);
        p->took += run_clock() - began;
        p->expected += j->seconds;
        if (status == 0 && v && rename(part, answer) == 0)
            unlink(err);
        else
            run_report_failure(run, command, err, status == 0 ? "printed no JSON document" : why);
        value_free(v);
    }
    j->done = true;
    p->at++;
}

/* ---- The folder of stored answers ---- */

static void stored_output_remove_folder(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *d;
    char file[PATH_MAX + 300];
    while (dir && (d = readdir(dir)))
        if (d->d_name[0] != '.') {
            snprintf(file, sizeof(file), "%s/%s", path, d->d_name);
            unlink(file);
        }
    if (dir)
        closedir(dir);
    rmdir(path);
}

/* Opens the folder of stored command output; removes output of another version or another kind of run. */
static bool stored_output_open_folder(const struct papers_run *run)
{
    char about[256], found[256] = "", path[PATH_ROOM];
    snprintf(about, sizeof(about), "%s %s", FISHPLATE_VERSION, run->quick ? "quick" : "full");
    snprintf(path, sizeof(path), "%s/about", run->work);
    FILE *f = fopen(path, "r");
    if (f) {
        if (!fgets(found, sizeof(found), f))
            found[0] = 0;
        fclose(f);
    }
    if (run->fresh || strcmp(found, about) != 0)
        stored_output_remove_folder(run->work);
    if (mkdir(run->work, 0777) != 0 && errno != EEXIST)
        return false;
    f = fopen(path, "w");
    if (!f)
        return false;
    fputs(about, f);
    return fclose(f) == 0;
}

/* ---- Tables from answers ---- */

static struct table *result_make_round_table(const struct papers_run *run, const struct result *r, int round)
{
    struct value *documents[VARIANTS_MAX] = {NULL};
    char path[PATH_ROOM];
    int n = source_count_variants(r->source), have = 0;
    for (int v = 0; v < n; v++) {
        struct job j = {.source = (int)(r->source - sources), .variant = v, .round = round};
        job_file_path(run, &j, "json", path);
        documents[v] = value_read(path);
        have += documents[v] != NULL;
    }
    struct table *t =
        have == n ? table_collect(r->entry, r->source, (const struct value *const *)documents) : NULL;
    for (int v = 0; v < n; v++)
        value_free(documents[v]);
    return t;
}

/* Share of the processors' time that other programs used: mean over the commands of a source, weighted by
 * their time. If the share of a command is unknown: the load average before the run. */
static double source_mean_load_of_others(const struct papers_run *run, const struct source *s)
{
    const int n = source_count_variants(s), rounds = s->same_always ? 1 : run->rounds;
    double sum = 0, seconds = 0;
    for (int i = 0; i < n * rounds; i++) {
        struct job j = {.source = (int)(s - sources), .variant = i % n, .round = i / n};
        char path[PATH_ROOM];
        double others = fmin(1, run->load_before / run->cores), took = 1;
        job_file_path(run, &j, "load", path);
        FILE *f = fopen(path, "r");
        if (f && fscanf(f, "%lf %lf", &others, &took) != 2)
            took = 1;
        if (f)
            fclose(f);
        sum += others * took;
        seconds += took;
    }
    return seconds > 0 ? sum / seconds : 0;
}

/* Copies the last two lines of a text file: the last message of a command and the reason why it failed. */
static void run_copy_last_lines(const char *path, char out[300])
{
    char line[256], lines[2][140] = {"", ""};
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f)) {
        if (line[0] == '\n')
            continue;
        memcpy(lines[0], lines[1], sizeof(lines[0]));
        snprintf(lines[1], sizeof(lines[1]), "%.*s", (int)strcspn(line, "\n"), line);
    }
    if (f)
        fclose(f);
    snprintf(out, 300, "%s%s%s", lines[0], lines[0][0] ? "; " : "", lines[1]);
}

static void result_explain_missing(const struct papers_run *run, struct result *r)
{
    char path[PATH_ROOM], last[300];
    snprintf(r->missing, sizeof(r->missing), "its command %s",
             run->quick ? "does not print this table with --quick" : "did not print this table");
    for (int v = 0; v < source_count_variants(r->source); v++) {
        struct job j = {.source = (int)(r->source - sources), .variant = v, .round = 0};
        job_file_path(run, &j, "err", path);
        if (access(path, R_OK) != 0)
            continue;
        run_copy_last_lines(path, last);
        snprintf(r->missing, sizeof(r->missing), "its command failed: %s", last);
        return;
    }
}

static void result_fill(const struct papers_run *run, struct result *r)
{
    for (int round = 0; round < run->rounds; round++) {
        struct table *t = result_make_round_table(run, r, round);
        if (!r->table) {
            r->table = t;
        } else if (t) {
            table_merge(r->table, t);
            table_free(t);
        }
    }
    if (!r->table)
        result_explain_missing(run, r);
    if (r->table) {
        table_compute_values(r->table, r->entry->better);
        r->others = source_mean_load_of_others(run, r->source);
        const struct conditions c = {.is_timed = !r->source->same_always && !r->source->untimed &&
                                                 !r->entry->is_model,
                                     .is_too_brief = run->quick && r->source->quick_too_brief,
                                     .others = r->others};
        judge_entry(r->entry, r->table, &c, &r->finding);
    }
}

bool papers_measure(struct papers_run *run)
{
    struct plan p = {0};
    double began = run_clock();
    if (!stored_output_open_folder(run)) {
        fprintf(stderr, "fishplate-lab papers: cannot store results in %s: %s\n", run->work, strerror(errno));
        return false;
    }
    plan_make(run, &p);
    fprintf(stderr, "fishplate-lab papers: %d commands, about %.0f min on an idle machine of two cores\n",
            p.count, ceil(plan_seconds_left(&p) / 60));
    signal(SIGINT, run_handle_interrupt);
    signal(SIGTERM, run_handle_interrupt);
    for (int i = 0; i < p.count; i++)
        plan_run_job(run, &p, &p.jobs[i]);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    if (run->terminal)
        fputs("\r\033[K", stderr);
    for (int i = 0; i < run->results_count; i++)
        result_fill(run, &run->results[i]);
    run->seconds = run_clock() - began;
    free(p.jobs);
    return true;
}

void papers_remove_files(const struct papers_run *run)
{
    stored_output_remove_folder(run->work);
}
