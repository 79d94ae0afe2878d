/* predefined.c: the predefined datatypes, static data that the compiler builds from predefined.def.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdint.h>

#include "dt/build.h"
#include "dt/kind.h"
#include "dt/layout.h"
#include "dt/number.h"

struct dt_kind_info dt_kinds[KIND_LIMIT] = {
    [KIND_MIXED] = {.name = "several types"},
#define BASIC(name, handle, ctype, num, class, external) \
    [KIND_##name] = {"MPI_" #name, handle, NUM_##num, CLASS_##class, external},
#define PAIR(name, handle, value, index) [KIND_##name] = {"MPI_" #name, handle, NUM_NONE, CLASS_PAIR, 0},
#include "dt/predefined.def"
#undef BASIC
#undef PAIR
};

/* C types by name, of which the structures of pairs are declared. */
#define BASIC(name, handle, ctype, num, class, external) typedef ctype ctype_##name;
#define PAIR(name, handle, value, index)
#include "dt/predefined.def"
#undef BASIC
#undef PAIR
#define BASIC(name, handle, ctype, num, class, external)
#define PAIR(name, handle, value, index) \
    struct pair_##name {                 \
        ctype_##value a;                 \
        ctype_##index b;                 \
    };
#include "dt/predefined.def"
#undef BASIC
#undef PAIR

/* Layouts: one block; two blocks for a pair with a gap between value and index. */
#define PAIR_SIZE(value, index) (sizeof(ctype_##value) + sizeof(ctype_##index))
#define PAIR_DENSE(name, value) (offsetof(struct pair_##name, b) == sizeof(ctype_##value))

static struct dt_block pair_blocks[KIND_LIMIT][3] = {
#define BASIC(name, handle, ctype, num, class, external)
#define PAIR(name, handle, value, index) \
    [KIND_##name] = {                    \
        {0, 0}, {offsetof(struct pair_##name, b), sizeof(ctype_##value)}, {0, PAIR_SIZE(value, index)}},
#include "dt/predefined.def"
#undef BASIC
#undef PAIR
};

static struct dt_node nodes[KIND_LIMIT] = {
#define BASIC(name, handle, ctype, num, class, external) \
    [KIND_##name] = {.type = NODE_BLOCK, .refs = 1, .size = sizeof(ctype)},
#define PAIR(name, handle, value, index)                                         \
    [KIND_##name] = {.type = PAIR_DENSE(name, value) ? NODE_BLOCK : NODE_BLOCKS, \
                     .refs = 1,                                                  \
                     .size = PAIR_SIZE(value, index),                            \
                     .blocks = {2, pair_blocks[KIND_##name]}},
#include "dt/predefined.def"
#undef BASIC
#undef PAIR
};

static struct dt_layout layouts[KIND_LIMIT] = {
#define BASIC(name, handle, ctype, num, class, external) [KIND_##name] = {0, &nodes[KIND_##name]},
#define PAIR(name, handle, value, index)                 [KIND_##name] = {0, &nodes[KIND_##name]},
#include "dt/predefined.def"
#undef BASIC
#undef PAIR
};

static struct dtype types[KIND_LIMIT];

/* A pair has the shape of a structure of two named types, which MPI_Get_elements and external32 use. */
#define BASIC(name, handle, ctype, num, class, external)
#define PAIR(name, handle, value, index)    \
    static struct dt_shape shape_##name = { \
        1,                                  \
        0,                                  \
        2,                                  \
        {{1, 0, &types[KIND_##value]}, {1, offsetof(struct pair_##name, b), &types[KIND_##index]}}};
#include "dt/predefined.def"
#undef BASIC
#undef PAIR

#define COMMON(kind_, handle_)                                                                      \
    .obj = {.magic = MAGIC_DTYPE, .refs = 1, .predefined = true}, .committed = true, .kind = kind_, \
    .handle = handle_, .handles = 1, .layout = &layouts[kind_]

static struct dtype types[KIND_LIMIT] = {
#define BASIC(name_, handle_, ctype, num, class, external)                                           \
    [KIND_##name_] = {COMMON(KIND_##name_, handle_), .size = sizeof(ctype), .extent = sizeof(ctype), \
                      .true_extent = sizeof(ctype),  .dense = true,         .contiguous = true,      \
                      .align = _Alignof(ctype),      .elements = 1,         .name = "MPI_" #name_},
#define PAIR(name_, handle_, value, index)                                                     \
    [KIND_##name_] = {COMMON(KIND_##name_, handle_),                                           \
                      .size = PAIR_SIZE(value, index),                                         \
                      .extent = sizeof(struct pair_##name_),                                   \
                      .true_extent = offsetof(struct pair_##name_, b) + sizeof(ctype_##index), \
                      .dense = PAIR_DENSE(name_, value),                                       \
                      .contiguous = PAIR_SIZE(value, index) == sizeof(struct pair_##name_),    \
                      .align = _Alignof(struct pair_##name_),                                  \
                      .elements = 2,                                                           \
                      .shape = &shape_##name_,                                                 \
                      .name = "MPI_" #name_},
#include "dt/predefined.def"
#undef BASIC
#undef PAIR
};

struct dtype *const dt_by_handle[DT_HANDLES] = {
#define BASIC(name, handle, ctype, num, class, external) [(handle)&0xff] = &types[KIND_##name],
#define PAIR(name, handle, value, index)                 [(handle)&0xff] = &types[KIND_##name],
#include "dt/predefined.def"
#undef BASIC
#undef PAIR
};
