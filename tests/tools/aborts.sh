#!/bin/sh
# aborts.sh BIN: every fatal error ends all ranks of the job, with the right status and a message that gives the reason; and
# mpiexec -initial-errhandler.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
program=$BIN/../tests/mpi/mpi_obj_aborts

# expect_end RANKS FAILURE STATUS PATTERN...: a job that ends by this failure has this status and prints lines with these patterns.
expect_end() {
    status=0
    "$BIN/mpiexec" -n "$1" -timeout 60 "$program" "$2" >"$scratch/out" 2>&1 || status=$?
    [ "$status" = "$3" ] || {
        cat "$scratch/out"
        fail "$2 with $1 ranks ended with status $status, not $3"
    }
    shift 3
    for pattern in "$@"; do
        expect_line "$scratch/out" "$pattern"
    done
    if grep -q 'no other error class' "$scratch/out"; then
        fail "$(cat "$scratch/out")"
    fi
}

# print_error_class NAME: prints the number of an error class.
print_error_class() {
    grep -Eo "define $1 +\(?[0-9]+" "$BIN/../include/mpi.h" | grep -Eo '[0-9]+$'
}

for ranks in 1 3; do
    expect_end $ranks world 7 'MPI_Abort was called on MPI_COMM_WORLD with error code 7'
    expect_end $ranks self 8 'MPI_Abort was called on MPI_COMM_SELF with error code 8'
    expect_end $ranks part 9 'MPI_Abort was called on .*the last.* with error code 9'
done
# The message: first the cause, then the call and the communicator, then the reason why the job ends.
expect_end 3 errors "$(print_error_class MPI_ERR_RANK)" '^mpiexec: Rank . .* code 6: dest is 99; .*\(MPI_ERR_RANK: .*\)\.$' \
    '^    MPI_Send failed on .*the last.*\.$' '^    The error handler in force is MPI_ERRORS_ABORT'
expect_end 3 fatal "$(print_error_class MPI_ERR_COUNT)" 'MPI_Send failed on .*the last' 'MPI_ERRORS_ARE_FATAL'
expect_end 3 called "$(print_error_class MPI_ERR_IO)" 'MPI_Comm_call_errhandler failed on .*the last'
expect_end 3 session "$(print_error_class MPI_ERR_ARG)" 'MPI_Group_from_session_pset failed' 'MPI_ERRORS_ABORT'
expect_end 3 alone "$(print_error_class MPI_ERR_ARG)" 'MPI_Group_from_session_pset failed' 'MPI_ERRORS_ABORT'

# With debug information the message contains the line of the caller.
if command -v addr2line >/dev/null; then
    # The program is not linked with a sanitizer's library, but the MPI library may be.
    export ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0"
    cat >"$scratch/wrong.c" <<'END'
#include <mpi.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc > 1)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Send(&argc, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
    return MPI_Finalize();
}
END
    "$BIN/mpicc" -g -O0 "$scratch/wrong.c" -o "$scratch/wrong"
    "$BIN/mpiexec" -n 1 "$scratch/wrong" >"$scratch/out" 2>&1 || true
    expect_line "$scratch/out" 'MPI_Send failed on MPI_COMM_WORLD \(rank 0 of 1\), called by main at wrong.c:7'
    "$BIN/mpiexec" -n 1 "$scratch/wrong" abort >"$scratch/out" 2>&1 || true
    expect_line "$scratch/out" 'MPI_Abort was called on MPI_COMM_WORLD with error code 3, called by main at wrong.c:6'
fi

# The launcher's option sets the variable, and refuses unknown values.
for name in mpi_errors_are_fatal mpi_errors_abort mpi_errors_return; do
    "$BIN/mpiexec" -n 2 -initial-errhandler $name "$program" || fail "-initial-errhandler $name"
done
if "$BIN/mpiexec" -n 1 -initial-errhandler mpi_errors_ignore "$program" 2>"$scratch/out"; then
    fail "an unknown error handler was accepted"
fi
expect_line "$scratch/out" 'mpi_errors_return'
