/* mr.h: functions of memory regions for the files of verbs/.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_VERBS_MR_H
#define SOFTIB_VERBS_MR_H

#include "memory/mapping.h"
#include "verbs/verbs.h"

/* mr_file.c: opens the file of a mapping. Returns a descriptor, which the caller closes; -1: not possible. */
int mr_open_mapping(const struct mapping *m);

/* mr.c: creates a region at `addr`. key not 0: with this key if its table entry is free, else with a new
 * key. */
struct ibv_mr *mr_make(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, uint32_t access,
                       uint32_t key);

/* Increments *count until the region is deregistered. */
void mr_add_to_count(struct ibv_mr *ibv, atomic_int *count);

/* The table of regions and windows. mr_number_allocate: an index; 0: the table is full. mr_key_make: a key
 * that the entry has not had before. */
uint32_t mr_number_allocate(void);
void mr_table_release(uint32_t idx);
uint32_t mr_key_make(uint32_t idx);

/* Returns when no request accesses the entry's memory any more. */
void mr_end_access(struct sh_mr *s);

#endif
