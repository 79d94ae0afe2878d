/* executors.c: the table of executors.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/executor.h"

#include "coll/barrier/hbarrier.h"
#include "coll/multicast/multicast.h"
#include "coll/sched/exec.h"
#include "coll/shm/block.h"

const struct coll_executor *const coll_executors[] = {
    &shared_executor, &hbarrier_executor, &multicast_executor, &schedule_executor, NULL,
};
