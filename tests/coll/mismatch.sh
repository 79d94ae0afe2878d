#!/bin/sh
# Mismatched collective calls end the job: by default only mismatches that the library detects without additional messages, with
# FISHPLATE_DEBUG=coll all mismatches, with operation, count, type and root of both sides. Matching calls continue.   usage: mismatch.sh mpiexec program
# SPDX-License-Identifier: Apache-2.0
mpiexec=$1
program=$2
failed=0
nodes=
coll=

expect_mismatch() { # number of the mistake in mismatch.c, text that must be in the message
    FISHPLATE_COLL=$coll FISHPLATE_DEBUG=$debug "$mpiexec" $nodes -n 3 -timeout 30 "$program" "$1" >mismatch.out 2>&1
    status=$?
    shift
    if [ $status -eq 0 ]; then
        echo "mismatch was not noticed: $*"
        failed=1
    fi
    if [ $status -ne 16 ]; then # MPI_ERR_OTHER
        echo "mismatch ended with status $status"
        cat mismatch.out
        failed=1
    fi
    # The source line of the rank that reports; FISHPLATE_DEBUG=coll knows both lines.
    if command -v addr2line >/dev/null && [ "$(grep -o 'mismatch\.c:[0-9]' mismatch.out | wc -l)" -lt "$places" ]; then
        echo "source lines are missing in:"
        cat mismatch.out
        failed=1
    fi
    for word in "$@"; do
        if ! grep -qi -- "$word" mismatch.out; then
            echo "expected '$word' in:"
            cat mismatch.out
            failed=1
        fi
    done
}

# The mismatch is detected by the flags in shared memory or by a rank before it sleeps, whichever is first.
debug=
places=1
expect_mismatch 0 'do not match' 'bcast' 'barrier' FISHPLATE_DEBUG
expect_mismatch 1 'do not match' 'root 0' 'root 1'
expect_mismatch 2 'do not match' 'called MPI_Allreduce (16 bytes)' 'called MPI_Allreduce (24 bytes)'
expect_mismatch 4 'do not match' 'bcast' 'reduce' 'root 0'
expect_mismatch 5 'do not match' 'gather' 'allgather'
expect_mismatch 6 'do not match' 'MPI_Scan' 'MPI_Allreduce'
expect_mismatch 7 'do not match' 'MPI_Bcast with root 0' 'MPI_Reduce with root 0'
expect_mismatch 9 'do not match' 'gather' 'bcast'
expect_mismatch 10 'do not match' 'MPI_Ibcast with root 0' 'MPI_Iallreduce'
# Between nodes the tags of messages reveal the mismatch.
nodes='-vnodes 3'
expect_mismatch 0 'do not match' 'MPI_Bcast with root 0' 'MPI_Barrier' FISHPLATE_DEBUG
expect_mismatch 1 'do not match' 'root 0' 'root 1'
expect_mismatch 4 'do not match' 'MPI_Bcast with root 0' 'MPI_Reduce with root 0'
expect_mismatch 5 'do not match' 'MPI_Gather with root 0' 'MPI_Allgather'
expect_mismatch 6 'do not match' 'MPI_Scan' 'MPI_Allreduce'
expect_mismatch 7 'do not match' 'MPI_Bcast with root 0' 'MPI_Reduce with root 0'
expect_mismatch 10 'do not match' 'MPI_Ibcast with root 0' 'MPI_Iallreduce'
# Without messages to compare, ranks that have waited for a second query the ranks that they wait for.
expect_mismatch 9 'do not match' 'MPI_Gather with root 0' 'MPI_Bcast with root 0'
expect_mismatch 11 'do not match' 'MPI_Reduce with root 0' 'MPI_Bcast with root 0'
expect_mismatch 12 'do not match' 'MPI_Ibcast with root 0, and rank 0 called MPI_Finalize without it'
expect_mismatch 13 'do not match' 'called MPI_Allreduce and waits' 'called MPI_Iallreduce and waits'
expect_mismatch 14 'do not match' 'MPI_Allreduce, and rank 0 called MPI_Finalize without it'
if ! "$mpiexec" $nodes -n 3 -timeout 60 "$program" 15 >mismatch.out 2>&1; then
    echo "a late rank was stopped:"
    cat mismatch.out
    failed=1
fi
nodes=

debug=coll
places=2
expect_mismatch 0 'do not match' 'calls MPI_Bcast with 4 x MPI_INT (16 bytes), root 0' 'calls MPI_Barrier'
expect_mismatch 1 'do not match' 'root 0' 'root 1'
expect_mismatch 2 'do not match' '4 x MPI_INT (16 bytes)' '3 x MPI_DOUBLE (24 bytes)'
expect_mismatch 3 'do not match' 'operator MPI_MAX' 'operator MPI_SUM'
expect_mismatch 4 'do not match' 'calls MPI_Bcast' 'calls MPI_Reduce'
expect_mismatch 5 'do not match' 'calls MPI_Gather' 'calls MPI_Allgather'
expect_mismatch 6 'do not match' 'calls MPI_Scan' 'calls MPI_Allreduce'
nodes='-vnodes 3'
expect_mismatch 9 'do not match' 'calls MPI_Gather with 1 x MPI_INT (4 bytes), root 0' 'calls MPI_Bcast'
# The same with barriers by RDMA writes and in the switch.
for coll in barrier=rdma barrier=switch; do
    for nodes in '' '-vnodes 2' '-vnodes 3'; do
        expect_mismatch 0 'do not match' 'calls MPI_Bcast with 4 x MPI_INT (16 bytes), root 0' 'calls MPI_Barrier'
    done
done
coll=
nodes=
if ! FISHPLATE_DEBUG=coll "$mpiexec" -n 3 -timeout 30 "$program" 99 >mismatch.out 2>&1; then
    echo "calls that match were stopped:"
    cat mismatch.out
    failed=1
fi
# Blocking and nonblocking calls in different orders: only the full check reports them, and the job continues.
for nodes in '' '-vnodes 3'; do
    for debug in '' coll; do
        if ! FISHPLATE_DEBUG=$debug "$mpiexec" $nodes -n 3 -timeout 30 "$program" 8 >mismatch.out 2>&1; then
            echo "calls in different orders were stopped:"
            cat mismatch.out
            failed=1
        fi
        if [ -n "$debug" ] && ! grep -q 'order of collective calls differs on MPI_COMM_WORLD: call [45] of rank [0-2] is MPI_' mismatch.out; then
            echo "different orders were not reported:"
            cat mismatch.out
            failed=1
        fi
    done
done
rm -f mismatch.out
exit $failed
