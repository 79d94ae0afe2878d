/* attr_table.h: the keyvals of a process and the values of the attributes that MPI itself attaches to
 * communicators.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_ATTR_TABLE_H
#define FP_OBJ_ATTR_TABLE_H

struct keyval;
struct proc;

struct attr_table {
    int count, capacity;
    struct keyval **keyvals; /* NULL: a freed keyval */
    /* Values of the predefined attributes; MPI_Comm_get_attr returns pointers to them. */
    int tag_ub, host, io, wtime_is_global, appnum, universe_size, last_used_code, ft;
};

int attr_table_open(struct proc *p);
void attr_table_close(struct proc *p);

#endif
