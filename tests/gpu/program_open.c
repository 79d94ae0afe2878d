/* program_open.c: program_open of program.h, for programs that use the library's modules without MPI.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "base/tunable.h"
#include "gpu/gpu.h"
#include "program.h"

void program_open(void)
{
    tunables_load();
    program_load();
    program_start();
    if (gpu_open() != 0 || !gpu_is_active()) {
        printf("GPU memory is not in use: %s\n", gpu_reason_inactive());
        exit(1);
    }
}
