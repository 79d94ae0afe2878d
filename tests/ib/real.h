/* real.h: finds softib's function for a libibverbs that wraps it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_IB_REAL_H
#define FP_TESTS_IB_REAL_H

#include <dlfcn.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

static void *find_real_function(const char *name)
{
    void *softib = dlopen(getenv("FISHPLATE_SOFTIB_LIB"), RTLD_NOW | RTLD_NOLOAD);
    void *found = softib ? dlsym(softib, name) : NULL;
    if (!found)
        abort();
    return found;
}

#endif
