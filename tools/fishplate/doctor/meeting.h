/* meeting.h: the collective calls that ranks wait in: which ranks are there, which have not arrived, which
 * are in another call. Pure.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DOCTOR_MEETING_H
#define FP_DOCTOR_MEETING_H

#include "graph.h"

/* Finds all meetings. False when memory is out. */
bool meetings_find(struct why *w);
void meetings_free(struct why *w);

/* Appends a rank to an allocated list. False when memory is out. */
bool rank_list_append(uint32_t **list, uint32_t *count, uint32_t rank);

/* The meeting of this item, or NULL. */
const struct why_meeting *meeting_find_collective(const struct why *w, const struct page_wait *wait,
                                                  const struct page_item *item);

#endif
