/* living.h: what the programs of the kill point tests have in common: a communicator of the living ranks,
 * calls that may fail if a rank has died, and the agreement after which the others continue.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_FAULTS_LIVING_H
#define FP_TESTS_FAULTS_LIVING_H

#include <mpi-ext.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 8 };

static MPI_Comm now; /* communicator of the living ranks */
static int rank, size, round_number;
static bool failed; /* a member of `now` has died */

static void report_error_and_exit(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    printf("WRONG BYTES: round %d, rank %d of %d: ", round_number, rank, size);
    vprintf(format, list);
    printf("\n");
    va_end(list);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

/* Returns true if the call succeeded; a failure is accepted only if a rank has died. */
static bool succeeded(int rc, const char *what)
{
    int class = rc;
    if (rc)
        MPI_Error_class(rc, &class);
    if (class && class != MPIX_ERR_PROC_FAILED && class != MPIX_ERR_REVOKED) {
        char text[MPI_MAX_ERROR_STRING];
        int length;
        MPI_Error_string(rc, text, &length);
        report_error_and_exit("%s failed with %s", what, text);
    }
    failed = failed || class;
    return class == 0;
}

static void use_communicator(MPI_Comm c)
{
    now = c;
    MPI_Comm_set_errhandler(now, MPI_ERRORS_RETURN);
    MPI_Comm_rank(now, &rank);
    MPI_Comm_size(now, &size);
    failed = false;
}

/* All living ranks agree whether a rank has died, and continue without the dead rank. */
static void test_agree(void)
{
    int fine = !failed;
    const int rc = MPIX_Comm_agree(now, &fine);
    if (succeeded(rc, "MPIX_Comm_agree") && fine)
        return;
    MPI_Comm next;
    MPIX_Comm_revoke(now);
    if (!succeeded(MPIX_Comm_shrink(now, &next), "MPIX_Comm_shrink"))
        report_error_and_exit("MPIX_Comm_shrink failed");
    use_communicator(next);
}

/* Fails unless every rank from which no message arrived is known to be dead. */
static void check_missing_are_dead(const bool *arrived)
{
    MPI_Group dead, all;
    int at = 0, world;
    MPIX_Comm_failure_ack(now);
    MPIX_Comm_failure_get_acked(now, &dead);
    MPI_Comm_group(now, &all);
    for (int peer = 0; peer < size; peer++) {
        MPI_Group_translate_ranks(all, 1, &peer, dead, &world);
        at += !arrived[peer] && world == MPI_UNDEFINED;
    }
    MPI_Group_free(&all);
    MPI_Group_free(&dead);
    if (at)
        report_error_and_exit("messages of %d living ranks did not arrive", at);
}

#endif
