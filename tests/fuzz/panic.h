/* panic.h: replaces err_panic in a fuzz target: a call means that the input was refused. Link with
 * -Wl,--wrap=err_panic; include it in one file of a program.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_FUZZ_PANIC_H
#define FP_FUZZ_PANIC_H

#include "fuzz.h"

_Noreturn void __wrap_err_panic(const char *file, int line, const char *sentence);
_Noreturn void __wrap_err_panic(const char *file, int line, const char *sentence)
{
    (void)file, (void)line, (void)sentence;
    fuzz_refused();
}

#endif
