/* ids.h: numbers by which peers refer to this rank's requests. A number that a peer sends is checked: an old
 * or invalid one finds no request.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_IDS_H
#define FP_P2P_IDS_H

#include <stdint.h>

struct id_slot {
    void *object; /* NULL when free */
    uint32_t generation, next;
};

struct ids {
    struct id_slot *slots;
    uint32_t size, free; /* free: first free slot + 1, 0 when none */
};

/* Adds an object and returns its number; 0 if memory is out. */
uint64_t ids_add(struct ids *ids, void *object);
void *ids_find(const struct ids *ids, uint64_t id);
void ids_remove(struct ids *ids, uint64_t id);
void ids_close(struct ids *ids);

#endif
