/* meeting.h: a meeting is a collective call in which ranks wait: which members wait in it, which have not
 * called it, which are in another call. Pure.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DOCTOR_MEETING_H
#define FP_DOCTOR_MEETING_H

#include "graph.h"

/* Finds all meetings. False if out of memory. */
bool meetings_find(struct why *w);
void meetings_free(struct why *w);

/* Appends a rank to an allocated list. False if out of memory. */
bool rank_list_append(uint32_t **list, uint32_t *count, uint32_t rank);

/* Returns the meeting to which this item of a wait belongs; NULL: none. */
const struct why_meeting *meeting_find_collective(const struct why *w, const struct page_wait *wait,
                                                  const struct page_item *item);

#endif
