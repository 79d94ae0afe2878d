# A program built with MPICH runs under our mpiexec, on one host and on two.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
command -v mpicc.mpich >/dev/null || skip "mpicc.mpich (package libmpich-dev) is not installed"
make_local_shell
cat >"$T/sum.c" <<'END'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("%d\n", sum);
    MPI_Finalize();
    return 0;
}
END
mpicc.mpich "$T/sum.c" -o "$T/sum" 2>"$T/err" || skip "mpicc.mpich does not work here"
run_mpiexec -n 3 "$T/sum"
expect_rc 0
expect_out 3 3 3
run_mpiexec -n 2 -launcher-exec "$T/shell" -hosts a,b "$T/sum"
expect_rc 0
expect_out 1 1
finish_test
