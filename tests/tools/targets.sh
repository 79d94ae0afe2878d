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

# print_targets PATTERN: prints the targets, one per line.
print_targets() {
    "$SOURCE/tools/test-targets" "$build" "$1" | tr ' ' '\n' >"$scratch/targets"
}

# A program that ctest runs, a program that mpiexec runs, and programs that are arguments of a script.
print_targets '^(unit/net/test_wait|mpi/p2p/modes/2|ib/port)$'
for name in --target bin/mpiexec lib/libmpi_abi.so.1 tests/unit/unit_net_test_wait tests/mpi/mpi_p2p_modes tests/ib/ib_fault; do
    expect_line "$scratch/targets" "^$name$"
done
if grep -q '^tests/mpi/mpi_p2p_order$\|^tests/unit/unit_net_test_cma$' "$scratch/targets"; then
    fail "programs of other tests are built: $(cat "$scratch/targets")"
fi
# A script whose argument is a folder needs all programs of the folder; a script whose argument is the build folder needs all targets.
print_targets '^launcher/status$'
expect_line "$scratch/targets" '^tests/mpi/mpi_p2p_order$'
for pattern in '^soak/short$' '^(soak/short|unit/net/test_wait)$' .; do
    print_targets "$pattern"
    [ ! -s "$scratch/targets" ] || fail "$pattern: not everything is built: $(cat "$scratch/targets")"
done
