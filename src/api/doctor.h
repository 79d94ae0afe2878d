/* doctor.h: shows readers outside (`fishplate ps`, `fishplate why`) what this process does: base/status_page.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_API_DOCTOR_H
#define FP_API_DOCTOR_H

struct proc;

/* The page is open from MPI_Init to MPI_Finalize. It stays mapped afterwards and reports that the process has
 * finished. */
void doctor_open(struct proc *p);
void doctor_close(void);

#endif
