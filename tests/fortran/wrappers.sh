#!/bin/sh
# mpifort, mpif90 and mpif77 compile, link and answer questions. Arguments: the folder of the wrappers, of the tests, a
# folder to work in.
#
# SPDX-License-Identifier: Apache-2.0
bin=$1 tests=$2 work=$3
failed=0
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 1

check_wrapper() {
    "$@" >log 2>&1 || { echo "failed: $*"; cat log; failed=1; }
}

check_wrapper "$bin/mpifort" "$tests/f08_basic.f90" -o by-mpifort
check_wrapper "$bin/mpif90" "$tests/mpi_basic.f90" -o by-mpif90
check_wrapper "$bin/mpif77" "$tests/mpif_ring.f" -o by-mpif77
check_wrapper "$bin/mpif77" "$tests/mpif_types.f" -o by-mpif77-types
for program in by-mpifort by-mpif90 by-mpif77 by-mpif77-types; do
    check_wrapper "$bin/mpiexec" -n 2 ./$program
done
check_wrapper "$bin/mpifort" -c "$tests/mpi_basic.f90" -o object.o
case $("$bin/mpifort" -show x.f90) in
*"-I"*"x.f90"*"-lmpifort_abi"*"-lmpi_abi"*) ;;
*) echo "-show: $("$bin/mpifort" -show x.f90)"; failed=1 ;;
esac
[ "$(FISHPLATE_FC=other "$bin/mpif90" -showme:command)" = other ] || { echo "FISHPLATE_FC is ignored"; failed=1; }
[ "$(MPICH_FC=other "$bin/mpif90" -showme:command)" = other ] || { echo "MPICH_FC is ignored"; failed=1; }
[ "$("$bin/mpif77" -fc=other -showme:command)" = other ] || { echo "-fc= is ignored"; failed=1; }
if "$bin/mpifort" -showme:nonsense >log 2>/dev/null || [ -s log ]; then
    echo "an unknown request is answered"
    failed=1
fi
# flang of Debian 12 (flang-16) compiles programs with mpif.h. Its own runtime library is not on its path.
if command -v flang-new-16 >/dev/null; then
    for program in mpif_ring mpif_types; do
        check_wrapper env FISHPLATE_FC="flang-new-16 -L/usr/lib/llvm-16/lib" "$bin/mpifort" "$tests/$program.f" -o "flang-$program"
        check_wrapper "$bin/mpiexec" -n 2 "./flang-$program"
    done
fi
exit $failed
