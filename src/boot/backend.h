/* backend.h: the interface of back ends, one for each kind of launcher, and functions of boot.c for all
 * back ends. A back end is one file and one line in the table of boot.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BOOT_BACKEND_H
#define FP_BOOT_BACKEND_H

#include <stdbool.h>

#include "boot/boot.h"

struct boot_backend {
    const char *name;
    /* True if the environment shows that this launcher started the process. Must not communicate. */
    bool (*detect)(void);
    int (*open)(struct boot **out);
    /* Publishes a value of this rank; boot.c has checked the key. */
    int (*put)(struct boot *b, const char *key, const void *val, size_t len);
    /* Waits for all ranks; afterwards every rank can read what the others have published. */
    int (*fence)(struct boot *b);
    int (*get)(struct boot *b, uint32_t rank, const char *key, void **val, size_t *len);
    int (*finalize)(struct boot *b);
    int (*report_initialized)(struct boot *b);            /* may be NULL */
    int (*report_suspect)(struct boot *b, uint32_t rank); /* may be NULL */
    /* Returns true if the launcher or this function has reported the failure to the user. A back end whose
     * launcher ends the job without a message calls boot_print_abort first. */
    bool (*abort)(struct boot *b, int code, const char *msg);
    void (*close)(struct boot *b);
    /* spawn NULL: the launcher cannot start more processes. spawn_poll and spawn_connected may be NULL;
     * spawn_poll may return BOOT_CANNOT_QUERY. */
    int (*spawn)(struct boot *b, const struct boot_program *programs, int n, const char *port,
                 char id[BOOT_SPAWN_ID]);
    int (*spawn_poll)(struct boot *b, const char *id);
    void (*spawn_connected)(struct boot *b, const char *id);
};

#define BOOT_CANNOT_QUERY (-1) /* the launcher cannot be queried for the state of a spawn */

/* The key under which the children of a spawn find their parents' port. */
#define BOOT_PARENT_KEY "fp.parent"

extern const struct boot_backend boot_pmix, boot_pmi1, boot_singleton;

/* FISHPLATE_INIT_TIMEOUT in seconds, and the value of clock_ns() at which a timeout that begins now ends. */
int boot_timeout(void);
uint64_t boot_deadline(void);

/* Initialises *b for a back end: unknown values are -1. */
void boot_init(struct boot *b, const struct boot_backend *backend);

/* Allocates a copy of a value with a zero byte behind it. MPI_ERR_NO_MEM names the key. */
int boot_copy_value(const char *key, const void *from, size_t from_len, void **val, size_t *len);

/* Flushes standard output and prints on standard error which rank ends the job and why. */
void boot_print_abort(const struct boot *b, int code, const char *msg);

/*
 * Sets the members of *b about nodes from a node map (nodemap.h); NULL: all ranks are on one node. Also
 * sets host (with the suffix of a virtual node) and job. An error if the map cannot be parsed.
 */
int boot_set_layout(struct boot *b, const char *map, const char *job);

/*
 * boot_set_layout for a launcher whose job names are not unique: Slurm numbers jobs from 1 in each cluster,
 * and two clusters may share a machine. Appends the address of srun, if the environment contains it, to
 * the job name.
 */
int boot_set_layout_foreign(struct boot *b, const char *map, const char *job);

void boot_layout_free(struct boot *b);

#endif
