/* kind.h: properties of the predefined datatypes: representation in memory (the arithmetic of reductions),
 * class (the operators that the standard allows) and width in external32.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DT_KIND_H
#define FP_DT_KIND_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* One kind for each predefined datatype; KIND_MIXED stands for data of several kinds. */
enum dt_kind {
    KIND_MIXED,
#define BASIC(name, handle, ctype, num, class, external) KIND_##name,
#define PAIR(name, handle, value, index)                 KIND_##name,
#include "dt/predefined.def"
#undef BASIC
#undef PAIR
    KIND_LIMIT
};

/* Representation of a value in memory. */
enum dt_num {
    NUM_NONE, /* no arithmetic in this build */
    NUM_I8,
    NUM_I16,
    NUM_I32,
    NUM_I64,
    NUM_I128,
    NUM_U8,
    NUM_U16,
    NUM_U32,
    NUM_U64,
    NUM_F16,
    NUM_F32,
    NUM_F64,
    NUM_FL, /* long double */
    NUM_F128,
    NUM_C16, /* complex numbers; the bits are those of one half */
    NUM_C32,
    NUM_C64,
    NUM_CL,
    NUM_C128,
    NUM_LIMIT,
    NUM_CHAR = CHAR_MIN < 0 ? NUM_I8 : NUM_U8,
};

/* The groups of types for which the standard defines operators (MPI 5.0, 6.9.2). */
enum dt_class {
    CLASS_OTHER,     /* Fortran and wide characters, MPI_PACKED: no operator */
    CLASS_CHARACTER, /* MPI_CHAR */
    CLASS_C_INTEGER,
    CLASS_FORTRAN_INTEGER,
    CLASS_FLOATING,
    CLASS_LOGICAL,
    CLASS_COMPLEX,
    CLASS_BYTE,
    CLASS_MULTI, /* MPI_AINT, MPI_COUNT, MPI_OFFSET */
    CLASS_PAIR,
};

struct dt_kind_info {
    const char *name;
    uint32_t handle;
    uint8_t num;      /* enum dt_num */
    uint8_t class;    /* enum dt_class */
    uint8_t external; /* bytes in external32; 0: a pair, whose halves are converted separately */
};

extern struct dt_kind_info dt_kinds[KIND_LIMIT];

#endif
