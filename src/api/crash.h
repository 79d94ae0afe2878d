/* crash.h: the note that a rank prints when a signal ends it: which rank, where, in which MPI call with which
 * arguments.
 *
 * Wrappers of functions that access the program's buffers store their arguments in a record on their stack, 8
 * bytes apart, at the cost of a few stores. Only the crash note reads the record; it finds the record by the
 * address of a signature in the record's first word.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_API_CRASH_H
#define FP_API_CRASH_H

#include <stdalign.h>
#include <stdint.h>

struct boot;

/* Arguments of an MPI function. Size and alignment leave no gaps between signatures in their section. */
struct api_signature {
    const char *name; /* "MPI_Send" */
    /* One letter per argument: p pointer, i int, l 64-bit integer, c communicator, t datatype, o operator. */
    const char *kinds;
    const char *params; /* names of the arguments, each followed by a blank */
    const char *unused;
} __attribute__((aligned(32)));

/* All signatures are in one section, so that the address of a signature can be recognised on the stack. */
#define API_SIGNATURE \
    static const struct api_signature signature __attribute__((section("fp_signatures"), used))

/* Declares an argument in the record of a call. Arguments of fewer than 8 bytes are not widened, which would
 * cost more than the store. */
#define API_KEPT(argument) alignas(8) __typeof__(argument) argument

/* Makes the compiler store the record: the statement has the record as input and emits no instruction. */
#define API_RECORD(record) __asm__ volatile("" : : "m"(record))

/* Installs handlers, in MPI_Init, for signals that end a process and that the program does not handle. */
void crash_open(const struct boot *boot);
void crash_close(void);

#endif
