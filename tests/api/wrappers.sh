#!/bin/sh
# The options of the compiler wrappers that build systems use. Arguments: the folder of the wrappers, an empty folder to work in.
#
# SPDX-License-Identifier: Apache-2.0

bin=$(readlink -f "$1") work=$2
prefix=$(dirname "$bin")
include=$prefix/include lib=$prefix/lib
failed=0
unset FISHPLATE_CC FISHPLATE_CXX MPICH_CC MPICH_CXX
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 1

report_failure() {
    echo "$1"
    failed=1
}

# expect_same NAME EXPECTED FOUND
expect_same() {
    [ "$2" = "$3" ] || report_failure "$1: expected '$2', found '$3'"
}

# expect_part NAME PART TEXT: the text contains the part.
expect_part() {
    case $3 in
    *"$2"*) ;;
    *) complain "$1: '$2' is missing in '$3'" ;;
    esac
}

# expect_no_part NAME PART TEXT: the text does not contain the part.
expect_no_part() {
    case $3 in
    *"$2"*) complain "$1: '$2' should not be in '$3'" ;;
    esac
}

check_queries() {
    wrapper=$bin/$1 option=$2
    expect_part "$1 without a compiler" "there is no compiler 'no-such-compiler' in PATH" "$($wrapper "$option=no-such-compiler" a.c 2>&1)"
    expect_same "$1 -showme:compile" "-I$include" "$($wrapper -showme:compile)"
    expect_same "$1 -showme:link" "-L$lib -Wl,-rpath,$lib -lmpi_abi" "$($wrapper -showme:link)"
    expect_same "$1 -showme:incdirs" "$include" "$($wrapper -showme:incdirs)"
    expect_same "$1 -showme:libdirs" "$lib" "$($wrapper -showme:libdirs)"
    expect_same "$1 -showme:libs" "mpi_abi" "$($wrapper -showme:libs)"
    expect_part "$1 -showme:version" "Fishplate" "$($wrapper -showme:version)"
    expect_part "$1 -show" " -I$include a.c -o a -L$lib" "$($wrapper -show a.c -o a)"
    expect_same "$1 -showme" "$($wrapper -show)" "$($wrapper -showme)"
    for flag in -compile_info -compile-info; do
        expect_part "$1 $flag" "-I$include" "$($wrapper $flag)"
        expect_no_part "$1 $flag" "-lmpi" "$($wrapper $flag)"
    done
    for flag in -link_info -link-info; do
        expect_part "$1 $flag" "-lmpi_abi" "$($wrapper $flag)"
        expect_no_part "$1 $flag" "-I" "$($wrapper $flag)"
    done
    expect_same "$1 $option=" "my-compiler -I$include -L$lib -Wl,-rpath,$lib -lmpi_abi" "$($wrapper -show $option=my-compiler)"
    expect_no_part "$1 -c" "-lmpi_abi" "$($wrapper -show -c a.c)"
}

expect_unsupported() {
    for flag in -showme:nonsense --showme:flags -showme:; do
        output=$("$bin/$1" $flag 2>&1) && report_failure "$1 $flag does not fail"
        expect_no_part "$1 $flag" "-I" "$output"
        expect_no_part "$1 $flag" "-l" "$output"
    done
    "$bin/$1" --no-such-option a.c 2>/dev/null && report_failure "$1 hides that the compiler failed"
    "$bin/$1" --version >/dev/null || report_failure "$1 --version fails"
}

check_queries mpicc -cc
check_queries mpicc_abi -cc
check_queries mpicxx -cxx
check_queries mpic++ -cxx
check_queries mpiCC -cxx
expect_unsupported mpicc
expect_unsupported mpicxx

expect_same "FISHPLATE_CC" "mine" "$(FISHPLATE_CC=mine MPICH_CC=theirs "$bin/mpicc" -showme:command)"
expect_same "MPICH_CC" "theirs" "$(MPICH_CC=theirs "$bin/mpicc" -showme:command)"
expect_same "-cc= over FISHPLATE_CC" "this" "$(FISHPLATE_CC=mine "$bin/mpicc" -cc=this -showme:command)"
expect_same "FISHPLATE_CXX" "mine" "$(FISHPLATE_CXX=mine "$bin/mpicxx" -showme:command)"
expect_part "a compiler with options" "gcc -m64 -I" "$(FISHPLATE_CC='gcc -m64' "$bin/mpicc" -show -c a.c)"

# Compile, link, and run from another folder, through a symbolic link.
cat > 'a program.c' <<'END'
#include <mpi.h>
#include <stdio.h>
int main(void) { int v, s; MPI_Get_version(&v, &s); printf("%d.%d %s\n", v, s, GREETING); return 0; }
END
cp 'a program.c' program.cc
ln -s "$bin/mpicc" linked-mpicc
./linked-mpicc '-DGREETING="two words"' 'a program.c' -o c-program && expect_same "the C program" "5.0 two words" "$(./c-program)" ||
    report_failure "mpicc cannot build a program"
"$bin/mpicxx" -DGREETING='""' -c program.cc && "$bin/mpicxx" program.o -o cxx-program && ./cxx-program >/dev/null ||
    report_failure "mpicxx cannot build a program"

# -Wmissing-mpi: reported when the program is linked; only an error removes the program.
cat > missing.c <<'END'
#include <mpi.h>
int MPI_Type_struct(int);
int main(void) { return MPI_Init(0, 0) || MPI_Type_struct(1); }
END
said=$("$bin/mpicc" -shared -fPIC -Wmissing-mpi missing.c -o missing 2>&1) || report_failure "-Wmissing-mpi fails: $said"
expect_part "-Wmissing-mpi" "warning: missing calls MPI_Type_struct" "$said"
expect_no_part "-Wmissing-mpi" "MPI_Init" "$said"
[ -x missing ] || report_failure "-Wmissing-mpi left no program"
"$bin/mpicc" -shared -fPIC -Werror=missing-mpi missing.c -omissing 2>/dev/null && report_failure "-Werror=missing-mpi does not fail"
[ ! -e missing ] || report_failure "-Werror=missing-mpi left the program"
expect_same "-Wmissing-mpi with -c" "" "$("$bin/mpicc" -Wmissing-mpi -c missing.c 2>&1)"
expect_same "-Wmissing-mpi with nothing missing" "" "$("$bin/mpicc" -Wmissing-mpi -DGREETING='""' 'a program.c' 2>&1)"

# pkg-config by the names that programs use: each must find Fishplate, also if other MPI libraries are installed in /usr.
if command -v pkg-config >/dev/null; then
    names='mpi mpi-c mpi-cxx'
    [ ! -e "$bin/mpifort" ] || names="$names mpi-fort"
    export PKG_CONFIG_PATH="$lib/pkgconfig"
    for name in $names; do
        expect_same "pkg-config $name" "$lib/pkgconfig" "$(readlink -f "$(pkg-config --variable=pcfiledir "$name")")"
        expect_part "pkg-config --libs $name" "-lmpi_abi" "$(pkg-config --libs "$name")"
        expect_part "pkg-config --cflags $name" "-I" "$(pkg-config --cflags "$name")"
    done
    [ ! -e "$bin/mpifort" ] || expect_part "pkg-config --libs mpi-fort" "-lmpifort_abi" "$(pkg-config --libs mpi-fort)"
fi

# The installed tree may be moved.
mkdir moved && mkdir moved/bin && cp "$bin/mpicc" moved/bin && ln -s "$include" "$lib" moved
expect_same "a moved tree" "$work/moved/include" "$(moved/bin/mpicc -showme:incdirs)"
expect_same "a moved tree" "$work/moved/lib" "$(moved/bin/mpicc -showme:libdirs)"
exit $failed
