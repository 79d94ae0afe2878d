/* pmi.h: the PMI-1 server: bytes of requests in, lines of replies out. It uses neither sockets nor hosts, so
 * that a test can drive it byte by byte.
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
    /* The rank called MPI_Abort; msg may be empty. */
    void (*aborted)(void *ctx, uint32_t rank, int code, const char *msg);
    /* A rank sent something that is not PMI-1. */
    void (*bad)(void *ctx, uint32_t rank, const char *why);
    /* open: the first rank has entered a barrier; otherwise all ranks have left it. */
    void (*barrier)(void *ctx, bool open);
    /* Describes the ranks that have not entered the barrier, as "ranks 2-3 on host n1". */
    void (*describe)(void *ctx, const bool *arrived, char *out, size_t size);
    /* Spawns a job. lines: of all programs; the callee frees them. Returns the number of the new job, or 0
     * and an allocated sentence in *why. */
    unsigned (*spawn)(void *ctx, uint32_t rank, char *lines, char **why);
    /* Returns why the spawned job with this number did not start; NULL: it has started or may still start. */
    const char *(*spawn_state)(void *ctx, unsigned number);
    /* Rank `by` reports that `rank` does not respond any more. */
    void (*unreachable)(void *ctx, uint32_t rank, uint32_t by);
};

struct pmi *pmi_new(uint32_t size, uint32_t universe, const char *job, const char *node_map,
                    const uint32_t *app_of, const struct pmi_events *ev, void *ctx);
void pmi_free(struct pmi *s);

/* Stores "key=value" in the key-value space before any rank reads it. */
void pmi_put_initial(struct pmi *s, const char *entry);

/* Processes bytes received from a rank; they need not be whole lines. */
void pmi_input(struct pmi *s, uint32_t rank, const char *data, size_t len);

bool pmi_inited(const struct pmi *s, uint32_t rank);
bool pmi_finalized(const struct pmi *s, uint32_t rank);

/* The rank has left MPI_Init (reported only by this library). */
bool pmi_ready(const struct pmi *s, uint32_t rank);
/* Counts the rank as finalized although it will not call MPI_Finalize. */
void pmi_count_as_finalized(struct pmi *s, uint32_t rank);

/* Number of ranks that have called MPI_Init (inited), and not yet MPI_Finalize (active). */
uint32_t pmi_inited_count(const struct pmi *s);
uint32_t pmi_active_count(const struct pmi *s);

/* Returns [size] flags of the ranks that have entered the open barrier; NULL: no barrier is open. */
const bool *pmi_get_waiting(const struct pmi *s);

#endif
