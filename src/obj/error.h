/* error.h: error classes, codes and their texts, predefined and made by users. They need no process: the
 * standard permits these calls before MPI_Init and after MPI_Finalize.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_ERROR_H
#define FP_OBJ_ERROR_H

/* Returns the name of a predefined class ("MPI_ERR_RANK"), or NULL. */
const char *error_class_name(int errclass);

/* Writes the text of a class or code to `out` (MPI_MAX_ERROR_STRING bytes). Returns MPI_ERR_ARG for an
 * unknown code. */
int error_text(int code, char *out, int *len);
/* Returns MPI_ERR_ARG for an unknown code. */
int error_class_of(int code, int *errclass);
int error_last_code(void);

int error_add_class(int *errclass);
int error_add_code(int errclass, int *code);
int error_add_string(int code, const char *text);
int error_remove_class(int errclass);
int error_remove_code(int code);
int error_remove_string(int code);

#endif
