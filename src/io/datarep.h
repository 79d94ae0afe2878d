/* datarep.h: data representations (MPI-5.0, 14.5): native and internal equal the representation in memory,
 * src/dt converts external32, and users register others.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_IO_DATAREP_H
#define FP_IO_DATAREP_H

#include "dt/dtype.h"
#include "obj/proc.h"

enum datarep_kind { DATAREP_NATIVE, DATAREP_EXTERNAL32, DATAREP_USER };

struct datarep {
    char name[MPI_MAX_DATAREP_STRING];
    enum datarep_kind kind;
    bool large; /* registered by MPI_Register_datarep_c */
    union {
        MPI_Datarep_conversion_function *small;
        MPI_Datarep_conversion_function_c *large;
    } read, write; /* NULL: no conversion */
    MPI_Datarep_extent_function *extent;
    void *extra;
    struct datarep *next;
};

const struct datarep *datarep_find(const char *name);
/* Registers a copy of `rep`. Returns MPI_ERR_DUP_DATAREP if the name exists. */
int datarep_register(const struct datarep *rep);

/* True if data in the file may differ from data in memory. */
static inline bool datarep_converts(const struct datarep *rep)
{
    return rep->kind != DATAREP_NATIVE;
}

/* Return the size and the extent of a type in the file, in bytes. */
int datarep_file_size(const struct datarep *rep, struct dtype *t, int64_t *size);
int datarep_file_extent(const struct datarep *rep, struct dtype *t, MPI_Count *extent);
/* Builds `t` with the sizes of the representation, committed if `t` is. The caller must release *out. */
int datarep_file_type(const struct datarep *rep, struct dtype *t, struct dtype **out);

/* Convert between memory and file. Functions of the user run without the process's lock. length: bytes of
 * all elements in the file. have: bytes that were read; elements that are complete in them are converted.
 * *bytes: size in memory of these elements. */
int datarep_pack(struct proc *p, const struct datarep *rep, struct dtype *t, MPI_Count count,
                 const void *buffer, void *out, uint64_t length);
int datarep_unpack(struct proc *p, const struct datarep *rep, struct dtype *t, MPI_Count count, void *buffer,
                   void *in, uint64_t length, uint64_t have, MPI_Count *bytes);

#endif
