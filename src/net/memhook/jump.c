/* jump.c: the list of supported processors.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/memhook/jump.h"

#include <string.h>

#include "base/util.h"

const struct jump_code *jump_find(const char *processor)
{
    static const struct jump_code *const all[] = {&jump_aarch64, &jump_x86_64};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (strcmp(all[i]->processor, processor) == 0)
            return all[i];
    return NULL;
}
