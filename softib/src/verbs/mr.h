/* mr.h: what the files about memory regions need of each other.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_VERBS_MR_H
#define SOFTIB_VERBS_MR_H

#include "memory/mapping.h"
#include "verbs/verbs.h"

/* mr_file.c: a descriptor of a mapped file, the caller's to close; -1: none can be had. */
int mr_open_mapping(const struct mapping *m);

/* mr.c: a region of ours at `addr`; with `key` not 0 under that key if its place is free, else under a fresh one. */
struct ibv_mr *mr_make(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, uint32_t access,
                       uint32_t key);

/* The region is counted there until it is deregistered. */
void mr_add_to_count(struct ibv_mr *ibv, atomic_int *count);

/* The table of regions and windows. An index: 0 when it is full. A key that the entry did not have before. */
uint32_t mr_number_allocate(void);
void mr_table_release(uint32_t idx);
uint32_t mr_key_make(uint32_t idx);

/* Nothing touches the entry's memory after this. */
void mr_retract(struct sh_mr *s);

#endif
