/* cost_tables.h: costs of large messages recorded on several machines, for tests of choices by cost. Times
 * in ns of one message: isolated (lone), from the moment its data can move; and in a window of 64, as 1/64
 * of the time of the window.
 *
 * x86-64: two virtual cores of an Intel Xeon (Sapphire Rapids class), L2 2 MiB, Linux under KVM. Latency
 * and bandwidth with reading and pieces forced (second runs); split on a machine of the same kind.
 * aarch64: two Neoverse-V1 cores. Pieces as in lab/notes/one-node.md; reading at the 6.5 GB/s to 3.8 GB/s
 * that are recorded there, and split taken to be half of it and a control message. The second aarch64
 * machine has two Neoverse-N1 cores: each path forced, medians of three runs (`bench/peers --protocols`).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TEST_P2P_COST_TABLES_H
#define FP_TEST_P2P_COST_TABLES_H

#include <stdint.h>

struct cost_row {
    uint64_t bytes;
    uint32_t lone_pieces, lone_read, lone_split;
    uint32_t window_pieces, window_read, window_split;
};

#define COST_ROWS 8

static const struct cost_row cost_x86_64[COST_ROWS] = {
    {32768, 6300, 3700, 4600, 3413, 3213, 3321},
    {65536, 8600, 5700, 5370, 6183, 3948, 6099},
    {131072, 13600, 9100, 7340, 11599, 6791, 10640},
    {262144, 22100, 15100, 10060, 24050, 12424, 13100},
    {524288, 45000, 29000, 19180, 41943, 23617, 21000},
    {1048576, 89000, 81000, 55300, 78840, 66366, 52000},
    {2097152, 186000, 226000, 149250, 170500, 209715, 124000},
    {4194304, 402000, 512000, 350560, 441506, 423667, 331000},
};

static const struct cost_row cost_aarch64[COST_ROWS] = {
    {32768, 1900, 5041, 3020, 1510, 5041, 3020},
    {65536, 3266, 10082, 5541, 3019, 10082, 5541},
    {131072, 5600, 22600, 11800, 6200, 22600, 11800},
    {262144, 10300, 51400, 26200, 12900, 51400, 26200},
    {524288, 24800, 119200, 60100, 26200, 119200, 60100},
    {1048576, 49607, 262144, 131572, 52880, 262144, 131572},
    {2097152, 101000, 551882, 276441, 106000, 551882, 276441},
    {4194304, 202215, 1103764, 552382, 213690, 1103764, 552382},
};

static const struct cost_row cost_aarch64_n1[COST_ROWS] = {
    {32768, 3688, 4139, 4102, 2905, 5955, 4503},
    {65536, 6197, 6765, 5742, 5434, 10597, 7608},
    {131072, 11092, 12286, 8532, 10963, 26092, 15019},
    {262144, 21152, 24384, 14689, 24654, 67797, 41911},
    {524288, 41816, 56574, 30747, 46120, 129596, 75636},
    {1048576, 83168, 140346, 74257, 93234, 270379, 152904},
    {2097152, 170416, 323790, 185753, 182923, 517671, 298164},
    {4194304, 346224, 782466, 422393, 368296, 1039250, 612611},
};

/* x86-64 as above, but 64 buffers at each end, which no cache holds: windows with each path forced, the
 * better of two runs of 0.04 s. */
static const struct cost_row cost_x86_64_cold[COST_ROWS] = {
    {32768, 6300, 3700, 4600, 3174, 4408, 3543},
    {65536, 8600, 5700, 5370, 6731, 8648, 5705},
    {131072, 13600, 9100, 7340, 14369, 34675, 10968},
    {262144, 22100, 15100, 10060, 35646, 79007, 37395},
    {524288, 45000, 29000, 19180, 74430, 135826, 66703},
    {1048576, 89000, 81000, 55300, 149327, 287203, 124830},
    {2097152, 186000, 226000, 149250, 284746, 502312, 262210},
    {4194304, 402000, 512000, 350560, 623689, 1243862, 406150},
};

#endif
