/* tests.c: the table of tests: name, description and sizes. One line adds a test.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

static const size_t none[] = {0, BENCH_END};
static const size_t eight[] = {8, BENCH_END};
static const size_t latency_all[] = {0,       8,       64,       256,    1 * KI, 4 * KI,
                                     16 * KI, 64 * KI, 256 * KI, 1 * MI, 4 * MI, BENCH_END};
static const size_t latency_brief[] = {8, 1 * KI, 64 * KI, 1 * MI, BENCH_END};
static const size_t bw_all[] = {8,       256,      1 * KI, 4 * KI, 16 * KI,
                                64 * KI, 256 * KI, 1 * MI, 4 * MI, BENCH_END};
static const size_t bw_brief[] = {64 * KI, 1 * MI, 4 * MI, BENCH_END};
static const size_t coll_all[] = {8, 64, 1 * KI, 8 * KI, 64 * KI, 512 * KI, BENCH_END};
static const size_t coll_brief[] = {8, 1 * KI, 64 * KI, BENCH_END};
static const size_t window_all[] = {8, 1 * KI, 16 * KI, 256 * KI, BENCH_END};
static const size_t window_brief[] = {8, 64 * KI, BENCH_END};
static const size_t host_all[] = {8, 64, 256, 1 * KI, 4 * KI, BENCH_END};
static const size_t host_brief[] = {8, 1 * KI, BENCH_END};
static const size_t potential_all[] = {8, 256, 1 * KI, 4 * KI, 16 * KI, 64 * KI, 256 * KI, BENCH_END};
static const size_t potential_brief[] = {1 * KI, 64 * KI, BENCH_END};
static const size_t layout_all[] = {512, 4 * KI, 32 * KI, 256 * KI, BENCH_END};
static const size_t layout_brief[] = {4 * KI, BENCH_END};
static const size_t overlap_all[] = {64 * KI, 1 * MI, BENCH_END};
static const size_t overlap_brief[] = {64 * KI, BENCH_END};

const struct bench_test bench_tests[] = {
    {"latency", "ping-pong of one message; half the round-trip time", TEAM_PAIRS, latency_all, latency_brief,
     bench_latency},
    {"bw", "many messages in flight, one direction", TEAM_PAIRS, bw_all, bw_brief, bench_bw},
    {"bibw", "many messages in flight, both directions", TEAM_PAIRS, bw_all, bw_brief, bench_bw},
    {"rate", "small messages per second", TEAM_PAIRS, eight, eight, bench_rate},
    {"bilat", "two messages at the same time, one in each direction; time until both arrive", TEAM_PAIRS,
     latency_all, latency_brief, bench_bilat},
    {"window", "bw with 1, 4, 16 and 64 messages in flight", TEAM_PAIRS, window_all, window_brief,
     bench_window},
    {"overhead", "time in MPI_Send, and in MPI_Recv of a message that has already arrived", TEAM_TWO,
     host_all, host_brief, bench_overhead},
    {"potential", "longest computation that overlaps with an exchange without making it slower", TEAM_TWO,
     potential_all, potential_brief, bench_potential},
    {"column", "ping-pong of a column of a matrix of doubles; half the round-trip time", TEAM_TWO, layout_all,
     layout_brief, bench_layout},
    {"face", "ping-pong of a face of a cube of doubles; half the round-trip time", TEAM_TWO, layout_all,
     layout_brief, bench_layout},
    {"mprobe", "ping-pong, received by MPI_Mprobe and MPI_Mrecv; half the round-trip time", TEAM_TWO,
     host_all, host_brief, bench_matching},
    {"unexpected", "one wildcard receive among 1,000 messages that have arrived", TEAM_TWO, eight, eight,
     bench_matching},
    {"threads", "small messages per second between threads of two ranks; how many: --threads", TEAM_TWO,
     eight, eight, bench_threads},
    {"dup", "MPI_Comm_dup and MPI_Comm_free", TEAM_ALL, none, none, bench_creation},
    {"split", "MPI_Comm_split into two halves and MPI_Comm_free", TEAM_ALL, none, none, bench_creation},
    {"create_group", "MPI_Comm_create_group of all ranks and MPI_Comm_free", TEAM_ALL, none, none,
     bench_creation},
    {"barrier", "MPI_Barrier", TEAM_ALL, none, none, bench_collective},
    {"bcast", "MPI_Bcast, each call with the next root", TEAM_ALL, coll_all, coll_brief, bench_collective},
    {"reduce", "MPI_Reduce of doubles, each call with the next root", TEAM_ALL, coll_all, coll_brief,
     bench_collective},
    {"allreduce", "MPI_Allreduce of doubles", TEAM_ALL, coll_all, coll_brief, bench_collective},
    {"allgather", "MPI_Allgather, bytes per rank", TEAM_ALL, coll_all, coll_brief, bench_collective},
    {"alltoall", "MPI_Alltoall, bytes per pair", TEAM_ALL, coll_all, coll_brief, bench_collective},
    {"gather", "MPI_Gather, bytes per rank", TEAM_ALL, coll_all, coll_brief, bench_collective},
    {"scatter", "MPI_Scatter, bytes per rank", TEAM_ALL, coll_all, coll_brief, bench_collective},
    {"reduce_scatter", "MPI_Reduce_scatter of doubles, bytes per rank", TEAM_ALL, coll_all, coll_brief,
     bench_collective},
    {"reduce_scatter_block", "MPI_Reduce_scatter_block of doubles, bytes per rank", TEAM_ALL, coll_all,
     coll_brief, bench_collective},
    {"isend", "overlap of MPI_Isend and MPI_Irecv with computation", TEAM_PAIRS, overlap_all, overlap_brief,
     bench_overlap},
    {"ibcast", "overlap of MPI_Ibcast with computation", TEAM_ALL, overlap_all, overlap_brief, bench_overlap},
    {"iallreduce", "overlap of MPI_Iallreduce of doubles with computation", TEAM_ALL, overlap_all,
     overlap_brief, bench_overlap},
    {"limits", "limits of the hardware: time of a cache line between two cores; memcpy bandwidth", TEAM_ONE,
     none, none, bench_limits},
};
const int bench_ntests = (int)(sizeof(bench_tests) / sizeof(bench_tests[0]));

int bench_test_sizes(const struct bench *b, const struct bench_test *test, const size_t **sizes)
{
    int n = 0;
    *sizes = b->options.brief ? test->brief_sizes : test->sizes;
    const bool has_sizes = (*sizes)[0] != 0 || (*sizes)[1] != BENCH_END;
    if (b->options.nsizes > 0 && has_sizes) {
        *sizes = b->options.sizes;
        return b->options.nsizes;
    }
    while ((*sizes)[n] != BENCH_END)
        n++;
    return n;
}
