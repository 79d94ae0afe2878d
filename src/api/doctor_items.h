/* doctor_items.h: describes what a wait depends on, in the format of base/status_page.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_API_DOCTOR_ITEMS_H
#define FP_API_DOCTOR_ITEMS_H

#include "base/status_page.h"
#include "net/net.h"

struct proc;

/* Stores the MPI function that waits and the place where the program called it. */
void doctor_write_caller(struct page_wait *out);

void doctor_items(struct proc *p, const struct net_waiter *w, struct page_wait *out);

/* Lists the links on which large messages move slowest. */
void doctor_paces(struct page *page, struct net *net);

#endif
