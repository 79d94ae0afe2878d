/* object.h: the first member of every object of which the user has a handle. A handle is the object's
 * address or a small predefined constant of the standard ABI. The magic number detects invalid handles.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_OBJECT_H
#define FP_BASE_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

/* Predefined handles are 1..4095; anything above is an address. */
#define HANDLE_PREDEFINED_MAX 4095u

enum object_magic {
    MAGIC_COMM = 0x4d4d4f43,
    MAGIC_GROUP = 0x50555247,
    MAGIC_DTYPE = 0x45505954,
    MAGIC_OP = 0x21504f21,
    MAGIC_INFO = 0x4f464e49,
    MAGIC_ERRHANDLER = 0x48525245,
    MAGIC_REQUEST = 0x51455251,
    MAGIC_MESSAGE = 0x4753454d,
    MAGIC_SESSION = 0x53534553,
    MAGIC_WIN = 0x214e4957,
    MAGIC_FILE = 0x454c4946,
    MAGIC_FREED = 0x44414544,
};

/* Members change under the process's big lock. */
struct object {
    uint32_t magic;
    int32_t refs;    /* handles of the user and internal references; at 0 the object is freed */
    int32_t index;   /* the Fortran handle; 0: none was requested */
    bool predefined; /* never freed; MPI_X_free on it is an error */
};

static inline struct object object_init(enum object_magic magic)
{
    return (struct object){.magic = magic, .refs = 1};
}

static inline bool handle_is_predefined(const void *handle)
{
    return (uintptr_t)handle <= HANDLE_PREDEFINED_MAX;
}

#endif
