/* kill_point.h: named points inside the library at which a test kills or stops a rank. They exist only in the
 * test library build/lib/kill/libmpi_abi.so.1, which is compiled with FISHPLATE_KILL_POINTS; elsewhere they
 * are empty.
 *     FISHPLATE_KILL_AT=name:count:rank          SIGKILL at the count-th time that the rank reaches the point
 *     FISHPLATE_KILL_AT=name:count:rank:stop     SIGSTOP instead
 * To add a point, write a line in kill_points.def, and KILL_POINT(name) in the file that the line names.
 * docs/faults.md lists the tests.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_KILL_POINT_H
#define FP_BASE_KILL_POINT_H

#include <stdint.h>

enum kill_point {
#define KILL_POINT_ENTRY(name, file, doc) KILL_POINT_##name,
#include "base/kill_points.def"
#undef KILL_POINT_ENTRY
    KILL_POINTS
};

#ifdef FISHPLATE_KILL_POINTS
void kill_point_open(
    uint32_t rank); /* sets this process's rank in its job; points before this call have no effect */
void kill_point_reach(enum kill_point point);
#define KILL_POINT(name) kill_point_reach(KILL_POINT_##name)
#else
#define kill_point_open(rank) ((void)(rank))
#define KILL_POINT(name)      ((void)0)
#endif

#endif
