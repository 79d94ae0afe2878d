/* words.h: ranks, waits and findings as sentences.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DOCTOR_WORDS_H
#define FP_DOCTOR_WORDS_H

#include <stdio.h>

#include "graph.h"
#include "place.h"

/* Data for the sentences in addition to the graph. */
struct wording {
    const struct why *why;
    struct places *places;
    const uint64_t *waited_ns; /* [n] how long each rank has waited; 0: it does not */
};

/* "rank 3", "ranks 0-5, 8 and 12-15"; after 12 pieces "and 40 more". Sorted by the caller. */
void words_print_ranks(FILE *out, const uint32_t *ranks, uint32_t n);

/* "12 s", "3 min 5 s" */
void words_time(FILE *out, uint64_t ns);
void words_bytes(FILE *out, uint64_t bytes);

/* "MPI_Recv(from 1, tag 5, MPI_COMM_WORLD)": the call and the item that matters (-1: the only one, or all). */
void words_wait(FILE *out, const struct page_wait *wait, int item);

/* "waits in MPI_Recv(...) at solver.c:210", "computes", "is stopped": the activity of a rank, without its
 * duration. */
void words_print_rank_activity(FILE *out, const struct wording *t, uint32_t rank, int item);

/* Messages and sends that the item nearly matches: one line each, with this before it. */
void words_near_misses(FILE *out, const struct wording *t, uint32_t rank, const struct page_item *item,
                       const char *before);

/* The whole finding, several lines. */
void words_finding(FILE *out, const struct wording *t, const struct why_finding *f);

/* A line of a few words: "Deadlock of ranks 0-1". */
void words_print_title(FILE *out, const struct wording *t, const struct why_finding *f);

#endif
