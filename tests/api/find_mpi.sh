#!/bin/sh
# A user's project builds and runs through CMake's FindMPI, through the Fishplate package, and through pkg-config.
# Arguments: the prefix (build tree or installation), the sample's folder, an empty folder, cmake.
#
# SPDX-License-Identifier: Apache-2.0

prefix=$1 sample=$2 work=$3 cmake=$4
failed=0
rm -rf "$work" && mkdir -p "$work" || exit 1

# expect_fishplate PROGRAM: it must run with our library
expect_fishplate() {
    case $("$1") in
    Fishplate*) ;;
    *) echo "$1 did not run with Fishplate"; failed=1 ;;
    esac
}

build_sample() {
    "$cmake" -S "$sample" -B "$work/$1" "-D$2" "-D$3" >"$work/$1.log" 2>&1 && "$cmake" --build "$work/$1" >>"$work/$1.log" 2>&1 && return
    cat "$work/$1.log"
    failed=1
}

PATH=$prefix/bin:$PATH
build_sample findmpi "MPI_HOME=$prefix" "USE_PACKAGE=OFF"
expect_fishplate "$work/findmpi/sample_c"
expect_fishplate "$work/findmpi/sample_cxx"
build_sample package "CMAKE_PREFIX_PATH=$prefix" "USE_PACKAGE=ON"
expect_fishplate "$work/package/sample_c"

if command -v pkg-config >/dev/null; then
    PKG_CONFIG_PATH=$(dirname "$(find "$prefix"/lib* -name fishplate.pc | head -n 1)")
    export PKG_CONFIG_PATH
    # shellcheck disable=SC2046 # several flags
    cc "$sample/sample.c" $(pkg-config --cflags --libs mpi-c) -o "$work/by-pkg-config" && expect_fishplate "$work/by-pkg-config" || failed=1
fi
exit $failed
