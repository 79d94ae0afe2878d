/* interop.c: the table behind integer handles. It maps addresses, not objects: an object that was freed and
 * another made at the same address share an index. So freed objects stay in the table, and
 * it grows only with the number of different addresses in use. Info objects exist before MPI_Init, so the
 * table does not belong to the process instance.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/interop.h"

#include <pthread.h>
#include <stdlib.h>

#include "api/wrapper.h"

#define FIRST_INDEX (HANDLE_PREDEFINED_MAX + 1)
#define EMPTY       0u

static struct {
    pthread_mutex_t lock;
    const void **handles; /* by index - FIRST_INDEX */
    uint32_t *slots;      /* hash table by address, with open addressing: index in `handles` + 1, or EMPTY */
    uint32_t count;
    uint32_t capacity; /* of slots, a power of two; handles has room for half of it */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint32_t hash_address(const void *handle)
{
    return (uint32_t)(((uintptr_t)handle >> 4) * 0x9e3779b97f4a7c15u >> 32);
}

/* Returns the slot that contains the address, or the empty slot for it. */
static uint32_t *find_slot(uint32_t *slots, uint32_t capacity, const void *handle)
{
    uint32_t i = hash_address(handle) & (capacity - 1);
    while (slots[i] != EMPTY && table.handles[slots[i] - 1] != handle)
        i = (i + 1) & (capacity - 1);
    return &slots[i];
}

static void interop_grow_table(void)
{
    uint32_t capacity = table.capacity ? 2 * table.capacity : 256;
    uint32_t *slots = calloc(capacity, sizeof(*slots));
    const void **handles = realloc(table.handles, capacity / 2 * sizeof(*handles));
    CHECK_MEMORY(slots && handles, "the table of integer handles");
    table.handles = handles;
    for (uint32_t i = 0; i < table.count; i++)
        *find_slot(slots, capacity, handles[i]) = i + 1;
    free(table.slots);
    table.slots = slots;
    table.capacity = capacity;
}

int api_handle_to_int(const void *handle)
{
    if (handle_is_predefined(handle))
        return (int)(uintptr_t)handle;
    pthread_mutex_lock(&table.lock);
    if (2 * (table.count + 1) > table.capacity)
        interop_grow_table();
    uint32_t *slot = find_slot(table.slots, table.capacity, handle);
    if (*slot == EMPTY) {
        table.handles[table.count] = handle;
        *slot = ++table.count;
    }
    int number = (int)(FIRST_INDEX + *slot - 1);
    pthread_mutex_unlock(&table.lock);
    return number;
}

void *api_handle_from_int(int number, void *null)
{
    if (number >= 0 && number <= (int)HANDLE_PREDEFINED_MAX)
        return (void *)(uintptr_t)number;
    pthread_mutex_lock(&table.lock);
    bool known = number > 0 && (uint32_t)number - FIRST_INDEX < table.count;
    void *handle = known ? (void *)table.handles[(uint32_t)number - FIRST_INDEX] : null;
    pthread_mutex_unlock(&table.lock);
    return handle;
}

/* Fortran's MPI_STATUS_IGNORE is an address that only the Fortran bindings know. The bindings set these
 * variables when they are loaded. */
MPI_Fint *MPI_F_STATUS_IGNORE;
MPI_Fint *MPI_F_STATUSES_IGNORE;
MPI_F08_status *MPI_F08_STATUS_IGNORE;
MPI_F08_status *MPI_F08_STATUSES_IGNORE;
