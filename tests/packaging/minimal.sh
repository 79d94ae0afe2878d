#!/bin/sh
# minimal.sh BIN: builds without any optional part and without libibverbs, and runs a job. Compiles without optimisation, to save
# time.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

log=$scratch/log
# On a machine without rdma-core the default configuration must fail with the reason.
if cmake -S "$SOURCE" -B "$scratch/stops" -DCMAKE_IGNORE_PATH="/usr/include;/usr/local/include" -DFISHPLATE_FORTRAN=OFF >"$log" 2>&1; then
    fail "configured with InfiniBand, but without libibverbs"
fi
expect_line "$log" 'apt-get install libibverbs-dev'
expect_line "$log" 'DFISHPLATE_IB=OFF -DFISHPLATE_SOFTIB=OFF'

cmake -S "$SOURCE" -B "$scratch/build" -DCMAKE_BUILD_TYPE=Debug -DFISHPLATE_IB=OFF -DFISHPLATE_SOFTIB=OFF -DFISHPLATE_FORTRAN=OFF \
    -DFISHPLATE_TOOLS=OFF -DFISHPLATE_EXAMPLES=OFF -DBUILD_TESTING=OFF >"$log" 2>&1 &&
    cmake --build "$scratch/build" --parallel 2 >"$log" 2>&1 || {
    tail -n 40 "$log"
    fail "the smallest configuration does not build"
}
! grep 'warning: ' "$log" || fail "the build prints warnings"
cmake --install "$scratch/build" --prefix "$scratch/prefix" >"$log"
run_ring "$scratch/prefix"
for left_out in bin/fishplate bin/softib bin/mpifort lib/softib lib/libmpifort.so; do
    [ ! -e "$scratch/prefix/$left_out" ] || fail "$left_out is there, although it was left out"
done
