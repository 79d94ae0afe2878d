/* hints.h: the info keys that files know. The names are those that users of other MPI libraries already have in their
 * scripts. What is not listed here is dropped, as the standard asks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_HINTS_H
#define FP_IO_HINTS_H

#include "obj/info.h"

enum io_choice { IO_AUTOMATIC, IO_ENABLE, IO_DISABLE };

struct io_hints {
    enum io_choice cb_read, cb_write; /* collective buffering */
    enum io_choice ds_read, ds_write; /* data sieving */
    enum io_choice map;               /* writes through a mapping of the file */
    int64_t cb_nodes;                 /* aggregators; 0: chosen by node */
    int64_t cb_per_node;              /* from cb_config_list; 0: not given */
    int64_t cb_buffer_size;
    int64_t ind_rd_buffer_size, ind_wr_buffer_size;
    int64_t striping_factor, striping_unit; /* 0: the file system's */
    int64_t file_perm;                      /* -1: by umask */
    bool sync_close;                        /* fsync in MPI_File_close */
};

/* One line for each key, for `fishplate info --hints`. */
struct io_hint_info {
    const char *key, *values, *preset, *doc;
};
#define IO_HINTS 16
extern const struct io_hint_info io_hint_list[IO_HINTS];

void io_hints_default(struct io_hints *h);
/* Takes over what `info` (may be NULL) says; a value that makes no sense is left out. `opening`: also what can be said
 * only when the file is opened. */
void io_hints_apply(struct io_hints *h, const struct info *info, bool opening);
/* The hints that all ranks must have alike, as numbers that rank 0 sends to the others. */
#define IO_HINT_NUMBERS 13
void io_hints_numbers(const struct io_hints *h, int64_t out[IO_HINT_NUMBERS]);
void io_hints_from_numbers(struct io_hints *h, const int64_t in[IO_HINT_NUMBERS]);
/* A new info object with every hint in use and, as the standard asks, the name of the file. */
int io_hints_used(const struct io_hints *h, const char *name, int aggregators, struct info **out);

#endif
