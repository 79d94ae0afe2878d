/* backend.h: what a back end must offer (one for each kind of launcher), and what boot.c offers to all of
 * them. A back end is one file and one line in the table of boot.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_BACKEND_H
#define FP_BOOT_BACKEND_H

#include <stdbool.h>

#include "boot/boot.h"

struct boot_backend {
    const char *name;
    /* Does the environment show that this launcher started us? Must not communicate. */
    bool (*detect)(void);
    int (*open)(struct boot **out);
    /* Publishes a value of this rank; boot.c has checked the key. */
    int (*put)(struct boot *b, const char *key, const void *val, size_t len);
    /* Waits for all ranks; afterwards every rank can read what the others have published. */
    int (*fence)(struct boot *b);
    int (*get)(struct boot *b, uint32_t rank, const char *key, void **val, size_t *len);
    int (*finalize)(struct boot *b);
    int (*ready)(struct boot *b);                 /* may be NULL */
    int (*accuse)(struct boot *b, uint32_t rank); /* may be NULL */
    /* True if the launcher reports the failure to the user, or has done so. A launcher that kills at once
     * without a message reports it only after boot_send_abort. */
    bool (*abort)(struct boot *b, int code, const char *msg);
    void (*close)(struct boot *b);
    /* All NULL: the launcher starts no more processes. spawn_poll and spawn_connected may be NULL; spawn_poll may return
     * BOOT_CANNOT_ASK. */
    int (*spawn)(struct boot *b, const struct boot_program *programs, int n, const char *port,
                 char id[BOOT_SPAWN_ID]);
    int (*spawn_poll)(struct boot *b, const char *id);
    void (*spawn_connected)(struct boot *b, const char *id);
};

#define BOOT_CANNOT_ASK (-1)

/* The key under which the children of a spawn find their parents' port. */
#define BOOT_PARENT_KEY "fp.parent"

extern const struct boot_backend boot_pmix, boot_pmi1, boot_singleton;

/* FISHPLATE_INIT_TIMEOUT in seconds, and when it ends if it begins now, in clock_ns() terms. */
int boot_timeout(void);
uint64_t boot_deadline(void);

/* Flushes standard output and prints on standard error which rank ends the job and why. */
void boot_send_abort(const struct boot *b, int code, const char *msg);

/*
 * Fills in the node part of *b from a text map; with a NULL map every rank is on one node. Also sets
 * host (with the virtual node's suffix) and job. 0, or an error when the map is not one.
 */
int boot_layout(struct boot *b, const char *map, const char *job);

/*
 * The same for a launcher whose name of the job may come again: Slurm counts jobs from 1 in each cluster,
 * and two clusters may share a machine. Adds what keeps them apart, where the environment has it.
 */
int boot_layout_foreign(struct boot *b, const char *map, const char *job);

/* Frees what boot_layout allocated. */
void boot_layout_free(struct boot *b);

#endif
