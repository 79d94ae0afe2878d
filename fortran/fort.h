/* fort.h: declarations that the C functions behind Fortran share. Each file here and each generated one is
 * compiled twice: plainly for the mpi_ names, which call MPI_X so that a C tool sees them, and with PROFILING
 * for pmpi_ and PMPI_X.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <ISO_Fortran_binding.h>
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#ifdef PROFILING
#define N(name) p##name
#define U(name) P##name
#define C(name) P##name
#else
#define N(name) name
#define U(name) name
#define C(name) name
#endif

#define FORT_TEXT_(text)        #text
#define FORT_TEXT(text)         FORT_TEXT_(text)
#define FORT_ALIAS(other, name) extern __typeof__(name) other __attribute__((alias(FORT_TEXT(name))));
/* Define aliases of a procedure: the spellings of other compilers, and the name that mpi_f08 calls. Handles
 * and statuses have the same layout in all bindings. */
#define FORT_SPELLINGS(low, up)       \
    FORT_ALIAS(N(low), N(low##_))     \
    FORT_ALIAS(N(low##__), N(low##_)) \
    FORT_ALIAS(U(up), N(low##_))
#define FORT_BOTH(low, up)               \
    FORT_ALIAS(N(low##_f08_), N(low##_)) \
    FORT_SPELLINGS(low, up)

/* Makes the call `rc` and stores the result in ierror, which mpi_f08 programs may omit. */
#define FORT_RETURN(rc)         \
    do {                        \
        const int code_ = (rc); \
        if (ierror)             \
            *ierror = code_;    \
    } while (0)

#define FORT_FEW 16

/* Sentinels such as MPI_IN_PLACE, recognised by their addresses. A program's common block of the same name
 * replaces a sentinel at link time, so these symbols must not be hidden. */
extern MPI_Fint mpifort_bottom_, mpifort_in_place_, mpifort_automatic_;
extern MPI_Fint mpifort_status_ignore_[8], mpifort_statuses_ignore_[8];
extern MPI_Fint mpifort_unweighted_[1], mpifort_weights_empty_[1], mpifort_errcodes_ignore_[1];
extern char mpifort_argv_null_[1], mpifort_argvs_null_[1];

#pragma GCC visibility push(hidden) /* the following symbols are private to this library */

void *fort_buffer(void *buffer);
int *fort_weights(const int *weights);
MPI_Status *fort_status(MPI_Status *status);

/* Return C copies of strings without trailing blanks, or without blanks at both ends; free() them. */
char *fort_string(const char *text, size_t length);
char *fort_string_stripped(const char *text, size_t length);
/* Fills a CHARACTER variable, padded with blanks. */
void fort_string_out(char *text, size_t length, const char *from);

/* Convert arrays of handles: short ones into `few` unless it is NULL, others into memory from malloc(). */
size_t fort_length(MPI_Count count);
size_t fort_peers(MPI_Fint comm, bool neighbors, bool sending, void *sendbuf);
MPI_Datatype *fort_types_in(const MPI_Fint *from, size_t n, MPI_Datatype *few, bool convert);
MPI_Request *fort_requests_in(const MPI_Fint *from, size_t n, MPI_Request *few, bool convert);
void fort_types_out(MPI_Fint *to, const MPI_Datatype *from, size_t n);
void fort_requests_out(MPI_Fint *to, const MPI_Request *from, size_t n);
void fort_request_out(MPI_Fint *to, MPI_Request from);
void fort_room_free(void *room, void *few);
void fort_count_from_one(int *indices, int n);

/* Array sections (section.c). */
struct fort_section {
    void *base;           /* buffer address that is passed to C */
    MPI_Datatype made;    /* describes the section, or MPI_DATATYPE_NULL */
    CFI_cdesc_t *section; /* the caller's descriptor */
    void *copy;           /* the elements one after the other, or NULL */
    bool back;            /* copy the elements back to the section at the end */
    bool persistent;
    /* Partitions in bytes: distance, offset of the first byte, length; distance 0: not partitioned. */
    MPI_Count stride, low, span;
};
enum fort_lasts { FORT_CALL, FORT_REQUEST, FORT_PERSISTENT, FORT_BEYOND };

int fort_section_type(struct fort_section *s, CFI_cdesc_t *section, MPI_Count *count, MPI_Datatype *dtype);
void fort_section_type_end(struct fort_section *s);
int fort_section_copy(struct fort_section *s, CFI_cdesc_t *section, enum fort_lasts lasts, bool back);
void fort_section_copy_end(struct fort_section *s);
void fort_section_copy_until_done(struct fort_section *s, int rc, MPI_Request request);
/* Partitioned messages: a partition is copied when it is marked ready, or has arrived. */
void fort_section_partitions(struct fort_section *s, MPI_Count count, MPI_Datatype dtype);
void fort_partitions_ready(MPI_Fint request, int low, int high);
void fort_partition_arrived(MPI_Fint request, int partition);
/* Frees memory from malloc() when the request that reads it ends. */
void fort_free_after_request(void *memory, int rc, MPI_Request request);
void fort_request_starts(MPI_Fint request);
void fort_request_ended(MPI_Fint request, MPI_Request now);
extern int fort_copy_records;

#pragma GCC visibility pop
