#!/bin/sh
# npb.sh BIN: `fishplate-lab kernels --npb` builds the NAS suite with our mpifort and mpicc and compares its figures with ours. The suite
# cannot be part of this repository. A small tree with the same layout replaces the suite: a Fortran program that verifies, a C program
# that does not verify, and a program that does not build. The programs print the same lines as those of the suite.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../../../tests/tools/lib.sh"

suite=$scratch/suite/NPB9.9-MPI
mkdir -p "$suite/config" "$suite/sys" "$suite/EP" "$suite/IS" "$suite/CG"
cat >"$suite/Makefile" <<'EOF'
# Names of kernels in either case, as in the suite; each folder builds one program.
ep: ; cd EP && $(MAKE) CLASS=$(CLASS) NPROCS=$(NPROCS)
is: ; cd IS && $(MAKE) CLASS=$(CLASS) NPROCS=$(NPROCS)
cg: ; cd CG && $(MAKE) CLASS=$(CLASS) NPROCS=$(NPROCS)
EOF
# The compilers of this template do not exist, so the build works only with those that the tool sets.
cat >"$suite/config/make.def.template" <<'EOF'
MPIF77 = no-such-fortran
FLINK = $(MPIF77)
FMPI_LIB = -lno-such-library
MPICC = no-such-c
CLINK = $(MPICC)
EOF
cat >"$suite/EP/Makefile" <<'EOF'
include ../config/make.def
all: ; $(MPIF77) $(FFLAGS) -c ep.f && $(FLINK) -o ../bin/ep.$(CLASS).$(NPROCS) ep.o $(FMPI_LIB)
EOF
cat >"$suite/IS/Makefile" <<'EOF'
include ../config/make.def
all: ; $(MPICC) $(CFLAGS) $(CMPI_INC) -c is.c && $(CLINK) -o ../bin/is.$(CLASS).x is.o $(CMPI_LIB)
EOF
printf 'all: ; @echo "cg cannot be built here"; false\n' >"$suite/CG/Makefile"
cat >"$suite/EP/ep.f" <<'EOF'
      program ep
      include 'mpif.h'
      integer rank, size, total, ierr
      call mpi_init(ierr)
      call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
      call mpi_comm_size(MPI_COMM_WORLD, size, ierr)
      call mpi_allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM,
     >                   MPI_COMM_WORLD, ierr)
      if (rank .eq. 0) then
        print *, 'Time in seconds =                     0.25'
        print *, 'Mop/s total     =                    67.11'
        if (total .eq. size * (size - 1) / 2) then
          print *, 'Verification    =               SUCCESSFUL'
        else
          print *, 'Verification    =             UNSUCCESSFUL'
        endif
      endif
      call mpi_finalize(ierr)
      end
EOF
cat >"$suite/IS/is.c" <<'EOF'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        printf(" Time in seconds = 0.5\n Mop/s total = 12\n Verification = UNSUCCESSFUL\n");
    return MPI_Finalize();
}
EOF
export TMPDIR="$scratch"
ls "$suite"/* >"$scratch/before"
run_npb() {
    "$BIN/fishplate-lab" kernels --npb "$@" >"$scratch/table" 2>"$scratch/err"
}

# Without a Fortran compiler there is no mpifort; only the C program is built then.
fortran=no
if [ -x "$BIN/mpifort" ] && "$BIN/mpifort" --version >/dev/null 2>&1; then
    fortran=yes
    run_npb "$scratch/suite" --ranks 2 ep || {
        cat "$scratch/table" "$scratch/err"
        fail "the stand-in for the suite did not build or verify"
    }
    expect_line "$scratch/table" '^ep +S +[0-9.]+ +0\.250 +[0-9.]+ +67\.1   ours verified, suite verified$'
fi
# A failure is reported in the table, on standard error and by the exit status; the other kernels run.
run_npb "$suite" --ranks 2 --json is cg && fail "a suite that does not verify was taken"
expect_json "$scratch/table"
python3 - "$scratch/table" <<'PY'
import json, sys
rows = json.load(open(sys.argv[1]))["results"]
assert [(r["kernel"], r["suite_seconds"], r["suite_verified"], r["ours_verified"]) for r in rows] == [
    ("is", 0.5, False, True), ("cg", None, False, True)], rows
PY
expect_line "$scratch/err" "^fishplate-lab kernels: the suite's cg of class S does not build for 2 ranks:$"
expect_line "$scratch/err" 'cg cannot be built here$'
# The user's tree is unchanged, and the tool's copy is removed.
ls "$suite"/* >"$scratch/after"
cmp "$scratch/before" "$scratch/after"
for left in "$scratch"/fishplate-npb-*; do
    if [ -e "$left" ]; then fail "$left was left behind"; fi
done
run_npb "$scratch" ep && fail "a folder that is not the suite was taken"
expect_line "$scratch/err" 'is not the NAS suite'
echo "stand-in of the suite: built and run (Fortran: $fortran)"
