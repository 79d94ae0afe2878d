#!/bin/sh
# A quota: a collective write that goes beyond it fails at every rank with MPI_ERR_QUOTA. The file system is a btrfs on a loop
# device in a mount namespace of its own, whose quota also applies to root. If the file system cannot be created, the test is skipped.
# Arguments: mpiexec, the program.
#
# SPDX-License-Identifier: Apache-2.0
set -u
mpiexec=$1
program=$2
skip() { echo "$1: skipped"; exit 77; }
if [ "${3:-}" != inside ]; then
    command -v mkfs.btrfs >/dev/null || skip "no btrfs-progs here"
    unshare -m true 2>/dev/null || skip "no mount namespaces here"
    exec unshare -m "$0" "$mpiexec" "$program" inside
fi
folder=$(mktemp -d) || exit 1
trap 'umount "$folder/disk" 2>/dev/null; rm -rf "$folder"' EXIT
mkdir "$folder/disk"
truncate -s 128M "$folder/image"
mkfs.btrfs -q "$folder/image" >/dev/null 2>&1 || skip "mkfs.btrfs does not work here"
mount -o loop "$folder/image" "$folder/disk" 2>/dev/null || skip "no loop device or no btrfs here"
btrfs quota enable "$folder/disk" 2>/dev/null || skip "no quotas here"
failures=0
for cb in enable disable; do
    btrfs subvolume create "$folder/disk/$cb" >/dev/null || exit 1
    btrfs qgroup limit 256K "$folder/disk/$cb" || skip "no quota group here"
    "$mpiexec" -n 3 "$program" quota "$folder/disk/$cb/file" $cb || { echo "quota, $cb: exit status $?, expected 0"; failures=1; }
done
exit $failures
