/* comm_split.h: the part of splitting that both splits share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_COMM_SPLIT_H
#define FP_OBJ_COMM_SPLIT_H

#include "obj/create.h"

struct split_record {
    int32_t color, key;
};

/* Makes the communicator of those whose record has this colour, by key, then by rank. `records` has the own
 * group and then the remote one, if any. Nothing is made for MPI_UNDEFINED, nor where the other side of an
 * intercommunicator has nobody of this colour. */
int split_build_comm(struct creation *c, const struct split_record *records, int color);

#endif
