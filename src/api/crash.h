/* crash.h: the note that a rank prints when a signal ends it: which rank, where, in which MPI call with which
 * arguments.
 *
 * Wrappers of functions that access the program's buffers keep their arguments in a record on their stack, 8
 * bytes apart, which costs them a few stores. Only a crash note reads it; it finds the record by the address
 * of the signature in its first word.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_API_CRASH_H
#define FP_API_CRASH_H

#include <stdalign.h>
#include <stdint.h>

struct boot;

/* Of a size and alignment that leave no gaps in their section. */
struct api_signature {
    const char *name; /* "MPI_Send" */
    const char *
        kinds; /* a letter each: p pointer, i int, l 64-bit integer, c communicator, t datatype, o operator */
    const char *params; /* their names, with a blank behind each */
    const char *unused;
} __attribute__((aligned(32)));

/* Signatures stand together, so that a word of the stack is known to be the address of one. */
#define API_SIGNATURE \
    static const struct api_signature signature __attribute__((section("fp_signatures"), used))

/* An argument in the record of its call. Narrow ones are stored as they are: widening them would cost more than the store. */
#define API_KEPT(argument) alignas(8) __typeof__(argument) argument

/* Makes the compiler write the record, at no other cost: this reads it and emits no instruction. */
#define API_RECORD(record) __asm__ volatile("" : : "m"(record))

/* Installs handlers, in MPI_Init, for signals that end a process and that the program does not handle. */
void crash_open(const struct boot *boot);
void crash_close(void);

#endif
