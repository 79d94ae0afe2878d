/* wrapper.h: what the generated wrappers include: entering and leaving a call, argument checks, error
 * reporting and the implementations. Nothing else includes it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_API_WRAPPER_H
#define FP_API_WRAPPER_H

/* Symbols become visible only here: the functions that mpi.h declares, and the PMPI_X and MPI_X that the
 * wrappers define. */
#pragma GCC visibility push(default)
#include <mpi.h>
#pragma GCC visibility pop

/* Every call reads the_proc. It is declared hidden before any other declaration, so that the compiler
 * accesses it without the global offset table. */
struct proc;
extern struct proc *the_proc __attribute__((visibility("hidden")));

#include "api/check.h"
#include "api/crash.h"
#include "api/enter.h"
#include "api/interop.h"
#include "api/call_error.h"
#include "impl.h"
#include "obj/errhandler.h"
#include "obj/info.h"
#include "obj/session.h"

_Static_assert(sizeof(MPI_Aint) == sizeof(int64_t),
               "ivec_from_int64() reads arrays of MPI_Aint as 64-bit integers");

#endif
