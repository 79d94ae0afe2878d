#!/usr/bin/env python3
# Writes a C file that declares MPI_X and PMPI_X again exactly as functions.tsv spells them: the compiler reports any
# difference from mpi.h. Functions that MPI-3.0 removed must not be declared at all.
#
# SPDX-License-Identifier: Apache-2.0

import sys


def main():
    print("/* Written by tests/api/prototypes.py. */\n#include <mpi.h>\n")
    removed = []
    with open(sys.argv[1], encoding="ascii") as table:
        for line in table:
            if not line.strip() or line.startswith("#"):
                continue
            name, prototype, _chapter, _since, marks = line.split("\t")[:5]
            if "removed-3.0" in marks:
                removed.append(name)
                continue
            print(prototype + ";")
            print(prototype.replace(f" {name}(", f" P{name}(", 1) + ";")
    # If mpi.h declared one of these names as a function, this declaration as an object would be an error.
    for name in removed:
        print(f"extern int {name};")


main()
