/* pmi.h: the PMI-1 server: requests of ranks in, answers out, as lines of bytes. It knows nothing of sockets
 * or hosts, so that a test can drive it byte by byte.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAUNCHER_PMI_H
#define FP_LAUNCHER_PMI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pmi;

struct pmi_events {
    void (*reply)(void *ctx, uint32_t rank, const char *data, size_t len);
    /* The rank's first request: it has called MPI_Init. */
    void (*inited)(void *ctx, uint32_t rank);
    /* MPI_Abort; msg may be empty. */
    void (*aborted)(void *ctx, uint32_t rank, int code, const char *msg);
    /* A rank sent something that is not PMI-1. */
    void (*bad)(void *ctx, uint32_t rank, const char *why);
    /* The first rank waits in a barrier (true), all have left it (false). */
    void (*barrier)(void *ctx, bool open);
    /* Describes the ranks that have not arrived, as "ranks 2-3 on host n1", for a rank that queries them. */
    void (*describe)(void *ctx, const bool *arrived, char *out, size_t size);
    /* A spawn: the lines of all programs, taken over. 0 and a sentence, allocated; or the number of the new job. */
    unsigned (*spawn)(void *ctx, uint32_t rank, char *lines, char **why);
    /* The reason for which that spawned job did not start; NULL: it may still start, or it has started. */
    const char *(*spawn_state)(void *ctx, unsigned number);
    /* `by` reports that `rank` does not answer any more. */
    void (*unreachable)(void *ctx, uint32_t rank, uint32_t by);
};

struct pmi *pmi_new(uint32_t size, uint32_t universe, const char *job, const char *node_map,
                    const uint32_t *app_of, const struct pmi_events *ev, void *ctx);
void pmi_free(struct pmi *s);

/* Stores "key=value" in the key-value space before any rank reads it. */
void pmi_put_initial(struct pmi *s, const char *entry);

/* Any number of bytes from that rank, in order. */
void pmi_input(struct pmi *s, uint32_t rank, const char *data, size_t len);

bool pmi_inited(const struct pmi *s, uint32_t rank);
bool pmi_finalized(const struct pmi *s, uint32_t rank);

/* The rank has left MPI_Init (reported only by this library). */
bool pmi_ready(const struct pmi *s, uint32_t rank);
/* Counts the rank as finalized although it will not call MPI_Finalize. */
void pmi_count_as_finalized(struct pmi *s, uint32_t rank);

/* Number of ranks that have called MPI_Init and not yet MPI_Finalize. */
uint32_t pmi_inited_count(const struct pmi *s);
uint32_t pmi_active_count(const struct pmi *s);

/* Which ranks have arrived in the open barrier; NULL: no barrier is open. */
const bool *pmi_get_waiting(const struct pmi *s);

#endif
