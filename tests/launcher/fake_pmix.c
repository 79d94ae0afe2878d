/* fake_pmix.c: a libpmix.so.2 that simulates the server of a job of two ranks and does not report which
 * rank is on which node.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "boot/pmix_abi.h"

int PMIx_Init(struct px_proc *me, struct px_info *info, size_t n);
int PMIx_Init(struct px_proc *me, struct px_info *info, size_t n)
{
    (void)info, (void)n;
    *me = (struct px_proc){.nspace = "fake", .rank = 0};
    return PX_SUCCESS;
}

int PMIx_Get(const struct px_proc *whose, const char *key, const struct px_info *info, size_t n,
             struct px_value **out);
int PMIx_Get(const struct px_proc *whose, const char *key, const struct px_info *info, size_t n,
             struct px_value **out)
{
    (void)whose, (void)info, (void)n;
    if (strcmp(key, PX_JOB_SIZE) != 0)
        return PX_ERR_NOT_FOUND;
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return PX_ERR_NOT_FOUND;
    **out = (struct px_value){.type = PX_UINT32, .data.uint32 = 2};
    return PX_SUCCESS;
}

/* The library looks for these functions when it loads libpmix, and calls none of them in this test. */
#define UNUSED_FUNCTION(name) \
    int name(void);           \
    int name(void)            \
    {                         \
        abort();              \
    }
UNUSED_FUNCTION(PMIx_Finalize)
UNUSED_FUNCTION(PMIx_Abort)
UNUSED_FUNCTION(PMIx_Put)
UNUSED_FUNCTION(PMIx_Commit)
UNUSED_FUNCTION(PMIx_Fence_nb)
UNUSED_FUNCTION(PMIx_Register_event_handler)
UNUSED_FUNCTION(PMIx_Spawn_nb)
UNUSED_FUNCTION(PMIx_Error_string)
UNUSED_FUNCTION(PMIx_Get_version)
