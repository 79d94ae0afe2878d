/* ps.c: `fishplate ps`: the MPI jobs of this user and the state of each rank on any host; once, repeatedly on
 * a terminal, or as JSON.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "ps.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "../command.h"
#include "cli/number.h"
#include "cli/options.h"

static const char usage[] =
    "Usage: fishplate ps [options] [JOB]\n"
    "\n"
    "Lists the MPI jobs of this user on this machine and on the hosts of their mpiexec. Of one JOB (or the "
    "only one) it shows what every rank does: the MPI call in which it waits and for how long, processor "
    "time, memory, messages and bytes sent per second, messages that arrived before their receive (early), "
    "and how it sends; then which ranks are late to a collective call, and the slowest link between ranks. "
    "The ranks need not help.\n"
    "\n"
    "JOB is the process id of mpiexec or of a rank, or (part of) a job's name.\n"
    "\n"
    "Options:\n";

static volatile sig_atomic_t resized, ended;

static void ps_on_resize(int sig)
{
    (void)sig;
    resized = 1;
}

static void ps_on_end(int sig)
{
    (void)sig;
    ended = 1;
}

/* Takes two samples, from which rates are computed. */
static int ps_sample_twice(double apart, struct snapshots *before, struct snapshots *now)
{
    const struct timespec t = {.tv_sec = (time_t)apart,
                               .tv_nsec = (long)((apart - (double)(time_t)apart) * 1e9)};
    int error = snapshots_take_all(before);
    if (error)
        return error;
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
    return snapshots_take_all(now);
}

static int ps_show(FILE *out, const struct snapshots *before, struct snapshots *now, const char *which,
                   bool json, int lines)
{
    const char *why = "";
    struct snapshot *job = snapshots_choose(now, which, &why);
    if (json) {
        ps_json(out, now, before);
    } else if (job) {
        const struct snapshot *earlier = snapshots_find_same(before, job);
        ps_job(out, job, earlier ? earlier : job, lines);
    } else if (which || now->count == 0) {
        fprintf(out, "fishplate ps: %s.\n", why);
        return 2;
    } else {
        ps_jobs(out, now);
    }
    return 0;
}

static int ps_show_once(const char *which, bool json)
{
    struct snapshots before = {0}, now = {0};
    const int error = ps_sample_twice(0.3, &before, &now);
    int status = 2;
    if (error)
        fprintf(stderr, "fishplate ps: %s\n", strerror(error));
    else
        status = ps_show(stdout, &before, &now, which, json, 0);
    snapshots_free(&before);
    snapshots_free(&now);
    return status;
}

static int terminal_lines(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 4 ? size.ws_row : 24;
}

/* Repaints the screen in one write and clears the rest of each line, so that the screen does not flicker. */
static void ps_paint_screen(const char *text)
{
    char *screen = NULL;
    size_t size;
    int left = terminal_lines() - 1;
    FILE *out = open_memstream(&screen, &size);
    if (!out)
        return;
    fprintf(out, "\033[H");
    for (const char *end; *text && left > 0; text = *end ? end + 1 : end, left--) {
        end = strchrnul(text, '\n');
        fprintf(out, "%.*s\033[K\r\n", (int)(end - text), text);
    }
    fprintf(out, "\033[J");
    fclose(out);
    ssize_t ignored = write(STDOUT_FILENO, screen, size);
    (void)ignored;
    free(screen);
}

/* Waits for the next refresh; true if the user quits. */
static bool ps_sleep(double seconds)
{
    struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
    char key = 0;
    const int n = poll(&keys, 1, (int)(seconds * 1000));
    if (n > 0 && read(STDIN_FILENO, &key, 1) <= 0)
        return true;
    return ended || key == 'q' || key == 'Q' || key == 3 || key == 27;
}

static void run_watch_loop(const char *which, double seconds)
{
    struct snapshots before = {0}, now = {0};
    while (!ended) {
        char *text = NULL;
        size_t size;
        snapshots_free(&before);
        before = now;
        if (snapshots_take_all(&now) != 0)
            break;
        FILE *out = open_memstream(&text, &size);
        if (!out)
            break;
        fprintf(out, "fishplate ps --watch, every %.1f s; q quits\n\n", seconds);
        ps_show(out, &before, &now, which, false, terminal_lines() - 3);
        fclose(out);
        ps_paint_screen(text);
        free(text);
        if (ps_sleep(before.count == 0 ? 0.3 : seconds))
            break;
        resized = 0;
    }
    snapshots_free(&before);
    snapshots_free(&now);
}

/* Runs --watch; restores the modes, cursor and screen of the terminal at the end. */
static int ps_watch(const char *which, double seconds)
{
    struct termios was, raw;
    struct sigaction end = {.sa_handler = ps_on_end}, resize = {.sa_handler = ps_on_resize};
    if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &was) != 0) {
        fprintf(
            stderr,
            "fishplate ps: --watch needs a terminal; `fishplate ps` prints once, `--json` for programs.\n");
        return 2;
    }
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGHUP, &end, NULL);
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGWINCH, &resize, NULL); /* interrupts poll(), so that the screen is repainted */
    raw = was;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    printf("\033[?1049h\033[?25l");
    fflush(stdout);
    run_watch_loop(which, seconds);
    printf("\033[?25h\033[?1049l");
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSANOW, &was);
    return 0;
}

/* Handles --pages for an agent of mpiexec: writes the samples of one job on this host as bytes. */
static int write_pages(const char *job)
{
    struct snapshots here;
    const int error = snapshots_take_host(&here);
    if (error)
        return 2;
    for (size_t i = 0; i < here.count; i++)
        for (uint32_t r = 0; r < here.jobs[i].ranks && job && strcmp(here.jobs[i].job, job) == 0; r++)
            if (here.jobs[i].samples[r])
                sample_write(stdout, here.jobs[i].samples[r]);
    snapshots_free(&here);
    return fflush(stdout) == 0 ? 0 : 2;
}

struct ps_options {
    const char *job;
    bool json, pages;
    double seconds; /* interval of --watch; 0: print once */
};

static bool read_job(void *question, const char *word)
{
    ((struct ps_options *)question)->job = word;
    return true;
}

static bool read_watch(void *question, const char *value)
{
    return number_parse_real(*value ? value : "2", 0.1, 3600, &((struct ps_options *)question)->seconds);
}

static const struct cli_option options[] = {
    CLI_CALL_LINE("--watch", "[=SECONDS]", read_watch,
                  "refresh the whole screen every SECONDS, 0.1 to 3600 (default 2); q quits"),
    CLI_FLAG_LINE("--json", struct ps_options, json, "print all jobs and ranks as JSON, for programs"),
    CLI_FLAG_LINE("--pages", struct ps_options, pages, NULL), CLI_END};

int command_ps(int argc, char **argv)
{
    struct ps_options q = {0};
    const struct cli c = {
        .program = "fishplate ps", .options = options, .operand = read_job, .operands = "a job"};
    const int next = cli_parse(&c, argc, argv, &q);
    if (next < 0)
        return command_usage(next, usage, options,
                             "\n"
                             "Examples:\n"
                             "  fishplate ps                jobs, or the ranks of the only job\n"
                             "  fishplate ps --watch 12345  the job whose mpiexec has this process id\n"
                             "  fishplate why 12345         why it makes no progress\n");
    if (q.pages)
        return write_pages(q.job);
    return q.seconds > 0 ? ps_watch(q.job, q.seconds) : ps_show_once(q.job, q.json);
}
