/* softcuda.h: internal interface between the files of softcuda, the software CUDA driver.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTCUDA_H
#define SOFTCUDA_H

#include <pthread.h>
#include <stdbool.h>

#include "cuda_program.h"

#define EXPORT __attribute__((visibility("default")))

#define DEVICES_MOST 8
#define UNIT         ((size_t)2 << 20) /* device addresses are reserved in units of this size */

enum memory_kind {
    MEMORY_DEVICE,
    MEMORY_POOL,
    MEMORY_VMM,
    MEMORY_MANAGED,
    MEMORY_HOST,
    MEMORY_REGISTERED,
    MEMORY_IMPORTED
};

/* One allocation: the program uses `address`, copies use `alias` (equal for memory that processors may
 * access). */
struct allocation {
    uintptr_t address;
    char *alias;
    size_t size, mapped;
    size_t offset; /* offset of device memory in its mapping and in its memory file */
    uint64_t id;
    int fd; /* the memory file of device memory, or -1 */
    int device;
    int opened_by; /* device of the context that opened imported memory */
    enum memory_kind kind;
    bool sync_memops;
    bool is_locked; /* mapped by cuMemMap, and cuMemSetAccess was not called yet */
};

struct cuda_context {
    int device;
    int references; /* reference count of the primary context; 0: not active */
    int resets;     /* number of resets by the program */
};

/* Protects all state of softcuda. */
extern pthread_mutex_t softcuda_lock;

/* True if SOFTCUDA_FAIL requires this call of `function` to fail. */
bool softcuda_must_fail(const char *function);
bool softcuda_is_initialised(void);
cuda_context softcuda_current(void);
int softcuda_device_count(void);
/* True if one device can access the memory of the other (SOFTCUDA_PEERS). */
bool softcuda_are_peers(int device, int other);
uint64_t softcuda_setting(const char *name, uint64_t otherwise);

/* Context of an object and its number of resets: the object is invalid after a later reset. */
struct origin {
    cuda_context context;
    int resets;
};
struct origin softcuda_origin(void);
bool softcuda_is_valid(const struct origin *origin);

/* With the lock held: returns the allocation that contains [address, address + size), or NULL. */
struct allocation *softcuda_find(uintptr_t address, size_t size);
/* With the lock held: adds an allocation; false: the table is full. */
bool softcuda_add(const struct allocation *it);
/* Maps a memory file twice: without access for the program, and for copies. */
bool softcuda_map(int fd, size_t size, struct allocation *out);
/* Frees memory of the context of this device. */
void softcuda_release_all(int device);
/* Reserves an address range in units of UNIT bytes without access; NULL: out of memory. */
char *softcuda_reserve(size_t size);
/* With the lock held: the reservation of cuMemAddressReserve that contains `address`; false: there is
 * none. */
bool softcuda_find_reservation(uintptr_t address, uintptr_t *start, size_t *size);
/* Removes the mapping of cuMemMap that begins at `address` and returns its size, or 0 if there is none.
 * Without the lock. */
size_t softcuda_unmap(uintptr_t address);
/* Returns the address by which copies access `size` bytes at `address`; NULL: a part of the range is
 * device memory that does not exist. */
char *softcuda_translate(uintptr_t address, size_t size);
/* Copies memory, which may span adjacent mappings of cuMemMap. Returns false if a part of a range does not
 * exist. */
bool softcuda_copy_memory(uintptr_t to, uintptr_t from, size_t size);
/* Runs all operations of the streams that the legacy default stream waits for. */
void softcuda_run_default(void);

#endif
