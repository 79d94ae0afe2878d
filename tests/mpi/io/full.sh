#!/bin/sh
# A full file system: a collective write fails at every rank with MPI_ERR_NO_SPACE, and after a rank was killed in the middle of
# a collective write every byte of the file has its old value or the value that a rank wrote. The file system
# is a tmpfs in a mount namespace of its own; without the right to create one the test is skipped.
# Arguments: mpiexec, the program.
#
# SPDX-License-Identifier: Apache-2.0
set -u
mpiexec=$1
program=$2
if [ "${3:-}" != inside ]; then
    unshare -m true 2>/dev/null || { echo "no mount namespaces here: skipped"; exit 77; }
    exec unshare -m "$0" "$mpiexec" "$program" inside
fi
folder=$(mktemp -d) || exit 1
trap 'umount "$folder" 2>/dev/null; rmdir "$folder"' EXIT
mount -t tmpfs -o size=256k tmpfs "$folder" || { echo "no tmpfs here: skipped"; exit 77; }
failures=0
for cb in enable disable; do
    "$mpiexec" -n 3 "$program" full "$folder/file" $cb || { echo "full file system, $cb: exit status $?, expected 0"; failures=1; }
    rm -f "$folder/file"
    for call in 0 1 2 3; do
        [ $cb$call = enable0 ] && continue # aggregators do not use mappings
        "$mpiexec" -n 3 "$program" kill "$folder/file" $cb $call >"$folder/output" 2>&1 && { echo "rank 0 killed in call $call, $cb: exit status 0, expected a failure"; failures=1; }
        "$mpiexec" -n 3 "$program" check "$folder/file" $cb || { echo "rank 0 killed in call $call, $cb: wrong bytes in the file"; failures=1; }
        rm -f "$folder/file"
    done
    left=$(find "$folder" -mindepth 1 ! -name output)
    [ -z "$left" ] || { echo "files that were not removed: $left"; failures=1; }
done
exit $failures
