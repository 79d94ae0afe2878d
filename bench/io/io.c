/* io.c: measures the bandwidth of reading and writing files: contiguous, interleaved pieces of a shared file,
 * blocks of a three-dimensional array, one file per rank; and the same with plain pwrite and pread. Data read
 * are compared with the data written.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../bench.h"
#include "cli/options.h"
#include "cli/progress.h"

enum { NAME_SIZE = 512, ONLY_MAX = 8 };
#define CLOCKS_DIFFER_S 1.0 /* seconds; ranks leave a barrier within less, unless their clocks differ */

struct setup {
    int rank, size;
    char name[NAME_SIZE]; /* path of the shared file */
    long bytes;           /* bytes that each rank writes in a case */
    int repeat;
    const char *only[ONLY_MAX];
    int nonly;
    MPI_Info hints;
    bool json;
    int mib; /* MiB that a rank writes in a case */
    const char *folder;
    struct json document;
    unsigned char *out, *in;
    struct progress progress;
};

/* One access pattern. piece: bytes of an interleaved piece; 0: the part of a rank is one block. */
struct layout {
    const char *name;
    long piece;
    int collective, private_file, plain, cube;
};

static const struct layout layouts[] = {
    {.name = "pwrite", .plain = 1},
    {.name = "pwrite own file", .plain = 1, .private_file = 1},
    {.name = "pwrite 16K", .plain = 1, .piece = 16 << 10},
    {.name = "pwrite 1M", .plain = 1, .piece = 1 << 20},
    {.name = "contiguous"},
    {.name = "contiguous all", .collective = 1},
    {.name = "own file", .private_file = 1},
    {.name = "strided 1K", .piece = 1 << 10},
    {.name = "strided 4K", .piece = 4 << 10},
    {.name = "strided 16K", .piece = 16 << 10},
    {.name = "strided 64K", .piece = 64 << 10},
    {.name = "strided 1M", .piece = 1 << 20},
    {.name = "strided all 1K", .piece = 1 << 10, .collective = 1},
    {.name = "strided all 4K", .piece = 4 << 10, .collective = 1},
    {.name = "strided all 16K", .piece = 16 << 10, .collective = 1},
    {.name = "strided all 64K", .piece = 64 << 10, .collective = 1},
    {.name = "strided all 1M", .piece = 1 << 20, .collective = 1},
    {.name = "nested all", .cube = 1, .collective = 1},
};

/* Paths of the files, deleted by the signal handler if the run is interrupted; set before the handler. */
static char name_shared[NAME_SIZE], name_own[NAME_SIZE + 16];

static void io_on_end(int sig)
{
    unlink(name_shared);
    unlink(name_own);
    raise(sig); /* ends the process by the default action after this handler */
}

static void make_own_name(const struct setup *s, char *out, size_t size)
{
    snprintf(out, size, "%s.%d", s->name, s->rank);
}

static void remove_at_end(const struct setup *s)
{
    struct sigaction action = {.sa_handler = io_on_end, .sa_flags = (int)SA_RESETHAND};
    static const int ends[] = {SIGTERM, SIGINT, SIGHUP};
    snprintf(name_shared, sizeof(name_shared), "%s", s->name);
    make_own_name(s, name_own, sizeof(name_own));
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        sigaction(ends[i], &action, NULL);
}

static void io_fail(const struct setup *s, const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code != MPI_SUCCESS)
        MPI_Error_string(code, text, &length);
    fprintf(stderr, "bench io: rank %d: %s: %s%s%s.\n", s->rank, s->name, what, *text ? ": " : "", text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void io_check(const struct setup *s, const char *what, int code)
{
    if (code != MPI_SUCCESS)
        io_fail(s, what, code);
}

/* Returns the file type of a rank's block in an array of depth x rows x columns x 40 bytes, divided in two
 * dimensions: small pieces in nested steps. */
static MPI_Datatype make_cube_type(const struct setup *s)
{
    MPI_Datatype type;
    int grid[2] = {0, 0};
    MPI_Dims_create(s->size, 2, grid);
    const int side = 64, depth = (int)(s->bytes / ((long)side * side * 40));
    int sizes[4] = {depth, side * grid[0], side * grid[1], 40}, sub[4] = {depth, side, side, 40};
    int starts[4] = {0, side * (s->rank / grid[1]), side * (s->rank % grid[1]), 0};
    MPI_Type_create_subarray(4, sizes, sub, starts, MPI_ORDER_C, MPI_BYTE, &type);
    return type;
}

static long io_total_bytes(const struct setup *s, const struct layout *l)
{
    return l->cube ? s->bytes / (64L * 64 * 40) * (64L * 64 * 40) : s->bytes;
}

static void set_view(const struct setup *s, const struct layout *l, MPI_File f)
{
    MPI_Datatype piece, type;
    MPI_Offset disp = l->private_file ? 0 : s->rank * s->bytes;
    if (!l->piece && !l->cube) {
        io_check(s, "MPI_File_set_view",
                 MPI_File_set_view(f, disp, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
        return;
    }
    if (l->cube) {
        type = make_cube_type(s);
        disp = 0;
    } else {
        MPI_Type_contiguous((int)l->piece, MPI_BYTE, &piece);
        MPI_Type_create_resized(piece, 0, l->piece * s->size, &type);
        MPI_Type_free(&piece);
        disp = s->rank * l->piece;
    }
    MPI_Type_commit(&type);
    io_check(s, "MPI_File_set_view", MPI_File_set_view(f, disp, MPI_BYTE, type, "native", MPI_INFO_NULL));
    MPI_Type_free(&type);
}

static void io_transfer(const struct setup *s, const struct layout *l, MPI_File f, int write)
{
    const int n = (int)io_total_bytes(s, l);
    MPI_Status status;
    int got = 0;
    if (l->collective)
        io_check(s, "collective access",
                 write ? MPI_File_write_at_all(f, 0, s->out, n, MPI_BYTE, &status)
                       : MPI_File_read_at_all(f, 0, s->in, n, MPI_BYTE, &status));
    else
        io_check(s, "access",
                 write ? MPI_File_write_at(f, 0, s->out, n, MPI_BYTE, &status)
                       : MPI_File_read_at(f, 0, s->in, n, MPI_BYTE, &status));
    MPI_Get_count(&status, MPI_BYTE, &got);
    if (got != n)
        io_fail(s, "short access", MPI_SUCCESS);
}

/* Reads or writes a rank's pieces; piece k of a rank follows piece k of the lower ranks. */
static void transfer_posix(const struct setup *s, const struct layout *l, int fd, int write)
{
    const long piece = l->piece ? l->piece : s->bytes;
    long done = 0;
    while (done < s->bytes) {
        const long k = done / piece, within = done % piece, left = s->bytes - done;
        const long first = l->private_file ? 0 : (k * s->size + s->rank) * piece;
        const size_t most = (size_t)(piece - within < left ? piece - within : left);
        const ssize_t n = write ? pwrite(fd, s->out + done, most, first + within)
                                : pread(fd, s->in + done, most, first + within);
        if (n <= 0)
            io_fail(s, n < 0 ? strerror(errno) : "short access", MPI_SUCCESS);
        done += n;
    }
}

/* Reads a clock that all processes of a machine share, in seconds. */
static double io_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns the time after two barriers. A rank that waits long in the first one may sleep and wake late;
 * waits in the second one are short. */
static double io_barrier_clock(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    return io_clock();
}

/* Returns MB/s of all ranks together, from the first start to the last end, so that ranks that a core or a
 * lock serialises are not overrated. If the clocks of machines differ: by the slowest rank. */
static double io_rate(const struct setup *s, long bytes, double begin)
{
    const double end = io_clock();
    double most[4] = {-begin, begin, end, end - begin};
    MPI_Allreduce(MPI_IN_PLACE, most, 4, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    const int one_clock = most[1] + most[0] < CLOCKS_DIFFER_S;
    return (double)bytes * s->size / (one_clock ? most[2] + most[0] : most[3]) / 1e6;
}

static void make_file_name(const struct setup *s, const struct layout *l, char *out, size_t size)
{
    snprintf(out, size, "%s", s->name);
    if (l->private_file)
        make_own_name(s, out, size);
}

static void measure_mpi_io(const struct setup *s, const struct layout *l, double out[2])
{
    MPI_File f;
    char name[NAME_SIZE + 16];
    make_file_name(s, l, name, sizeof(name));
    const MPI_Comm comm = l->private_file ? MPI_COMM_SELF : MPI_COMM_WORLD;
    io_check(
        s, "MPI_File_open",
        MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, s->hints, &f));
    set_view(s, l, f);
    for (int k = 0; k < 2; k++) {
        const double begin = io_barrier_clock();
        io_transfer(s, l, f, k == 0);
        out[k] = io_rate(s, io_total_bytes(s, l), begin);
    }
    MPI_File_close(&f);
}

static void measure_posix_io(const struct setup *s, const struct layout *l, double out[2])
{
    char name[NAME_SIZE + 16];
    make_file_name(s, l, name, sizeof(name));
    MPI_Barrier(MPI_COMM_WORLD);
    const int fd = open(name, O_CREAT | O_RDWR, 0600);
    if (fd < 0)
        io_fail(s, strerror(errno), MPI_SUCCESS);
    for (int k = 0; k < 2; k++) {
        const double begin = io_barrier_clock();
        transfer_posix(s, l, fd, k == 0);
        out[k] = io_rate(s, s->bytes, begin);
    }
    close(fd);
    MPI_Barrier(MPI_COMM_WORLD);
    if (s->rank == 0 || l->private_file)
        unlink(name);
    MPI_Barrier(MPI_COMM_WORLD);
}

#define LAYOUTS  ((int)(sizeof(layouts) / sizeof(layouts[0])))
#define SETTLE_S 0.2

/* Prints a line every few seconds, so that a long run does not look like a hang. */
static void io_print_progress(struct setup *s, const struct layout *l, int run)
{
    const int at = (int)(l - layouts);
    if (s->rank == 0)
        progress_report(&s->progress, at * s->repeat + run, LAYOUTS * s->repeat,
                        "case %d of %d (%s), run %d of %d", at + 1, LAYOUTS, l->name, run + 1, s->repeat);
}

static void io_measure_layout(struct setup *s, const struct layout *l)
{
    double best[2] = {0, 0};
    for (int i = 0; i < s->repeat; i++) {
        double got[2];
        io_print_progress(s, l, i);
        for (long k = 0; k < s->bytes; k++)
            s->out[k] = (unsigned char)(k * 7 + k / 4093 + s->rank + i);
        memset(s->in, 0, (size_t)s->bytes);
        if (l->plain)
            measure_posix_io(s, l, got);
        else
            measure_mpi_io(s, l, got);
        if (memcmp(s->in, s->out, (size_t)io_total_bytes(s, l)) != 0)
            io_fail(s, "the data read differs from the data written", MPI_SUCCESS);
        for (int k = 0; k < 2; k++)
            best[k] = got[k] > best[k] ? got[k] : best[k];
    }
    if (s->rank != 0)
        return;
    if (s->json) {
        json_record(&s->document, NULL, "case=%s write=%g read=%g", l->name, best[0], best[1]);
    } else {
        printf("%-18s %10.0f %10.0f\n", l->name, best[0], best[1]);
    }
    fflush(stdout);
}

static void io_print_heading(struct setup *s, const struct bench_host *host)
{
    char transport[BENCH_TRANSPORTS_MAX];
    if (s->json) {
        char program[64];
        snprintf(program, sizeof(program), "%s io", host->program);
        json_object(&s->document, NULL);
        json_members(&s->document, "program=%s ranks=%d", program, s->size);
        bench_transports_json(host, s->size, &s->document);
        json_members(&s->document, "bytes=%lld unit=%s", (long long)s->bytes, "MB/s");
        json_array(&s->document, "cases");
        return;
    }
    bench_transports_describe(host, s->size, transport, sizeof(transport));
    printf("%s io: %d rank%s, %ld MiB each; data between ranks: %s\n\n", host->program, s->size,
           s->size == 1 ? "" : "s", s->bytes >> 20, transport);
    printf("%-18s %10s %10s  MB/s\n", "case", "write", "read");
}

/* Hints as "KEY=VALUE"; options are parsed before MPI_Init, so the info object is made later. */
enum { HINTS_MAX = 16 };
static char *hint_texts[HINTS_MAX + 1];

static MPI_Info hints_info(void)
{
    MPI_Info info = MPI_INFO_NULL;
    for (int i = 0; hint_texts[i]; i++) {
        char *value = strchr(hint_texts[i], '=');
        if (info == MPI_INFO_NULL)
            MPI_Info_create(&info);
        *value = '\0';
        MPI_Info_set(info, hint_texts[i], value + 1);
    }
    return info;
}

static bool read_hint(void *setup, const char *text)
{
    int n = 0;
    (void)setup;
    while (hint_texts[n])
        n++;
    if (n == HINTS_MAX || !strchr(text, '='))
        return false;
    hint_texts[n] = strdup(text); /* never freed */
    return hint_texts[n] != NULL;
}

static bool parse_only(void *setup, const char *text)
{
    struct setup *s = setup;
    if (s->nonly == ONLY_MAX)
        return false;
    s->only[s->nonly++] = text;
    return true;
}

static const struct cli_option options[] = {
    CLI_TEXT_LINE("--dir", "FOLDER", struct setup, folder,
                  "directory for the files (default: the working directory)"),
    CLI_INT_LINE("--size", "16", struct setup, mib, 1, 1024, "MiB that each rank writes in a case"),
    CLI_INT_LINE("--repeat", "5", struct setup, repeat, 1, 1 << 20, "runs of each case"),
    CLI_CALL_LINE(
        "--only", "TEXT", parse_only,
        "only cases whose name begins with TEXT: pwrite, contiguous, own file, strided, nested; may be given "
        "several times"),
    CLI_CALL_LINE("--hint", "KEY=VALUE", read_hint, "a hint for MPI_File_open; may be given several times"),
    CLI_FLAG_LINE("--json", struct setup, json, "one JSON document"),
    CLI_END};

static int is_selected_case(const struct setup *s, const struct layout *l)
{
    for (int i = 0; i < s->nonly; i++)
        if (strncmp(l->name, s->only[i], strlen(s->only[i])) == 0)
            return 1;
    return s->nonly == 0;
}

/* Allocates a page-aligned buffer: the alignment of malloc differs between the compared libraries. */
static unsigned char *allocate_buffer(const struct setup *s)
{
    void *at = NULL;
    if (posix_memalign(&at, (size_t)sysconf(_SC_PAGESIZE), (size_t)s->bytes) != 0)
        io_fail(s, "out of memory for the data", MPI_SUCCESS);
    return at;
}

/* Writes the buffers for SETTLE_S seconds before the first measurement, which also faults in their pages.
 * Meanwhile other ranks finish their start, which takes different time in different libraries. */
static void io_warm_buffers(const struct setup *s)
{
    const double end = io_clock() + SETTLE_S;
    do {
        memset(s->out, 1, (size_t)s->bytes);
        memset(s->in, 1, (size_t)s->bytes);
    } while (io_clock() < end);
    MPI_Barrier(MPI_COMM_WORLD);
}

int bench_io_main(const struct bench_host *host, int argc, char **argv)
{
    struct setup s = {.mib = 16,
                      .repeat = 5,
                      .folder = ".",
                      .hints = MPI_INFO_NULL,
                      .document = {.out = stdout, .flat = 3}};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s.size);
    const struct cli c = {.program = "fishplate bench io", .options = options, .silent = s.rank != 0};
    const int next = cli_parse(&c, argc, argv, &s);
    if (next == CLI_HELP && s.rank == 0) {
        cli_print_page(
            "Usage: mpiexec -n N fishplate bench io [options]\n\n"
            "Writes and reads files with several access patterns and prints MB/s of all ranks together, the "
            "best of "
            "several runs.\n"
            "\nOptions:\n",
            stdout);
        cli_print_options(options, stdout);
        puts("\nExamples:\n"
             "  mpiexec -n 4 fishplate bench io --dir /scratch\n"
             "  mpiexec -n 4 fishplate bench io --only strided --hint romio_cb_write=disable\n"
             "bench/io/peers compares with other MPI libraries.");
    }
    if (next < 0) {
        MPI_Finalize();
        return next == CLI_HELP ? 0 : 2;
    }
    s.bytes = (long)s.mib << 20;
    snprintf(s.name, sizeof(s.name), "%s/bench-io-%d.tmp", s.folder, (int)getpid());
    MPI_Bcast(s.name, NAME_SIZE, MPI_CHAR, 0, MPI_COMM_WORLD);
    remove_at_end(&s);
    s.hints = hints_info();
    progress_start(&s.progress, "bench io");
    s.out = allocate_buffer(&s);
    s.in = allocate_buffer(&s);
    if (s.rank == 0)
        io_print_heading(&s, host);
    io_warm_buffers(&s);
    for (int i = 0; i < LAYOUTS; i++)
        if (is_selected_case(&s, &layouts[i]))
            io_measure_layout(&s, &layouts[i]);
    if (s.rank == 0 && s.json) {
        json_end(&s.document);
        json_end(&s.document);
    }
    free(s.out);
    free(s.in);
    if (s.hints != MPI_INFO_NULL)
        MPI_Info_free(&s.hints);
    MPI_Finalize();
    return 0;
}
