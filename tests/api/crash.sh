#!/bin/sh
# The report of a rank that crashes. Arguments: mpiexec, the program built from crash.c.
#
# SPDX-License-Identifier: Apache-2.0
mpiexec=$1 program=$2
failed=0

report_failure() {
    echo "$1"
    failed=1
}

# expect_crash_report HOW STATUS PATTERN...: rank 1 ends the job with this status, and standard error contains each pattern.
expect_crash_report() {
    how=$1 wanted=$2
    shift 2
    said=$("$mpiexec" -n 2 "$program" "$how" 2>&1)
    status=$?
    [ $status -eq "$wanted" ] || report_failure "$how: status $status, expected $wanted"
    for pattern in "$@"; do
        printf '%s\n' "$said" | grep -Eq -- "$pattern" || report_failure "$how: no line matches '$pattern' in: $said"
    done
}

stack='main|crash'
expect_crash_report send 139 'rank 1 on .*SIGSEGV at address 0x123[0-9a-f]*: nothing is mapped' \
    'It was in MPI_Send\(buf=0x123000, count=100, datatype=MPI_INT, dest=0, tag=77, comm=MPI_COMM_WORLD\)' "$stack"
expect_crash_report recv 139 'MPI_Recv\(buf=0x123000, count=1, datatype=MPI_INT, source=0, tag=3, comm=MPI_COMM_WORLD, status='
expect_crash_report reduce 139 'MPI_Allreduce\(sendbuf=0x123000, recvbuf=0x[0-9a-f]*, count=1, datatype=MPI_INT, op='
expect_crash_report wait 139 'rank 1 .*SIGSEGV.* It was in MPI_'
expect_crash_report outside 139 'SIGSEGV at address 0x123000' 'It was not in an MPI call' "$stack"
expect_crash_report abort 134 'SIGABRT, raised by the program' "$stack"
expect_crash_report divide 136 'SIGFPE'
expect_crash_report deep 139 'rank 1 .*SIGSEGV'
# With debug information the call stack has lines.
! command -v addr2line >/dev/null || expect_crash_report outside 139 '#0 .* at crash\.c:[0-9]+'
# A signal handler of the program is called instead of the library's report.
expect_crash_report handler 42 "the program's own handler"
case $said in *"call stack"*) complain "handler: a note was written: $said" ;; esac
# The report can be switched off.
said=$(FISHPLATE_CRASH_NOTE=0 "$mpiexec" -n 2 "$program" outside 2>&1)
case $said in *"call stack"*) complain "FISHPLATE_CRASH_NOTE=0: a note was written: $said" ;; esac
exit $failed
