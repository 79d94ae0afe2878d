/* allotments.h: policies that decide which rails a large transfer uses: rails multiplexed by whole messages
 * (multiplex.c) [Liu04 8.2.4], and rails reserved for one transfer at a time (reservation.c) [Coll01].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_MECHANISMS_RAILS_ALLOTMENTS_H
#define FP_LAB_MECHANISMS_RAILS_ALLOTMENTS_H

#include "net/ib/rails/rails.h"

int multiplex_open(struct ib *ib, enum ib_allot_policy policy);

#endif
