/* info_hw.c: MPI_Get_hw_resource_info: the kinds of hardware this library knows, and whether this process is
 * bound to one piece of each.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "impl.h"
#include "obj/info.h"
#include "obj/hardware.h"

int impl_Get_hw_resource_info(MPI_Info *hw_info)
{
    int32_t place[HARDWARE_LEVELS];
    struct info *made;
    int rc = info_create(&made);
    if (rc)
        return rc;
    hardware_find_places(the_proc->boot, place);
    for (int level = 0; level < HARDWARE_LEVELS && !rc; level++)
        rc = info_set(made, hardware_level_name(level), place[level] >= 0 ? "true" : "false");
    if (rc) {
        info_release(made);
        return rc;
    }
    *hw_info = info_handle(made);
    return MPI_SUCCESS;
}
