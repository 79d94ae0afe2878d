/* place.h: the place in the program that called MPI, from the call stack, as file and line if addr2line
 * (package binutils) is installed and the program has debug information (-g).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_PLACE_H
#define FP_BASE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A return address in a file. */
struct code_place {
    uint64_t offset;
    char path[120]; /* "": not known */
};

/* The caller of the MPI function on this thread's call stack, and the function's name in `call` unless
 * that is NULL. */
void place_find_mpi_caller(struct code_place *out, char *call, size_t size);

/* Finds the file that contains a return address. Returns false if no file is known; *out is then empty. */
bool place_of_address(const void *address, struct code_place *out);

/* Formats a place: "solver.c:210"; without debug information "solver+0x1234"; "a place that is not known". */
void place_text(const struct code_place *at, char *out, size_t size);

/* Finds the function and "file:line" of a place; false without debug information. Takes at most two seconds;
 * after a lookup that took longer, later calls return false at once. */
bool place_lookup(const struct code_place *at, char *function, size_t function_size, char *line,
                  size_t line_size);

/* Writes ", called by main at solver.c:210" for the present MPI call; "" without debug information. `call`,
 * unless NULL, gets the name of the MPI function; "" if this thread is in none. */
void place_call_text(char *call, size_t call_size, char *out, size_t size);

#endif
