#!/bin/sh
# The compiler wrappers as build systems probe them. Arguments: the folder of the wrappers, an empty folder to work in.
#
# SPDX-License-Identifier: Apache-2.0

bin=$(readlink -f "$1") work=$2
prefix=$(dirname "$bin")
include=$prefix/include lib=$prefix/lib
failed=0
unset FISHPLATE_CC FISHPLATE_CXX MPICH_CC MPICH_CXX
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 1

complain() {
    echo "$1"
    failed=1
}

# same WHAT WANTED FOUND
same() {
    [ "$2" = "$3" ] || complain "$1: expected '$2', found '$3'"
}

# has WHAT PART TEXT
has() {
    case $3 in
    *"$2"*) ;;
    *) complain "$1: '$2' is missing in '$3'" ;;
    esac
}

# lacks WHAT PART TEXT
lacks() {
    case $3 in
    *"$2"*) complain "$1: '$2' should not be in '$3'" ;;
    esac
}

queries() {
    wrapper=$bin/$1 option=$2
    has "$1 without a compiler" "there is no compiler 'no-such-compiler' in PATH" "$($wrapper "$option=no-such-compiler" a.c 2>&1)"
    same "$1 -showme:compile" "-I$include" "$($wrapper -showme:compile)"
    same "$1 -showme:link" "-L$lib -Wl,-rpath,$lib -lmpi_abi" "$($wrapper -showme:link)"
    same "$1 -showme:incdirs" "$include" "$($wrapper -showme:incdirs)"
    same "$1 -showme:libdirs" "$lib" "$($wrapper -showme:libdirs)"
    same "$1 -showme:libs" "mpi_abi" "$($wrapper -showme:libs)"
    has "$1 -showme:version" "Fishplate" "$($wrapper -showme:version)"
    has "$1 -show" " -I$include a.c -o a -L$lib" "$($wrapper -show a.c -o a)"
    same "$1 -showme" "$($wrapper -show)" "$($wrapper -showme)"
    for flag in -compile_info -compile-info; do
        has "$1 $flag" "-I$include" "$($wrapper $flag)"
        lacks "$1 $flag" "-lmpi" "$($wrapper $flag)"
    done
    for flag in -link_info -link-info; do
        has "$1 $flag" "-lmpi_abi" "$($wrapper $flag)"
        lacks "$1 $flag" "-I" "$($wrapper $flag)"
    done
    same "$1 $option=" "my-compiler -I$include -L$lib -Wl,-rpath,$lib -lmpi_abi" "$($wrapper -show $option=my-compiler)"
    lacks "$1 -c" "-lmpi_abi" "$($wrapper -show -c a.c)"
}

unsupported() {
    for flag in -showme:nonsense --showme:flags -showme:; do
        output=$("$bin/$1" $flag 2>&1) && complain "$1 $flag does not fail"
        lacks "$1 $flag" "-I" "$output"
        lacks "$1 $flag" "-l" "$output"
    done
    "$bin/$1" --no-such-option a.c 2>/dev/null && complain "$1 hides that the compiler failed"
    "$bin/$1" --version >/dev/null || complain "$1 --version fails"
}

queries mpicc -cc
queries mpicc_abi -cc
queries mpicxx -cxx
queries mpic++ -cxx
queries mpiCC -cxx
unsupported mpicc
unsupported mpicxx

same "FISHPLATE_CC" "mine" "$(FISHPLATE_CC=mine MPICH_CC=theirs "$bin/mpicc" -showme:command)"
same "MPICH_CC" "theirs" "$(MPICH_CC=theirs "$bin/mpicc" -showme:command)"
same "-cc= over FISHPLATE_CC" "this" "$(FISHPLATE_CC=mine "$bin/mpicc" -cc=this -showme:command)"
same "FISHPLATE_CXX" "mine" "$(FISHPLATE_CXX=mine "$bin/mpicxx" -showme:command)"
has "a compiler with options" "gcc -m64 -I" "$(FISHPLATE_CC='gcc -m64' "$bin/mpicc" -show -c a.c)"

# Compile, link, and run from another folder, through a symbolic link.
cat > 'a program.c' <<'END'
#include <mpi.h>
#include <stdio.h>
int main(void) { int v, s; MPI_Get_version(&v, &s); printf("%d.%d %s\n", v, s, GREETING); return 0; }
END
cp 'a program.c' program.cc
ln -s "$bin/mpicc" linked-mpicc
./linked-mpicc '-DGREETING="two words"' 'a program.c' -o c-program && same "the C program" "5.0 two words" "$(./c-program)" ||
    complain "mpicc cannot build a program"
"$bin/mpicxx" -DGREETING='""' -c program.cc && "$bin/mpicxx" program.o -o cxx-program && ./cxx-program >/dev/null ||
    complain "mpicxx cannot build a program"

# -Wmissing-mpi: reported when the program is linked; only an error removes the program.
cat > missing.c <<'END'
#include <mpi.h>
int MPI_Type_struct(int);
int main(void) { return MPI_Init(0, 0) || MPI_Type_struct(1); }
END
said=$("$bin/mpicc" -shared -fPIC -Wmissing-mpi missing.c -o missing 2>&1) || complain "-Wmissing-mpi fails: $said"
has "-Wmissing-mpi" "warning: missing calls MPI_Type_struct" "$said"
lacks "-Wmissing-mpi" "MPI_Init" "$said"
[ -x missing ] || complain "-Wmissing-mpi left no program"
"$bin/mpicc" -shared -fPIC -Werror=missing-mpi missing.c -omissing 2>/dev/null && complain "-Werror=missing-mpi does not fail"
[ ! -e missing ] || complain "-Werror=missing-mpi left the program"
same "-Wmissing-mpi with -c" "" "$("$bin/mpicc" -Wmissing-mpi -c missing.c 2>&1)"
same "-Wmissing-mpi with nothing missing" "" "$("$bin/mpicc" -Wmissing-mpi -DGREETING='""' 'a program.c' 2>&1)"

# pkg-config by the names that programs use; each must be Fishplate's, whatever is installed in /usr.
if command -v pkg-config >/dev/null; then
    names='mpi mpi-c mpi-cxx'
    [ ! -e "$bin/mpifort" ] || names="$names mpi-fort"
    export PKG_CONFIG_PATH="$lib/pkgconfig"
    for name in $names; do
        same "pkg-config $name" "$lib/pkgconfig" "$(readlink -f "$(pkg-config --variable=pcfiledir "$name")")"
        has "pkg-config --libs $name" "-lmpi_abi" "$(pkg-config --libs "$name")"
        has "pkg-config --cflags $name" "-I" "$(pkg-config --cflags "$name")"
    done
    [ ! -e "$bin/mpifort" ] || has "pkg-config --libs mpi-fort" "-lmpifort_abi" "$(pkg-config --libs mpi-fort)"
fi

# The installed tree may be moved.
mkdir moved && mkdir moved/bin && cp "$bin/mpicc" moved/bin && ln -s "$include" "$lib" moved
same "a moved tree" "$work/moved/include" "$(moved/bin/mpicc -showme:incdirs)"
same "a moved tree" "$work/moved/lib" "$(moved/bin/mpicc -showme:libdirs)"
exit $failed
