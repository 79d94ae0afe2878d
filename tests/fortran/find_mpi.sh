#!/bin/sh
# A user's Fortran project builds and runs through CMake's FindMPI. Arguments: the prefix (build tree or installation), the
# sample's folder, a folder to work in, cmake.
#
# SPDX-License-Identifier: Apache-2.0
prefix=$1 sample=$2 work=$3 cmake=$4
rm -rf "$work" && mkdir -p "$work" || exit 1
PATH=$prefix/bin:$PATH
{ "$cmake" -S "$sample" -B "$work" "-DMPI_HOME=$prefix" && "$cmake" --build "$work"; } >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
for way in mpif mpi f08; do
    case $("$work/sample_$way") in
    *Fishplate*) ;;
    *) echo "sample_$way did not run with Fishplate"; exit 1 ;;
    esac
done
