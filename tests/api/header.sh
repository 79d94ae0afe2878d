#!/bin/sh
# mpi.h compiles alone, without a warning, in every dialect of C and C++ that users have. Arguments: folder of mpi.h,
# C compiler, C++ compiler.
#
# SPDX-License-Identifier: Apache-2.0

include=$1 cc=$2 cxx=$3
flags="-Wall -Wextra -pedantic -Werror -Wstrict-aliasing -fsyntax-only -I$include"
failed=0

expect_compiles() {
    printf '#include <mpi.h>\n%s\n' "$3" | $1 -x "$2" $flags $4 - && return
    echo "failed: $1 $4"
    failed=1
}

for std in c99 c11 c17; do
    expect_compiles "$cc" c 'int main(void) { MPI_Status s; return MPI_Send(&s, 1, MPI_INT, 0, 0, MPI_COMM_WORLD); }' \
        "-std=$std -Wstrict-prototypes -Wmissing-prototypes"
done
for std in c++11 c++17 c++20; do
    expect_compiles "$cxx" c++ 'static MPI_Comm c = MPI_COMM_SELF; int main() { return MPI_Comm_free(&c); }' "-std=$std"
done
# Included twice, and before and after the headers of the C library.
expect_compiles "$cc" c '#include <mpi.h>' -std=c11
expect_compiles "$cc" c '#include <stdio.h>' -std=c11
exit $failed
