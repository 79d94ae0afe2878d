/* error.h: error classes, codes and their texts, predefined and made by users. They need no process: the
 * standard permits these calls before MPI_Init and after MPI_Finalize.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_ERROR_H
#define FP_OBJ_ERROR_H

/* "MPI_ERR_RANK", or NULL when this is no predefined class. */
const char *error_class_name(int errclass);

/* Text for any code (512 bytes are enough); false when the code is unknown. */
int error_text(int code, char *out, int *len);
/* MPI_ERR_ARG when the code is unknown. */
int error_class_of(int code, int *errclass);
int error_last_code(void);

int error_add_class(int *errclass);
int error_add_code(int errclass, int *code);
int error_add_string(int code, const char *text);
int error_remove_class(int errclass);
int error_remove_code(int code);
int error_remove_string(int code);

#endif
