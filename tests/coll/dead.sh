#!/bin/sh
# A rank that dies in a barrier ends the job, and mpiexec names the rank: for barriers by flags in shared memory, messages, RDMA writes,
# the switch, and multicast. The same for broadcasts by multicast: the dead rank is a receiver, a co-root, or the root.
# usage: dead.sh mpiexec program nodes(ON|OFF)
# SPDX-License-Identifier: Apache-2.0
mpiexec=$1
program=$2
failed=0
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

expect_death() { # FISHPLATE_COLL, options of mpiexec, arguments of the program
    FISHPLATE_COLL=$1 "$mpiexec" $2 -n 4 -timeout 60 "$program" $3 >"$out" 2>&1
    status=$?
    if [ $status -ne 137 ] || ! grep -q 'Rank 3 on host .* was killed by signal 9' "$out"; then
        echo "FISHPLATE_COLL=$1 mpiexec $2, $3: status $status, expected 137 and the name of rank 3:"
        cat "$out"
        failed=1
    fi
}

expect_death '' '' 'blocking coll_shared'
expect_death '' '' 'nonblocking'
expect_death barrier=dissemination '' 'blocking coll_steps'
if [ "$3" = ON ]; then
    for kind in blocking nonblocking; do
        expect_death barrier=dissemination '-vnodes 4' "$kind coll_steps"
        expect_death barrier=rdma '-vnodes 4' "$kind coll_barrier_rdma"
        expect_death barrier=switch '-vnodes 4' "$kind coll_barrier_switch"
        expect_death barrier=wires '-vnodes 4 -hcas 1,hub=1' "$kind coll_barrier_wires"
        expect_death barrier=node+tournament '-vnodes 2' "$kind coll_barrier_by_node"
        expect_death barrier=rdma '-vnodes 2' "$kind coll_barrier_by_node"
    done
    expect_death barrier=multicast '-vnodes 4' 'blocking coll_barrier_multicast'
    expect_death bcast=multicast '-vnodes 4' 'bcast coll_bcast_multicast'
    expect_death bcast=multicast:coroots=2:aggregate=10 '-vnodes 4' 'bcast coll_bcast_multicast'
    expect_death bcast=multicast '-vnodes 4' 'bcast_root coll_bcast_multicast'
    expect_death bcast=multicast:coroots=2:aggregate=10 '-vnodes 4' 'bcast_root coll_bcast_multicast'
fi
exit $failed
