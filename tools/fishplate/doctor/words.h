/* words.h: prints ranks, waits and findings as sentences.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DOCTOR_WORDS_H
#define FP_DOCTOR_WORDS_H

#include <stdio.h>

#include "graph.h"
#include "source_line.h"

/* Data for the sentences in addition to the graph of waits. */
struct wording {
    const struct why *why;
    struct places *places;
    const uint64_t *waited_ns; /* [n] time that each rank has waited; 0: the rank does not wait */
};

/* Prints sorted ranks as "rank 3" or "ranks 0-5, 8 and 12-15"; after 12 pieces "and 40 more". */
void words_print_ranks(FILE *out, const uint32_t *ranks, uint32_t n);

/* Prints a duration as "1.5 s", "12 s", "3 min" or "2.5 h". */
void words_print_time(FILE *out, uint64_t ns);
void words_print_bytes(FILE *out, uint64_t bytes);

/* Prints a wait as "MPI_Recv(from 1, tag 5, MPI_COMM_WORLD)". item: index of the item to print; -1: all. */
void words_print_wait(FILE *out, const struct page_wait *wait, int item);

/* Prints a finding in several lines. */
void words_finding(FILE *out, const struct wording *t, const struct why_finding *f);

#endif
