# Programs that were not linked by this mpicc and have no path to the library find it under mpiexec; others keep their own library.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
command -v cc >/dev/null || skip "there is no C compiler"
unset LD_LIBRARY_PATH
build=$(dirname "$(dirname "$MPIEXEC")")
[ -z "${SANITIZED:-}" ] || skip "a sanitizer's library cannot be linked by cc alone"
cat >"$T/prog.c" <<'END'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    int size;
    const char *path = getenv("LD_LIBRARY_PATH");
    MPI_Init(NULL, NULL);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("size %d path %s\n", size, path ? path : "none");
    return MPI_Finalize();
}
END
compile_program() {
    name=$1
    shift
    cc -I"$build/include" "$T/prog.c" -o "$T/$name" -L"$build/lib" -lmpi_abi "$@" || fail "cc failed"
}

compile_program plain
run_mpiexec -n 2 "$T/plain"
expect_rc 0
expect_out "size 2 path $build/lib" "size 2 path $build/lib"
run_mpiexec -env LD_LIBRARY_PATH /nowhere -n 1 "$T/plain"
expect_rc 0
expect_out "size 1 path /nowhere:$build/lib"
make_local_shell
run_mpiexec -launcher-exec "$T/shell" -hosts a:1,b:1 -n 2 "$T/plain"
expect_rc 0

# A script that starts such a program.
run_mpiexec -n 1 sh -c "'$T/plain'"
expect_rc 0

# Programs that find a library without mpiexec.
compile_program own "-Wl,--enable-new-dtags,-rpath,$build/lib"
run_mpiexec -n 1 "$T/own"
expect_out "size 1 path none"
mkdir "$T/lib"
ln -s "$build/lib/libmpi_abi.so.1" "$T/lib/"
compile_program near '-Wl,--enable-new-dtags,-rpath,/nowhere:$ORIGIN/lib'
run_mpiexec -n 1 "$T/near"
expect_out "size 1 path none"
run_mpiexec -env LD_LIBRARY_PATH "$T/lib" -n 1 "$T/plain"
expect_out "size 1 path $T/lib"

if command -v python3 >/dev/null; then
    run_mpiexec -n 2 python3 -c 'import ctypes; mpi = ctypes.CDLL("libmpi_abi.so.1"); mpi.MPI_Init(None, None); mpi.MPI_Finalize(); print("ok")'
    expect_rc 0
    expect_out ok ok
fi
finish_test
