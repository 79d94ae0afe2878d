/* check.c: `fishplate check`: tests whether hosts are fit for a job. It starts itself once on every host by
 * mpiexec; if a launcher (mpiexec, srun) started it, it examines the hosts of that job.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../command.h"
#include "cli/options.h"

static const char usage[] =
    "Usage: fishplate check [options] [HOSTS] [-- mpiexec options]\n"
    "\n"
    "Checks hosts before a job runs on them: adapters, ports, rates, GIDs, MTU, lockable memory, /dev/shm, "
    "reading of each other's memory (CMA), clocks, versions; then measures latency and bandwidth of every "
    "pair and finds the slow host. Each finding states what to do.\n"
    "\n"
    "HOSTS is a list as for mpiexec -hosts: n1,n2,n3, or n1 n2 n3. Without it: the hosts of the Slurm "
    "allocation, else this machine. Under a launcher it checks the hosts of that job: srun -N 4 "
    "--ntasks-per-node=1 fishplate check\n"
    "\n"
    "Options:\n";

static const char after[] =
    "\n"
    "Examples:\n"
    "  fishplate check n1,n2,n3,n4\n"
    "  fishplate check --report report.txt n1,n2\n"
    "\n"
    "Exit status: 0 nothing is wrong, 1 there is a warning, 2 the hosts could not be checked.\n";

struct check_options {
    const char *html, *report, *hosts, *hostfile;
    const char *names; /* in the job: names of the hosts as the user wrote them */
    bool json;
};

static bool is_in_job(void)
{
    return getenv("PMI_RANK") || getenv("PMI_FD") || getenv("PMIX_RANK");
}

static unsigned count_hosts(const char *list)
{
    unsigned n = *list != '\0';
    for (; *list; list++)
        n += *list == ',';
    return n;
}

static bool self_folder(char *out, size_t size)
{
    const ssize_t n = readlink("/proc/self/exe", out, size - 1);
    if (n <= 0)
        return false;
    out[n] = '\0';
    char *slash = strrchr(out, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

/* Executes mpiexec in place of this process; returns only on failure. */
static int start_job(const struct check_options *q, int nmore, char **more)
{
    char folder[PATH_MAX], launcher[PATH_MAX + 16], self[PATH_MAX + 16], count[16];
    const char *slurm = getenv("SLURM_JOB_NUM_NODES");
    char **argv = calloc((size_t)nmore + 28, sizeof(*argv));
    int n = 0;
    if (!argv || !self_folder(folder, sizeof(folder)))
        return 2;
    snprintf(launcher, sizeof(launcher), "%s/mpiexec", folder);
    snprintf(self, sizeof(self), "%s/fishplate", folder);
    argv[n++] = launcher;
    argv[n++] = "-ppn";
    argv[n++] = "1";
    if (q->hosts) {
        snprintf(count, sizeof(count), "%u", count_hosts(q->hosts));
        argv[n++] = "-hosts";
        argv[n++] = (char *)q->hosts;
        argv[n++] = "-n";
        argv[n++] = count;
    } else if (q->hostfile) {
        argv[n++] = "-f";
        argv[n++] = (char *)q->hostfile;
    } else if (nmore == 0) {
        argv[n++] = "-n";
        argv[n++] = slurm && getenv("SLURM_JOB_ID") ? (char *)slurm : "1";
    }
    for (int i = 0; i < nmore; i++)
        argv[n++] = more[i];
    argv[n++] = self;
    argv[n++] = "check";
    if (q->json)
        argv[n++] = "--json";
    if (q->hosts) {
        argv[n++] = "--names";
        argv[n++] = (char *)q->hosts;
    }
    if (q->html) {
        argv[n++] = "--html";
        argv[n++] = (char *)q->html;
    }
    if (q->report) {
        argv[n++] = "--report";
        argv[n++] = (char *)q->report;
    }
    execv(launcher, argv);
    fprintf(stderr, "fishplate check: %s cannot be run: %s.\n", launcher, strerror(errno));
    free(argv);
    return 2;
}

/* The first rank writes the files, and must not find out after the measurement that they cannot be written. */
static bool can_write_files(const struct check_options *q)
{
    int rank, good = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        good =
            command_can_write("fishplate check", q->html) && command_can_write("fishplate check", q->report);
    MPI_Bcast(&good, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return good != 0;
}

static int run_job(const struct check_options *q)
{
    struct survey s;
    struct findings f = {0};
    int status = 0;
    get_library_table();
    MPI_Init(NULL, NULL);
    if (!can_write_files(q)) {
        MPI_Finalize();
        return 2;
    }
    if (survey_measure(q->report != NULL, &s)) {
        if (q->names)
            survey_label(&s, q->names);
        findings_judge(&s, &f);
        if (q->json)
            check_print_json(stdout, &s, &f);
        else
            check_text(stdout, &s, &f);
        fflush(stdout);
        for (int i = 0; i < f.n; i++)
            status |= f.v[i].severity == CHECK_WARNING;
        if (q->html &&
            !command_write_file("fishplate check", q->html, check_write_html, &(struct check_report){&s, &f}))
            status = 2;
        if (q->report && check_write_report(q->report, &s) != 0)
            status = 2;
        free(f.v);
    }
    survey_free(&s);
    MPI_Finalize();
    return status;
}

static const struct cli_option options[] = {
    CLI_TEXT_LINE("--hostfile", "FILE", struct check_options, hostfile,
                  "read the hosts from a file, as mpiexec -hostfile does"),
    CLI_TEXT_LINE("--html", "FILE", struct check_options, html,
                  "also as one HTML page with the matrix of bandwidths as a picture"),
    CLI_TEXT_LINE("--report", "FILE", struct check_options, report,
                  "write a page for the developers: adapters, firmware, settings, figures by message size; "
                  "hosts are numbered, "
                  "names and addresses left out"),
    CLI_FLAG_LINE("--json", struct check_options, json, "print everything as JSON, for programs"),
    CLI_TEXT_LINE("--names", "A,B", struct check_options, names, NULL),
    CLI_END};

/* Joins the words of the list: hosts are separated by commas or blanks. */
static bool read_hosts(void *question, const char *word)
{
    struct check_options *q = question;
    char *list;
    if (asprintf(&list, "%s%s%s", q->hosts ? q->hosts : "", q->hosts ? "," : "", word) < 0)
        return false;
    q->hosts = list; /* never freed */
    return true;
}

int command_check(int argc, char **argv)
{
    struct check_options q = {0};
    const struct cli c = {.program = "fishplate check",
                          .options = options,
                          .operand = read_hosts,
                          .operands = "a list of hosts"};
    /* index of the arguments after "--", which are for mpiexec */
    const int more = cli_parse(&c, argc, argv, &q);
    if (more < 0)
        return command_usage(more, usage, options, after);
    if (is_in_job())
        return run_job(&q);
    return start_job(&q, argc - more, argv + more);
}
