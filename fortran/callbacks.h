/* callbacks.h: C functions that MPI calls and that call Fortran procedures of the program.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fortran/fort.h"

#pragma GCC visibility push(hidden)

typedef void (*fort_procedure)(void);

/* Return a C function that calls `procedure`; NULL if there are too many different procedures. */
MPI_User_function *fort_op(fort_procedure procedure);
MPI_User_function_c *fort_op_c(fort_procedure procedure);
MPI_Comm_errhandler_function *fort_comm_handler(fort_procedure procedure);
MPI_Win_errhandler_function *fort_win_handler(fort_procedure procedure);
MPI_File_errhandler_function *fort_file_handler(fort_procedure procedure);
MPI_Session_errhandler_function *fort_session_handler(fort_procedure procedure);

/* fort_cell_new() stores an attribute value that Fortran sets and returns the address for C.
 * fort_cell_value() returns the value for Fortran of an attribute that C or Fortran has set. */
void *fort_cell_new(MPI_Aint value);
MPI_Aint fort_cell_value(const void *attribute);

struct key;
struct key *fort_key_new(fort_procedure copy, fort_procedure delete, MPI_Aint state, bool narrow);
int fort_comm_copy(MPI_Comm object, int number, void *state, void *in, void *out, int *flag);
int fort_comm_delete(MPI_Comm object, int number, void *attribute, void *state);
int fort_type_copy(MPI_Datatype object, int number, void *state, void *in, void *out, int *flag);
int fort_type_delete(MPI_Datatype object, int number, void *attribute, void *state);
int fort_win_copy(MPI_Win object, int number, void *state, void *in, void *out, int *flag);
int fort_win_delete(MPI_Win object, int number, void *attribute, void *state);

void *fort_grequest_new(fort_procedure query, fort_procedure free_fn, fort_procedure cancel, MPI_Aint *state);
int fort_grequest_query(void *state, MPI_Status *status);
int fort_grequest_free(void *state);
int fort_grequest_cancel(void *state, int complete);

/* Never freed: a data representation lives as long as the process. */
void *fort_datarep_new(fort_procedure read, fort_procedure write, fort_procedure extent, MPI_Aint *state);
MPI_Datarep_conversion_function fort_datarep_read, fort_datarep_write;
MPI_Datarep_conversion_function_c fort_datarep_read_c, fort_datarep_write_c;
MPI_Datarep_extent_function fort_datarep_extent;

#pragma GCC visibility pop
