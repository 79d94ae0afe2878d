#!/usr/bin/env python3
# The generator of the Fortran bindings: reads the same tables as generate.py and writes mpif.h, the modules and their C functions. It is
# separate from generate.py because the bindings are not built without a Fortran compiler.
#
# SPDX-License-Identifier: Apache-2.0

import argparse
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # building must not write into the sources

from gen import fortran, fortran_c, fortran_text
from gen.kinds import classify_parameters
from gen.model import Api, TableError
from generate import write_if_changed


def list_outputs(api):
    files = {f"fortran_{part}.c": lambda part=part: fortran_c.write_part(api, part) for part in fortran_c.PARTS}
    files["mpi.f90"] = lambda: fortran_text.write_mpi(api)
    files["mpi_f08_types.f90"] = lambda: fortran_text.write_f08_types(api)
    files["mpi_f08.f90"] = lambda: fortran_text.write_f08(api)
    return files


def main():
    parser = argparse.ArgumentParser(description="write the Fortran bindings from the tables in api/")
    parser.add_argument("--out", type=Path, required=True, help="folder for the C files and modules")
    parser.add_argument("--include", type=Path, required=True, help="folder for mpif.h")
    args = parser.parse_args()
    api = Api(Path(__file__).resolve().parent)
    classify_parameters(api)
    fortran.record_functions(api)
    for name, text in list_outputs(api).items():
        write_if_changed(args.out / name, text())
    write_if_changed(args.include / "mpif.h", fortran_text.write_mpif(api))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TableError as error:
        sys.exit(f"generate_fortran.py: {error}")
