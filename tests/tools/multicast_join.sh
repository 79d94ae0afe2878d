#!/bin/sh
# multicast_join.sh: jobs on a network whose multicast groups are joined through librdmacm. Without that library one line reports it and
# broadcasts use messages; with a substitute library that grants groups broadcasts use multicast.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
program=$BIN/../tests/mpi/mpi_ib_multicast_join
stand_in=$BIN/../tests/unit/rdmacm
export SOFTIB_FABRIC=sm=1 FISHPLATE_VERBS=softib
path=${LD_LIBRARY_PATH:-}

# The loader finds this file, which is not a library, before the installed librdmacm.
mkdir "$scratch/none"
: >"$scratch/none/librdmacm.so.1"
FISHPLATE_COLL=bcast=multicast LD_LIBRARY_PATH=$scratch/none:$path "$BIN/mpiexec" -n 6 -vnodes 3 "$program" >"$scratch/out" 2>&1 ||
    fail "without librdmacm: $(cat "$scratch/out")"
expect_line "$scratch/out" 'instead of multicast: .*need librdmacm\.so\.1, which is not installed'
[ "$(grep -c 'librdmacm' "$scratch/out")" = 1 ] || fail "said more than once: $(cat "$scratch/out")"

# There is no warning if the network refuses multicast and the user has not requested it.
LD_LIBRARY_PATH=$scratch/none:$path FISHPLATE_COLL_TRY=100 "$BIN/mpiexec" -n 3 -vnodes 3 "$BIN/fishplate" info --coll >"$scratch/out" 2>&1
expect_line "$scratch/out" 'bcast of 1024 bytes, 3 ranks on 3 nodes: '
! grep -q ' multicast [0-9]' "$scratch/out" || fail "multicast was measured: $(cat "$scratch/out")"
! grep -q librdmacm "$scratch/out" || fail "it was not needed: $(grep librdmacm "$scratch/out")"

[ -e "$stand_in/librdmacm.so.1" ] || fail "the stand-in for librdmacm is not there"
FISHPLATE_COLL=bcast=multicast LD_LIBRARY_PATH=$stand_in:$path "$BIN/mpiexec" -n 6 -vnodes 3 "$program" joined >"$scratch/out" 2>&1 ||
    fail "with the stand-in: $(cat "$scratch/out")"
