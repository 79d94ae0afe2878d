#!/bin/sh
# A program that calls MPI before MPI_Init or after MPI_Finalize, or causes an error without a handler, prints one
# error message and fails. Argument: the program built from outside.c.
#
# SPDX-License-Identifier: Apache-2.0

program=$1
failed=0

expect_message() {
    output=$("$program" "$1" 2>&1)
    status=$?
    case $output in
    *"$2"*) ;;
    *) echo "$1: expected '$2', found '$output'"; failed=1 ;;
    esac
    [ $status -ne 0 ] || { echo "$1: the program did not fail"; failed=1; }
    [ $status -lt 128 ] || { echo "$1: the program died of a signal ($status)"; failed=1; }
}

expect_message before "MPI_Send was called before MPI_Init"
expect_message finalize "MPI_Finalize was called before MPI_Init"
expect_message after "MPI_Comm_size was called after MPI_Finalize"
expect_message twice "MPI_Finalize was called a second time"
if command -v addr2line >/dev/null; then
    for mistake in before finalize after twice; do
        expect_message $mistake ", called by main at outside.c:"
    done
fi
expect_message fatal "count is -1"
"$program" well || { echo "the correct program fails"; failed=1; }
exit $failed
