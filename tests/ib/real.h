/* real.h: for a libibverbs of a test that stands before softib's: the function of softib behind one of its own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_IB_REAL_H
#define FP_TESTS_IB_REAL_H

#include <dlfcn.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

static void *real(const char *name)
{
    void *softib = dlopen(getenv("FISHPLATE_SOFTIB_LIB"), RTLD_NOW | RTLD_NOLOAD);
    void *found = softib ? dlsym(softib, name) : NULL;
    if (!found)
        abort();
    return found;
}

#endif
