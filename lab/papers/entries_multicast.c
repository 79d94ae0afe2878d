/* entries_multicast.c: the figures of [Liu04 7]: broadcast by multicast, measured on virtual nodes and
 * simulated.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "papers.h"

#define SEVEN "7 Broadcast by multicast"

static const char acknowledged[] = "Eight nodes share the cores here: an acknowledgement takes a core from "
                                   "somebody who waits for it, and softib's "
                                   "sender delivers to every member.";
static const char few_cores[] =
    "More ranks than cores take turns here, and the time of the scheduler hides small differences.";

static const char fitted[] = "the model's times of a multicast are fitted to 20.0 us and 40.0 us (1836 "
                             "bytes) with 1024 nodes [Liu04 11.1.3], "
                             "and the time of an acknowledgement to 128 co-roots.";

const struct entry entries_multicast[] = {
    {"liu-7.1",
     PAPER_LIU,
     SEVEN,
     "Figure 7.1",
     "Broadcast by point-to-point messages, by nodes",
     "The latency of a broadcast by a tree of messages grows with the number of nodes.",
     {{0}},
     "bcast_sim",
     TAKE_SIM,
     "",
     BETTER_LOWER,
     "us",
     {{CHECK_GROWS, "binomial", 0, 1.5, 0}},
     0},
    {"liu-7.5",
     PAPER_LIU,
     SEVEN,
     "Figure 7.5",
     "Broadcast by multicast: latency of small messages",
     "Multicast is up to 58 % better than a tree of messages (37 % less time); all designs with it are "
     "alike.",
     {{"largest gain", 58, "%"}},
     "bcast",
     TAKE_TABLE,
     "Latency of MPI_Bcast in us, small messages",
     BETTER_LOWER,
     "us",
     {{CHECK_GAIN, "Window", "Original", 37, 0}, {CHECK_GAIN, "Aggregate10", "Original", 37, 0}},
     acknowledged},
    {"liu-7.6",
     PAPER_LIU,
     SEVEN,
     "Figure 7.6",
     "Broadcast by multicast: latency of large messages",
     "In fragments, and copied, up to 32 KiB multicast is still better: 210 % at 2 KiB (68 % less time), 86 "
     "% at 8 KiB (46 % less).",
     {{"gain at 2 KiB", 210, "%"}, {"gain at 8 KiB", 86, "%"}},
     "bcast",
     TAKE_TABLE,
     "Latency of MPI_Bcast in us, large messages",
     BETTER_LOWER,
     "us",
     {{CHECK_GAIN, "Window", "Original", 68, 0, 2048, 2048},
      {CHECK_GAIN, "Window", "Original", 46, 0, 8192, 8192}},
     acknowledged},
    {"liu-7.7",
     PAPER_LIU,
     SEVEN,
     "Figure 7.7",
     "Broadcast to ranks that come late",
     "The time in a broadcast by a tree grows with the skew of ranks; by multicast it does not: 10 times "
     "better at 400 us (judged from a skew of 50 us: without skew receivers wait for the packet itself).",
     {{"at 400 us", 10, "times"}},
     "bcast",
     TAKE_TABLE,
     "Time in MPI_Bcast",
     BETTER_LOWER,
     "us",
     {{CHECK_STAYS, "Window", 0, 25, 0, 50, 0}, {CHECK_GAIN, "Window", "Original", 90, 0, 400, 400}},
     few_cores},
    {"liu-7.8",
     PAPER_LIU,
     SEVEN,
     "Figure 7.8",
     "Broadcasts behind each other",
     "The basic design is the worst, a window much better than a tree; one acknowledgement for ten packets "
     "gains up to "
     "112 %.",
     {{"largest gain", 112, "%"}},
     "bcast",
     TAKE_TABLE,
     "Throughput of MPI_Bcast",
     BETTER_HIGHER,
     "thousands in a second",
     {{CHECK_WORST, "Basic", "Original Basic Window Co-root2 Aggregate10", 0, 0},
      {CHECK_GAIN, "Aggregate10", "Original", 112, 0}},
     acknowledged},
    {"liu-7.9",
     PAPER_LIU,
     SEVEN,
     "Figure 7.9",
     "Broadcast to 1024 nodes: latency",
     "By the paper's model multicast is up to 3.86 times as fast as a tree of messages (74 % less time).",
     {{"gain", 3.86, "times"}, {"small messages", 20.0, "us"}, {"1836 bytes", 40.0, "us"}},
     "multicast_sim",
     TAKE_FIGURE,
     "7.9",
     BETTER_LOWER,
     "us",
     {{CHECK_GAIN, "multicast", "messages", 74, 0, 0, 1836}},
     0,
     .fitted = fitted},
    {"liu-7.10",
     PAPER_LIU,
     SEVEN,
     "Figure 7.10",
     "Broadcasts behind each other to 1024 nodes, by the number of co-roots",
     "Too few co-roots and too many are both slow; 128 are best. So it is in the model of the paper's "
     "design, whose root sends to the co-roots in a tree, if an acknowledgement costs 1/8 to 1/4 of a send. "
     "By default co-roots acknowledge to the root here, and the square root of the nodes is best.",
     {{"best number", 128, "co-roots"}},
     "multicast_sim",
     TAKE_FIGURE,
     "7.10",
     BETTER_HIGHER,
     "thousands in a second",
     {{CHECK_PEAK, "paper's design, model", 0, 128, 0}},
     0,
     .is_model = true,
     .fitted = fitted},
};
const int entries_multicast_count = (int)(sizeof(entries_multicast) / sizeof(entries_multicast[0]));
