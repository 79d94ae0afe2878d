#!/bin/sh
# targets.sh BIN: `make test TESTS=PATTERN` builds only the programs of these tests and the installed files.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"
build=$(dirname "$BIN")
if [ ! -f "$build/build.ninja" ]; then
    echo "not tried: $build is not built by Ninja"
    exit 77
fi

# targets PATTERN: prints the targets, one per line.
targets() {
    "$SOURCE/tools/test-targets" "$build" "$1" | tr ' ' '\n' >"$scratch/targets"
}

# A program by itself, one that mpiexec runs, and those that a script is given.
targets '^(unit/net/test_wait|mpi/p2p/modes/2|ib/port)$'
for name in --target bin/mpiexec lib/libmpi_abi.so.1 tests/unit/unit_net_test_wait tests/mpi/mpi_p2p_modes tests/ib/ib_fault; do
    expect_line "$scratch/targets" "^$name$"
done
if grep -q '^tests/mpi/mpi_p2p_order$\|^tests/unit/unit_net_test_cma$' "$scratch/targets"; then
    fail "programs of other tests are built: $(cat "$scratch/targets")"
fi
# A script that is given a folder of programs runs any of them; one that is given the whole build, anything.
targets '^launcher/status$'
expect_line "$scratch/targets" '^tests/mpi/mpi_p2p_order$'
for pattern in '^soak/short$' '^(soak/short|unit/net/test_wait)$' .; do
    targets "$pattern"
    [ ! -s "$scratch/targets" ] || fail "$pattern: not everything is built: $(cat "$scratch/targets")"
done
