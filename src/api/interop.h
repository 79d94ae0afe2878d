/* interop.h: handles as integers, for Fortran and for MPI_X_toint/fromint. The integer of a predefined handle
 * is its value; any other handle gets an index when it is first converted. The generated conversion functions
 * call these two functions.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_API_INTEROP_H
#define FP_API_INTEROP_H

int api_handle_to_int(const void *handle);

/* The handle of a number; `null` if the number was never assigned. */
void *api_handle_from_int(int number, void *null);

#endif
