/* tune.c: `fishplate tune`: options, the loop over operations and sizes, and the rule file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../command.h"
#include "api/inside.h"
#include "tune.h"
#include "cli/number.h"
#include "cli/options.h"

static const char usage[] =
    "Usage: mpiexec -n RANKS ... fishplate tune [options]\n"
    "\n"
    "Measures the algorithms and segment sizes of collective operations on the hosts of this job and writes "
    "a file of rules: an algorithm that is at least 5 % faster than what the built-in rules choose, when "
    "both are measured again in turns. Programs use the file with FISHPLATE_COLL=@FILE; `fishplate info "
    "--coll` shows it. A rule holds for numbers of ranks and nodes near those of this job, so run it for 8, "
    "16, 32 ... ranks with --append.\n"
    "\n"
    "Options:\n";

static const char after[] = "\n"
                            "Examples:\n"
                            "  mpiexec -n 16 -hosts n1,n2,n3,n4 fishplate tune -o site.coll\n"
                            "  FISHPLATE_COLL=@$PWD/site.coll mpiexec -n 16 -hosts n1,n2,n3,n4 ./program\n"
                            "  mpiexec -n 4 -vnodes 2 fishplate tune --trials --bytes 8,4k,256k\n";

static const enum coll_kind offered[] = {COLL_BARRIER,   COLL_BCAST,    COLL_GATHER, COLL_SCATTER,
                                         COLL_ALLGATHER, COLL_ALLTOALL, COLL_REDUCE, COLL_ALLREDUCE};
enum { OFFERED = sizeof(offered) / sizeof(offered[0]) };

static bool read_kinds(void *tune, const char *text)
{
    struct tune *t = tune;
    memset(t->kinds, 0, sizeof(t->kinds));
    for (size_t length; *text; text += length + (text[length] == ',')) {
        int i = 0;
        length = strcspn(text, ",");
        while (i < OFFERED &&
               (strncmp(text, coll_kind_name(offered[i]), length) != 0 || coll_kind_name(offered[i])[length]))
            i++;
        if (i == OFFERED)
            return false;
        t->kinds[offered[i]] = true;
    }
    return true;
}

static int tune_compare_sizes(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

static bool read_sizes(void *tune, const char *text)
{
    struct tune *t = tune;
    if (!number_sizes(text, t->sizes, TUNE_SIZES_MAX, &t->nsizes))
        return false;
    qsort(t->sizes, (size_t)t->nsizes, sizeof(*t->sizes), tune_compare_sizes);
    return t->sizes[0] > 0 && t->sizes[t->nsizes - 1] <= 256 * MI;
}

static const struct cli_option options[] = {
    CLI_TEXT_LINE("-o", "FILE", struct tune, path, "the file to write (fishplate.coll)"),
    CLI_FLAG_LINE("--append", struct tune, append, "add to the file; rules that are there already win"),
    CLI_CALL_LINE("--ops", "bcast,...", read_kinds,
                  "operations (barrier, bcast, gather, scatter, allgather, alltoall, reduce, allreduce)"),
    CLI_CALL_LINE("--bytes", "8,4k,1m", read_sizes,
                  "sizes, at most 256m: of the vector for bcast and reductions, of one rank's block for the "
                  "others (8, 512, "
                  "4k, 32k, 256k, 1m)"),
    CLI_REAL_LINE("--seconds", "60", struct tune, seconds, 1e-3, 1e7,
                  "at most, for all together; Ctrl-C ends it earlier and keeps the rules that were found"),
    CLI_FLAG_LINE("--trials", struct tune, trials,
                  "write no file: measure what programs get without one on several nodes, where "
                  "communicators choose by "
                  "trial, and the built-in rules without trials, in turns"),
    CLI_END};

static int count_nodes(struct bench *b)
{
    MPI_Comm node;
    int rank, mine, all;
    MPI_Comm_split_type(b->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank);
    MPI_Comm_free(&node);
    mine = rank == 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, b->comm);
    return all;
}

static void tune_print_cell(const struct tune_cell *c)
{
    if (c->bytes > 0)
        printf("%-12s %9zu bytes", c->operation, c->bytes);
    else
        printf("%-12s %15s", c->operation, "");
    printf("  built-in rules %10.2f us", c->rules_us);
    if (c->best)
        printf("  %s %.2f us", c->text[c->best], c->best_us);
    printf("\n");
    fflush(stdout);
}

static void tune_operation(struct tune *t, enum coll_kind kind, FILE *out)
{
    struct tune_cell cell[TUNE_SIZES_MAX];
    const int sizes = kind == COLL_BARRIER ? 1 : t->nsizes;
    int n = 0;
    for (int i = 0; i < sizes && !tune_is_over(t); i++) {
        /* Half of an equal share of the remaining time: on a busy machine samples take longer than the
         * first ones, which determine their number. Time that a cell does not use remains for later cells. */
        double seconds = 0.5 * (t->end - MPI_Wtime()) / (t->cells_all - t->measured);
        MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, t->bench.comm);
        cell[n] = (struct tune_cell){.operation = coll_kind_name(kind),
                                     .bytes = kind == COLL_BARRIER ? 0 : t->sizes[i]};
        tune_candidates(t, kind, &cell[n]);
        if (!(t->trials ? tune_trials : tune_measure)(t, seconds, &cell[n]))
            continue;
        if (t->bench.rank == 0)
            (t->trials ? tune_trials_show : tune_print_cell)(&cell[n]);
        n++;
        t->measured++;
    }
    if (out) {
        t->rules += tune_write(t, cell, n, out);
        fflush(out);
    }
}

static int tune_set_coll(const char *setting)
{
    return get_library_table()->coll_set(setting);
}

static FILE *open_file(const struct tune *t)
{
    FILE *out = fopen(t->path, t->append ? "a" : "w");
    if (!out) {
        fprintf(stderr, "fishplate tune: cannot write %s: %s. -o names another file.\n", t->path,
                strerror(errno));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (!t->append)
        fprintf(
            out,
            "# Rules for collective operations, for FISHPLATE_COLL=@FILE. The first line that holds wins:\n"
            "# operation [ranks=A-B] [nodes=A-B] [bytes=A-B] algorithm[:option=number]...\n");
    fprintf(out, "# fishplate tune, version %s: %d ranks on %d nodes\n", get_library_table()->version,
            t->bench.size, t->nodes);
    return out;
}

static void tune_all_cells(struct tune *t)
{
    FILE *out = t->bench.rank == 0 && !t->trials ? open_file(t) : NULL;
    for (int i = 0; i < OFFERED; i++)
        t->cells_all += !t->kinds[offered[i]] ? 0 : offered[i] == COLL_BARRIER ? 1 : t->nsizes;
    if (t->bench.rank == 0) {
        printf("%d measurements, at most %g s; Ctrl-C stops and keeps what is done.\n", t->cells_all,
               t->seconds);
        fflush(stdout);
    }
    t->end = MPI_Wtime() + t->seconds;
    for (int i = 0; i < OFFERED; i++)
        if (t->kinds[offered[i]])
            tune_operation(t, offered[i], out);
    if (t->bench.rank == 0 && t->over)
        printf("%s after %d of %d measurements%s.\n", tune_was_stopped() ? "Stopped" : "The time was up",
               t->measured, t->cells_all,
               tune_was_stopped() ? "" : "; --seconds gives more time, --ops and --bytes choose fewer");
    if (out && fclose(out) != 0) {
        fprintf(stderr, "fishplate tune: cannot write %s: %s.\n", t->path, strerror(errno));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static int tune_run(struct tune *t)
{
    struct bench *b = &t->bench;
    long wrong = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &b->comm);
    MPI_Comm_rank(b->comm, &b->rank);
    MPI_Comm_size(b->comm, &b->size);
    MPI_Comm_dup(b->comm, &b->team);
    t->nodes = count_nodes(b);
    if (t->trials)
        tune_trials_begin();
    tune_all_cells(t);
    if (t->trials)
        tune_trials_end(t);
    MPI_Allreduce(&b->errors, &wrong, 1, MPI_LONG, MPI_SUM, b->comm);
    if (b->rank == 0 && wrong)
        fprintf(stderr,
                "fishplate tune: %ld bytes were not what was sent. Do not use the file, and report this.\n",
                wrong);
    else if (b->rank == 0 && !t->trials && t->rules == 0)
        printf("0 rules in %s: no algorithm was clearly faster than what the built-in rules choose for %d "
               "ranks on %d "
               "node%s.\n",
               t->path, b->size, t->nodes, t->nodes == 1 ? "" : "s");
    else if (b->rank == 0 && !t->trials)
        printf("%d rule%s in %s for %d ranks on %d node%s; to use the file: FISHPLATE_COLL=@%s\n", t->rules,
               t->rules == 1 ? "" : "s", t->path, b->size, t->nodes, t->nodes == 1 ? "" : "s", t->path);
    MPI_Comm_free(&b->team);
    MPI_Comm_free(&b->comm);
    return wrong != 0;
}

int command_tune(int argc, char **argv)
{
    static const struct bench_host host = {.program = "fishplate tune", .choose = tune_set_coll};
    struct tune t = {.bench.host = &host, .seconds = 60, .path = "fishplate.coll"};
    for (int i = 0; i < OFFERED; i++)
        t.kinds[offered[i]] = true;
    read_sizes(&t, "8,512,4k,32k,256k,1m");
    const struct cli c = {.program = "fishplate tune", .options = options};
    const int next = cli_parse(&c, argc, argv, &t);
    int status;
    if (next < 0)
        return command_usage(next, usage, options, after);
    if (t.trials)
        t.kinds[COLL_BARRIER] = false; /* `fishplate bench barrier` measures barriers */
    setenv("FISHPLATE_COLL_TRY", t.trials ? "100" : "0",
           1); /* 0: measure the built-in rules without trials; 100: let trials measure all candidates */
    tune_catch_stop();
    MPI_Init(&argc, &argv);
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 2) {
        fputs("fishplate tune: there is nothing to tune for one rank. Start it with mpiexec: mpiexec -n 8 "
              "fishplate "
              "tune\n",
              stderr);
        status = 2;
    } else {
        status = tune_run(&t);
    }
    MPI_Finalize();
    return status;
}
