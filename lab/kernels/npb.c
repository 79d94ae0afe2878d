/* npb.c: `fishplate-lab kernels --npb DIR`: builds the original NAS suite that the user provides with
 * Fishplate's mpifort and mpicc, runs it under mpiexec, and compares its figures with our kernels.
 * The suite is built in a copy; the user's folder is not changed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "npb.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/json_read.h"
#include "cli/json.h"
#include "cli/options.h"

enum { WORDS = 48, TAIL = 8 };

static const char *const names[] = {"ep", "is", "cg", "mg", "ft", "lu", "bt", "sp"};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

struct npb {
    const char *suite, *classes, *words; /* words: additional options for mpiexec */
    int ranks;
    bool json, help;
    struct json document;
    unsigned wanted;
    char folder[PATH_MAX]; /* folder of the installed programs */
    char copy[PATH_MAX];
    const char *npb_fortran_flags;
    int rows, failures;
};

/* Figures that a program of the suite printed; NAN: not printed. */
struct figures {
    double seconds, rate;
    bool verified;
};

/* ---- Programs ---- */

static void npb_exec_program(char *const argv[], const char *out)
{
    int in = open("/dev/null", O_RDONLY), to = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (in < 0 || to < 0 || dup2(in, 0) < 0 || dup2(to, 1) < 0 || dup2(to, 2) < 0)
        _exit(126);
    execvp(argv[0], argv);
    fprintf(stderr, "cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

/* Runs a program and returns its exit status. */
static int npb_run(char *const argv[], const char *out)
{
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        npb_exec_program(argv, out);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* Prints the last lines of a build log. */
static void npb_print_log_tail(const char *path)
{
    char lines[TAIL][256];
    int n = 0;
    FILE *f = fopen(path, "re");
    while (f && fgets(lines[n % TAIL], sizeof(lines[0]), f))
        n++;
    for (int i = n > TAIL ? n - TAIL : 0; i < n; i++)
        fprintf(stderr, "  %s", lines[i % TAIL]);
    if (f)
        fclose(f);
}

static bool path_join(const char *folder, const char *name, char out[PATH_MAX])
{
    const int n = snprintf(out, PATH_MAX, "%s/%s", folder, name);
    return n > 0 && n < PATH_MAX;
}

static bool path_exists(const char *folder, const char *name)
{
    char path[PATH_MAX];
    return path_join(folder, name, path) && access(path, F_OK) == 0;
}

/* ---- The suite ---- */

static bool npb_folder_is_suite(const char *folder)
{
    return path_exists(folder, "Makefile") && path_exists(folder, "config") && path_exists(folder, "sys");
}

/* The suite has one subfolder for each programming model; the name of the MPI version ends in -MPI. */
static bool npb_find_suite(struct npb *n)
{
    static char found[PATH_MAX];
    if (npb_folder_is_suite(n->suite))
        return true;
    DIR *dir = opendir(n->suite);
    const struct dirent *e;
    while (dir && (e = readdir(dir))) {
        const size_t len = strlen(e->d_name);
        if (len > 4 && strcmp(e->d_name + len - 4, "-MPI") == 0 && path_join(n->suite, e->d_name, found) &&
            npb_folder_is_suite(found)) {
            n->suite = found;
            break;
        }
    }
    if (dir)
        closedir(dir);
    if (npb_folder_is_suite(n->suite))
        return true;
    fprintf(stderr,
            "fishplate-lab kernels: %s is not the NAS suite: there is no folder in it with Makefile, config "
            "and sys. Name the "
            "folder NPB3.x-MPI.\n",
            n->suite);
    return false;
}

/* The suite's make.def would name another MPI, so all compilers and libraries are given on make's command
 * line. */
static bool npb_copy_suite(struct npb *n)
{
    const char *base = getenv("TMPDIR");
    char from[PATH_MAX + 2], log[PATH_MAX], settings[PATH_MAX], sample[PATH_MAX];
    if (!path_join(base && *base ? base : "/tmp", "fishplate-npb-XXXXXX", n->copy) || !mkdtemp(n->copy)) {
        fprintf(stderr, "fishplate-lab kernels: cannot make a folder for the copy of the suite: %s\n",
                strerror(errno));
        n->copy[0] = 0;
        return false;
    }
    snprintf(from, sizeof(from), "%s/.", n->suite);
    char *const cp[] = {"cp", "-R", from, n->copy, NULL};
    if (!path_join(n->copy, "fishplate.log", log) || !path_join(n->copy, "config/make.def", settings) ||
        !path_join(n->copy, "config/make.def.template", sample) || npb_run(cp, log) != 0) {
        fprintf(stderr, "fishplate-lab kernels: cannot copy %s to %s:\n", n->suite, n->copy);
        npb_print_log_tail(log);
        return false;
    }
    char bin[PATH_MAX], *const settle[] = {"cp", sample, settings, NULL},
                               *const make_bin[] = {"mkdir", "-p", bin, NULL};
    if (access(settings, F_OK) != 0 && npb_run(settle, log) != 0) {
        fprintf(stderr, "fishplate-lab kernels: %s/config has neither make.def nor make.def.template.\n",
                n->suite);
        return false;
    }
    return path_join(n->copy, "bin", bin) && npb_run(make_bin, log) == 0;
}

static void npb_remove_copy(const struct npb *n)
{
    char *const rm[] = {"rm", "-rf", (char *)n->copy, NULL};
    if (n->copy[0])
        npb_run(rm, "/dev/null");
}

/* Old sources pass arguments of several types to one MPI function, which gfortran rejects without an
 * option. */
static const char *npb_fortran_flags(const struct npb *n)
{
    char log[PATH_MAX], program[PATH_MAX], line[256] = "";
    if (!path_join(n->copy, "fishplate.log", log) || !path_join(n->folder, "mpifort", program))
        return "-O3";
    char *const version[] = {program, "--version", NULL};
    npb_run(version, log);
    FILE *f = fopen(log, "re");
    const bool gnu = f && fgets(line, sizeof(line), f) && strstr(line, "GNU Fortran");
    if (f)
        fclose(f);
    return gnu ? "-O3 -fallow-argument-mismatch -fallow-invalid-boz" : "-O3";
}

/* Builds one program and finds its path: bin/is.S.4, or bin/is.S.x in version 3.4 and later. */
static bool npb_build(const struct npb *n, const char *name, char class, char program[PATH_MAX])
{
    static const char *const compilers[] = {"MPIF77", "MPIFC", "MPIF90", "FLINK", "MPICC", "CLINK"};
    char words[16][PATH_MAX + 64], log[PATH_MAX], file[64], *argv[WORDS] = {"make", "-C", (char *)n->copy};
    int argc = 3, w = 0;
    snprintf(words[w++], sizeof(words[0]), "%s", name);
    snprintf(words[w++], sizeof(words[0]), "CLASS=%c", class);
    snprintf(words[w++], sizeof(words[0]), "NPROCS=%d", n->ranks);
    for (int i = 0; i < 6; i++)
        snprintf(words[w++], sizeof(words[0]), "%s=%s/%s", compilers[i], n->folder,
                 i < 4 ? "mpifort" : "mpicc");
    snprintf(words[w++], sizeof(words[0]), "FFLAGS=%s", n->npb_fortran_flags);
    for (int i = 0; i < w; i++)
        argv[argc++] = words[i];
    static char *const fixed[] = {"CFLAGS=-O3", "FMPI_LIB=", "FMPI_INC=", "CMPI_LIB=", "CMPI_INC=", NULL};
    for (int i = 0; fixed[i]; i++)
        argv[argc++] = fixed[i];
    argv[argc] = NULL;
    if (!path_join(n->copy, "fishplate.log", log))
        return false;
    const int status = npb_run(argv, log);
    for (int i = 0; i < 2 && status == 0; i++) {
        snprintf(file, sizeof(file), i == 0 ? "bin/%s.%c.%d" : "bin/%s.%c.x", name, class, n->ranks);
        if (path_exists(n->copy, file))
            return path_join(n->copy, file, program);
    }
    fprintf(stderr, "fishplate-lab kernels: the suite's %s of class %c does not build for %d ranks:\n", name,
            class, n->ranks);
    npb_print_log_tail(log);
    return false;
}

/* ---- Figures ---- */

/* Runs mpiexec with the user's options, then `program` and its arguments. */
static int npb_run_job(const struct npb *n, char *const program[], const char *out)
{
    char mpiexec[PATH_MAX], ranks[16], text[1024], *argv[WORDS], *save = NULL;
    int argc = 0;
    if (!path_join(n->folder, "mpiexec", mpiexec))
        return 126;
    snprintf(ranks, sizeof(ranks), "%d", n->ranks);
    snprintf(text, sizeof(text), "%s", n->words);
    argv[argc++] = mpiexec;
    argv[argc++] = "-n";
    argv[argc++] = ranks;
    for (char *w = strtok_r(text, " ", &save); w && argc < WORDS - 10; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    for (int i = 0; program[i]; i++)
        argv[argc++] = program[i];
    argv[argc] = NULL;
    return npb_run(argv, out);
}

static double npb_parse_number_after(const char *line, const char *name)
{
    const char *at = strstr(line, name), *equals = at ? strchr(at, '=') : NULL;
    return equals ? strtod(equals + 1, NULL) : NAN;
}

static struct figures npb_run_original(const struct npb *n, char *program)
{
    struct figures f = {NAN, NAN, false};
    char log[PATH_MAX], line[512], *const argv[] = {program, NULL};
    if (!path_join(n->copy, "fishplate.log", log))
        return f;
    const int status = npb_run_job(n, argv, log);
    FILE *in = fopen(log, "re");
    while (in && fgets(line, sizeof(line), in)) {
        const double seconds = npb_parse_number_after(line, "Time in seconds"),
                     rate = npb_parse_number_after(line, "Mop/s total");
        f.seconds = isnan(seconds) ? f.seconds : seconds;
        f.rate = isnan(rate) ? f.rate : rate;
        if (strstr(line, "Verification") && strstr(line, "SUCCESSFUL") && !strstr(line, "UNSUCCESSFUL"))
            f.verified = true;
    }
    if (in)
        fclose(in);
    if (status != 0 || isnan(f.seconds)) {
        fprintf(stderr, "fishplate-lab kernels: %s failed (exit status %d):\n", program, status);
        npb_print_log_tail(log);
        f.verified = false;
    }
    return f;
}

static struct figures npb_run_kernel(const struct npb *n, const char *name, char class)
{
    struct figures f = {NAN, NAN, false};
    char log[PATH_MAX], program[PATH_MAX], letter[] = {class, 0};
    char *const argv[] = {program, "kernels", "--json", "--class", letter, (char *)name, NULL};
    if (strcmp(name, "sp") == 0 || !path_join(n->copy, "fishplate.log", log) ||
        !path_join(n->folder, "fishplate-lab", program) || npb_run_job(n, argv, log) != 0)
        return f;
    struct value *document = value_read(log);
    const struct value *row = value_first_element(document, "results");
    if (row) {
        f.seconds = value_number(row, "seconds", NAN);
        f.rate = value_number(row, "rate", NAN);
        f.verified = value_is_true(row, "verified");
    }
    value_free(document);
    return f;
}

/* ---- The report ---- */

static void npb_print_number(double x, const char *format, const char *none)
{
    if (isnan(x))
        printf("%s", none);
    else
        printf(format, x);
}

static const char *npb_name_outcome(const struct figures *f)
{
    return isnan(f->seconds) ? "no result" : f->verified ? "verified" : "WRONG";
}

static void npb_print_row(struct npb *n, const char *name, char class, const struct figures *ours,
                          const struct figures *suite)
{
    if (n->json) {
        const char letter[] = {class, 0};
        struct json *j = &n->document;
        json_object(j, NULL);
        json_string(j, "kernel", name);
        json_string(j, "class", letter);
        json_real(j, "ours_seconds", ours->seconds);
        json_bool(j, "ours_verified", ours->verified);
        json_real(j, "suite_seconds", suite->seconds);
        json_real(j, "suite_mops", suite->rate);
        json_bool(j, "suite_verified", suite->verified);
        json_end(j);
    } else {
        printf("%-7s %-6c ", name, class);
        npb_print_number(ours->seconds, "%10.3f", "         -");
        npb_print_number(suite->seconds, " %10.3f", "          -");
        npb_print_number(ours->seconds / suite->seconds, " %11.2f", "           -");
        npb_print_number(suite->rate, " %12.1f", "            -");
        printf("   ours %s, suite %s\n", npb_name_outcome(ours), npb_name_outcome(suite));
    }
    fflush(stdout);
}

static void npb_run_all(struct npb *n)
{
    char program[PATH_MAX];
    if (n->json) {
        n->document = (struct json){.out = stdout, .flat = 3};
        json_object(&n->document, NULL);
        json_string(&n->document, "program", "fishplate-lab kernels --npb");
        json_int(&n->document, "ranks", n->ranks);
        json_array(&n->document, "results");
    } else {
        printf("fishplate-lab kernels: %d ranks, beside the suite in %s\n\n%-7s %-6s %10s %10s %11s %12s\n",
               n->ranks, n->suite, "kernel", "class", "ours, s", "suite, s", "ours/suite", "suite Mop/s");
    }
    for (int i = 0; i < NAMES; i++)
        for (const char *c = n->classes; *c && n->wanted >> i & 1; c++) {
            const char class = (char)toupper((unsigned char)*c);
            const struct figures ours = npb_run_kernel(n, names[i], class);
            struct figures suite = {NAN, NAN, false};
            fprintf(stderr, "fishplate-lab kernels: building the suite's %s of class %c\n", names[i], class);
            if (npb_build(n, names[i], class, program))
                suite = npb_run_original(n, program);
            n->failures += !suite.verified || (!isnan(ours.seconds) && !ours.verified);
            npb_print_row(n, names[i], class, &ours, &suite);
        }
    if (n->json) {
        json_end(&n->document);
        json_end(&n->document);
    }
}

/* ---- The command ---- */

static bool npb_read_kernel(void *npb, const char *word)
{
    struct npb *n = npb;
    for (int i = 0; i < NAMES; i++)
        if (strcmp(word, names[i]) == 0) {
            n->wanted |= 1u << i;
            return true;
        }
    return false;
}

static bool npb_read_classes(void *npb, const char *value)
{
    ((struct npb *)npb)->classes = value;
    return *value && strspn(value, "SWABswab") == strlen(value);
}

static const struct cli_option options[] = {
    CLI_TEXT_LINE("--npb", "DIR", struct npb, suite, "folder of the suite"),
    CLI_INT_LINE("--ranks", "4", struct npb, ranks, 1, 1 << 20,
                 "number of ranks; bt and sp take square numbers"),
    CLI_CALL_LINE("--class", "S", npb_read_classes, "S, W, A, B, or several: SWA"),
    CLI_TEXT_LINE("--mpiexec", "WORDS", struct npb, words,
                  "more options for mpiexec, for both: --mpiexec \"-vnodes 4\""),
    CLI_FLAG_LINE("--json", struct npb, json, "one JSON document instead of the table"),
    CLI_END};

static void print_usage(void)
{
    cli_print_page(
        "Usage: fishplate-lab kernels --npb DIR [options] [kernels]\n"
        "\n"
        "Builds the original NAS parallel benchmarks (their MPI kind: NPB3.x-MPI) with mpifort and mpicc of "
        "this installation, in a copy that is removed afterwards, runs them, and puts their figures beside "
        "ours. It starts its own jobs. Kernels: ep is cg mg ft lu bt sp; without names, all. Of sp only the "
        "suite's figures are shown.\n"
        "\n"
        "Options:\n",
        stdout);
    cli_print_options(options, stdout);
    cli_print_page("\n"
                   "The exit status is 1 when the suite, or one of our kernels, does not verify. Examples:\n"
                   "  fishplate-lab kernels --npb ~/NPB3.4.2/NPB3.4-MPI --class A is cg\n",
                   stdout);
}

static bool npb_parse(struct npb *n, int argc, char **argv)
{
    const struct cli c = {.program = "fishplate-lab kernels",
                          .options = options,
                          .operand = npb_read_kernel,
                          .operands = "a kernel of the suite"};
    const int next = cli_parse(&c, argc, argv, n);
    n->help = next == CLI_HELP;
    if (n->wanted == 0)
        n->wanted = (1u << NAMES) - 1;
    return next != CLI_INVALID;
}

bool npb_is_requested(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--npb") == 0)
            return true;
    return false;
}

int bench_npb_main(int argc, char **argv)
{
    struct npb n = {.classes = "S", .words = "", .ranks = 4};
    if (!npb_parse(&n, argc, argv))
        return 2;
    if (n.help) {
        print_usage();
        return 0;
    }
    if (getenv("PMI_RANK") || getenv("PMIX_RANK")) {
        fputs("fishplate-lab kernels: with --npb this command starts its own jobs: run it without mpiexec, "
              "with --ranks.\n",
              stderr);
        return 2;
    }
    const ssize_t len = readlink("/proc/self/exe", n.folder, sizeof(n.folder) - 1);
    char *slash = len > 0 ? strrchr(n.folder, '/') : NULL;
    if (!slash || !n.suite || !npb_find_suite(&n))
        return 2;
    *slash = 0;
    bool ready = npb_copy_suite(&n);
    if (ready) {
        n.npb_fortran_flags = npb_fortran_flags(&n);
        npb_run_all(&n);
    }
    npb_remove_copy(&n);
    return !ready ? 2 : n.failures ? 1 : 0;
}
