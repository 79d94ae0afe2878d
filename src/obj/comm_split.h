/* comm_split.h: the last step of MPI_Comm_split and MPI_Comm_split_type.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_COMM_SPLIT_H
#define FP_OBJ_COMM_SPLIT_H

#include "obj/create.h"

struct split_record {
    int32_t color, key;
};

/* Creates the communicator of the processes whose record has this colour, ordered by key, then by rank.
 * `records` lists the local group, then the remote group of an intercommunicator. Creates nothing for
 * MPI_UNDEFINED or if no process of the remote group has this colour. */
int split_build_comm(struct creation *c, const struct split_record *records, int color);

#endif
