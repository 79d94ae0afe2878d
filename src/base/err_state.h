/* err_state.h: keeps the last error of a thread while a function that may be called after an error handles errors
 * of its own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_ERR_STATE_H
#define FP_BASE_ERR_STATE_H

#include "base/err.h"

struct err_state {
    int errclass;
    char text[MPI_MAX_ERROR_STRING];
};

struct err_state err_save(void) __attribute__((cold));
void err_restore(const struct err_state *saved) __attribute__((cold));

#endif
