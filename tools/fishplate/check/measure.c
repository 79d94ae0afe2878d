/* measure.c: collects the facts of every host, measures clock offsets, and latency and bandwidth of every
 * pair of hosts: one pair at a time up to ALONE_MAX hosts, else all pairs of a round at once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../command.h"
#include "api/inside.h"
#include "check.h"

enum {
    TAG = 1,
    CLOCK_TRIES = 20,
    WARM = 10,
    BATCHES = 5,
    BATCH = 20,
    LARGE = 1 << 20,
    WINDOW = 4,
    ALONE_MAX = 16, /* largest number of hosts for one pair at a time */
};

static double measure_clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Measures the offset of the peer's clock. The shortest round trip is the most accurate. */
static void measure_clock_offset(int peer, MPI_Comm comm, struct facts *f)
{
    double best = 1e9;
    for (int i = 0; i < CLOCK_TRIES; i++) {
        double theirs;
        const double before = measure_clock_now();
        MPI_Sendrecv(NULL, 0, MPI_DOUBLE, peer, TAG, &theirs, 1, MPI_DOUBLE, peer, TAG, comm,
                     MPI_STATUS_IGNORE);
        const double took = measure_clock_now() - before;
        if (took < best) {
            best = took;
            f->clock = theirs - (before + took / 2);
            f->clock_error = took / 2;
        }
    }
}

static void answer_clock_requests(MPI_Comm comm)
{
    for (int i = 0; i < CLOCK_TRIES; i++) {
        MPI_Recv(NULL, 0, MPI_DOUBLE, 0, TAG, comm, MPI_STATUS_IGNORE);
        const double mine = measure_clock_now();
        MPI_Send(&mine, 1, MPI_DOUBLE, 0, TAG, comm);
    }
}

const size_t check_sizes[CHECK_SIZES] = {8, 512, 4096, 65536, 1 << 20, 4 << 20};

/* Returns the one-way latency in seconds, the best of several batches. */
static double measure_latency(int peer, bool first, char *data, size_t size, MPI_Comm comm)
{
    double best = 1e9;
    for (int b = -1; b < BATCHES; b++) {
        const int times = b < 0 ? WARM : BATCH;
        const double from = MPI_Wtime();
        for (int i = 0; i < times; i++) {
            if (first)
                MPI_Send(data, (int)size, MPI_BYTE, peer, TAG, comm);
            MPI_Recv(data, (int)size, MPI_BYTE, peer, TAG, comm, MPI_STATUS_IGNORE);
            if (!first)
                MPI_Send(data, (int)size, MPI_BYTE, peer, TAG, comm);
        }
        const double each = (MPI_Wtime() - from) / times / 2;
        if (b >= 0 && each < best)
            best = each;
    }
    return best;
}

static double measure_bandwidth(int peer, bool first, char *data, size_t size, MPI_Comm comm)
{
    double best = 0;
    for (int b = -1; b < 3; b++) {
        MPI_Request r[WINDOW];
        const double from = MPI_Wtime();
        for (int i = 0; i < WINDOW; i++) {
            if (first)
                MPI_Isend(data + (size_t)i * size, (int)size, MPI_BYTE, peer, TAG, comm, &r[i]);
            else
                MPI_Irecv(data + (size_t)i * size, (int)size, MPI_BYTE, peer, TAG, comm, &r[i]);
        }
        MPI_Waitall(WINDOW, r, MPI_STATUSES_IGNORE);
        if (first)
            MPI_Recv(NULL, 0, MPI_BYTE, peer, TAG, comm, MPI_STATUS_IGNORE);
        else
            MPI_Send(NULL, 0, MPI_BYTE, peer, TAG, comm);
        const double rate = (double)WINDOW * (double)size / (MPI_Wtime() - from);
        if (b >= 0 && rate > best)
            best = rate;
    }
    return best;
}

/* Returns this rank's partner in a round of a round-robin tournament; the rank itself if it pauses. */
static int measure_partner(int rank, int n, int round)
{
    const int seats = n + n % 2; /* with an odd number the rank paired with the empty seat pauses */
    int other;
    if (rank == seats - 1)
        other = round; /* the last seat does not rotate */
    else if (rank == round)
        other = seats - 1;
    else
        other = (2 * round - rank + 2 * (seats - 1)) % (seats - 1);
    return other < n ? other : rank;
}

static void measure_pairs(MPI_Comm comm, int rank, int n, struct pair *row, char *data)
{
    const int rounds = n + n % 2 - 1;
    for (int round = 0; round < rounds; round++) {
        const int peer = measure_partner(rank, n, round);
        for (int turn = 0; turn < (n <= ALONE_MAX ? n : 1); turn++) {
            const int low = peer < rank ? peer : rank;
            if (peer != rank && (n > ALONE_MAX || low == turn))
                row[peer] =
                    (struct pair){.latency = measure_latency(peer, rank < peer, data, 8, comm),
                                  .bandwidth = measure_bandwidth(peer, rank < peer, data, LARGE, comm)};
            MPI_Barrier(comm);
        }
    }
}

/* Measures several sizes between the first two hosts, for a report. */
static void measure_sizes(MPI_Comm comm, int rank, struct pair *out)
{
    char *data = calloc(WINDOW, check_sizes[CHECK_SIZES - 1]);
    if (!data) {
        fprintf(stderr, "fishplate check: out of memory.\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 0; i < CHECK_SIZES && rank < 2; i++) {
        out[i].latency = measure_latency(1 - rank, rank == 0, data, check_sizes[i], comm);
        out[i].bandwidth = measure_bandwidth(1 - rank, rank == 0, data, check_sizes[i], comm);
    }
    free(data);
    MPI_Barrier(comm);
}

static bool survey_alloc(struct survey *s, int n)
{
    const size_t pairs = (size_t)n * (size_t)n;
    s->n = n;
    s->hosts = calloc((size_t)n, sizeof(*s->hosts));
    s->latency = calloc(pairs, sizeof(double));
    s->bandwidth = calloc(pairs, sizeof(double));
    return s->hosts && s->latency && s->bandwidth;
}

void survey_free(struct survey *s)
{
    free(s->hosts);
    free(s->latency);
    free(s->bandwidth);
    *s = (struct survey){0};
}

void survey_label(struct survey *s, const char *names)
{
    for (int rank = 0; *names; rank++) {
        const size_t length = strcspn(names, ","), name = strcspn(names, ",:");
        for (int h = 0; h < s->n; h++)
            if (s->hosts[h].rank == rank)
                snprintf(s->hosts[h].host, sizeof(s->hosts[h].host), "%.*s", (int)name, names);
        names += length + (names[length] == ',');
    }
}

/* Fills the matrices with the figures of the lower rank, which measures as the sender. */
static void measure_fill_matrix(struct survey *s, const struct pair *all)
{
    for (int from = 0; from < s->n; from++) {
        for (int to = 0; to < s->n; to++) {
            const struct pair *p = from < to ? &all[from * s->n + to] : &all[to * s->n + from];
            s->latency[from * s->n + to] = from == to ? 0 : p->latency;
            s->bandwidth[from * s->n + to] = from == to ? 0 : p->bandwidth;
        }
    }
}

static void describe_path(struct survey *s, MPI_Comm comm)
{
    MPI_Group here, world;
    int second = 1, rank = 0;
    const struct fishplate_inside *in = get_library_table();
    MPI_Comm_group(comm, &here);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_translate_ranks(here, 1, &second, world, &rank);
    const struct peer *peer = in->peer(rank);
    if (peer)
        in->peer_describe(peer, s->path, sizeof(s->path));
    MPI_Group_free(&here);
    MPI_Group_free(&world);
}

/* Surveys the hosts, with one process on each. */
static bool survey_hosts(MPI_Comm comm, bool with_sizes, struct survey *out)
{
    struct facts mine;
    int rank, n;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &n);
    facts_gather(&mine);
    struct pair *row = calloc((size_t)n, sizeof(*row)), *all = calloc((size_t)n * (size_t)n, sizeof(*all));
    char *data = malloc((size_t)WINDOW * LARGE);
    if (!survey_alloc(out, n) || !row || !all || !data) {
        fprintf(stderr, "fishplate check: out of memory.\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    memset(data, 1, (size_t)WINDOW * LARGE);
    MPI_Gather(&mine, sizeof(mine), MPI_BYTE, out->hosts, sizeof(mine), MPI_BYTE, 0, comm);
    for (int r = 1; r < n; r++) {
        if (rank == 0)
            measure_clock_offset(r, comm, &out->hosts[r]);
        else if (rank == r)
            answer_clock_requests(comm);
    }
    measure_pairs(comm, rank, n, row, data);
    if (n > 1 && with_sizes)
        measure_sizes(comm, rank, out->of_size);
    MPI_Gather(row, n * (int)sizeof(*row), MPI_BYTE, all, n * (int)sizeof(*row), MPI_BYTE, 0, comm);
    if (rank == 0 && n > 1)
        describe_path(out, comm);
    measure_fill_matrix(out, all);
    free(row);
    free(all);
    free(data);
    return rank == 0;
}

bool survey_measure(bool with_sizes, struct survey *out)
{
    MPI_Comm node, leaders;
    int rank, local;
    bool first = false;
    *out = (struct survey){0};
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local);
    MPI_Comm_split(MPI_COMM_WORLD, local == 0 ? 0 : MPI_UNDEFINED, rank, &leaders);
    if (leaders != MPI_COMM_NULL) {
        first = survey_hosts(leaders, with_sizes, out);
        MPI_Comm_free(&leaders);
    }
    MPI_Comm_free(&node);
    return first;
}
