#!/usr/bin/env python3
# Writes a Fortran program and a C function that compare every constant of Fortran with the one of mpi.h. It reads the
# table on its own, so that a mistake of the generator cannot hide. Arguments: constants.tsv, mpif|mpi|f08, output stem.
#
# SPDX-License-Identifier: Apache-2.0
import sys

table, way, stem = sys.argv[1:4]
handles, numbers, lengths = [], [], []
for line in open(table):
    if line.startswith("#") or not line.strip():
        continue
    name, kind, ctype, _ = line.rstrip("\n").split("\t")
    if name.startswith("MPI_T_") or kind.startswith("integer-constant/fortran"):
        continue
    if kind in ("op-handle", "handle-constant", "datatype-handle"):
        handles.append((name, ctype))
    elif kind == "string-length":
        lengths.append(name)
    elif ctype == "int" and kind.split("/")[0] in ("error-class", "integer-constant", "version-macro"):
        numbers.append(name)

with open(stem + ".c", "w") as c:
    c.write('#include <mpi.h>\n#include <stdio.h>\nint check_all_(const int *theirs);\nint check_all_(const int *theirs)\n{\n'
            '    int bad = 0, i = 0;\n')
    for name, ctype in handles:
        word = "Type" if ctype == "MPI_Datatype" else ctype[4:]
        c.write(f'    if (theirs[i++] != MPI_{word}_c2f({name}))\n        bad += printf("{name}: %d\\n", theirs[i - 1]);\n')
    for name in numbers:
        c.write(f'    if (theirs[i++] != {name})\n        bad += printf("{name}: %d\\n", theirs[i - 1]);\n')
    for name in lengths:
        c.write(f'    if (theirs[i++] != {name} - 1)\n        bad += printf("{name}: %d\\n", theirs[i - 1]);\n')
    c.write("    return bad;\n}\n")

value = "%MPI_VAL" if way == "f08" else ""
module = {"mpif": "", "mpi": "  use mpi\n", "f08": "  use mpi_f08\n"}[way]
names = [name for name, _ in handles] + numbers + lengths
with open(stem + ".f90", "w") as f:
    f.write("program constants\n" + module + "  implicit none\n")
    if way == "mpif":
        f.write("  include 'mpif.h'\n")
    f.write(f"  integer, external :: check_all\n  integer :: v({len(names)})\n")
    for i, name in enumerate(names, 1):
        f.write(f"  v({i}) = {name}{value if i <= len(handles) else ''}\n")
    f.write("  if (check_all(v) /= 0) stop 1\n")
    f.write("  if (MPI_STATUS_SIZE /= 8 .or. MPI_SOURCE /= 1 .or. MPI_TAG /= 2 .or. MPI_ERROR /= 3) stop 2\n")
    f.write("  if (MPI_DISPLACEMENT_CURRENT /= -1) stop 3\n")
    f.write("  if (MPI_ADDRESS_KIND /= 8 .or. MPI_COUNT_KIND /= 8 .or. MPI_OFFSET_KIND /= 8) stop 4\n")
    f.write(f'  print *, "{len(names)} constants agree"\nend program\n')
