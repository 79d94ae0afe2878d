/* hints.h: the info keys of files, with the names that other MPI libraries use. Other keys are ignored, as
 * the standard requires.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_HINTS_H
#define FP_IO_HINTS_H

#include "obj/info.h"

enum io_choice { IO_AUTOMATIC, IO_ENABLE, IO_DISABLE };

/* Rank 0 broadcasts the whole structure: all ranks use its hints. */
struct io_hints {
    enum io_choice cb_read, cb_write; /* collective buffering */
    enum io_choice ds_read, ds_write; /* data sieving */
    enum io_choice map;               /* writes through a mapping of the file */
    int64_t cb_nodes;                 /* number of aggregators; 0: cb_per_node or a default for each node */
    int64_t cb_per_node;              /* aggregators of a node, from cb_config_list; 0: not given */
    int64_t cb_buffer_size;
    int64_t ind_rd_buffer_size, ind_wr_buffer_size;
    int64_t striping_factor, striping_unit; /* servers, bytes of a stripe; 0: as the file system chooses */
    int64_t file_perm;                      /* permissions of a new file; -1: 0666 without umask */
    bool sync_close;                        /* fsync in MPI_File_close */
};

/* Description of a hint for `fishplate info --hints`. */
struct io_hint_info {
    const char *key, *values, *preset, *doc;
};
#define IO_HINTS 16
extern const struct io_hint_info io_hint_list[IO_HINTS];

void io_hints_default(struct io_hints *h);
/* Sets the hints that `info` (may be NULL) contains; invalid values are ignored. opening: including the
 * hints that can be given only when a file is opened. */
void io_hints_apply(struct io_hints *h, const struct info *info, bool opening);
/* Creates an info object with every hint in use and, as the standard requires, the name of the file. */
int io_hints_used(const struct io_hints *h, const char *name, int aggregators, struct info **out);

#endif
